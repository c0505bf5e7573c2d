"""`tenure check`: races in trace files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tenure.cli._status import CommandError


class Format(StrEnum):
    """What a report is printed as."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"
    JUNIT = "junit"
    SARIF = "sarif"


def check(
    *,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Trace files, gzipped or not; - is standard input.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            help="text, json, html, junit or sarif.",
        ),
    ] = Format.TEXT,
    json: Annotated[
        bool, typer.Option("--json", help="The same as --format json.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the report there; it is replaced if it exists.",
            dir_okay=False,
        ),
    ] = None,
    max_value: Annotated[
        int,
        typer.Option(
            "--max-value",
            metavar="MIB",
            min=1,
            max=4096,
            help="The largest span that is read. Files may have any size.",
        ),
    ] = 64,
) -> None:
    """Find races in trace files, and prove them.

    Formats are told by content: OTLP JSON on lines (as the collector's file exporter
    writes it) or as documents, OTLP protobuf, and the JSON of Jaeger's user interface
    and of its api/v3. All files are judged together, as parts of one recording. A line
    that cannot be read is named, and does not hide the others.

    Exit status: 0 clean, 1 violations found, 2 bad usage or a file of which nothing can
    be read, 3 inconclusive: telemetry is missing, so that nothing can be said.
    """
    if json and format_ not in {Format.TEXT, Format.JSON}:
        raise CommandError(f"--json and --format {format_} exclude each other")
    if files.count("-") > 1:
        raise CommandError("standard input can be read once")
    from tenure.cli._check.command import run_check

    chosen = Format.JSON if json else format_
    raise typer.Exit(run_check(files, chosen.value, output, max_value=max_value << 20))
