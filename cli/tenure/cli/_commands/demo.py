"""`tenure demo`: one story on two engines."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from tenure.cli._extras import require

_NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.common")
_NEEDED_BY_AGENT_FRAMEWORK: Final = (
    "agent_framework",
    "opentelemetry.instrumentation",
    "wrapt",
)


class EngineName(StrEnum):
    """The engines that the story runs on."""

    AGENT_FRAMEWORK = "agent-framework"
    TENURE = "tenure"


def demo(
    *,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead.")
    ] = False,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where the spans go, as OTLP JSON lines; replaced if it exists.",
            dir_okay=False,
        ),
    ] = Path("tenure-demo.jsonl"),
    engine: Annotated[
        list[EngineName] | None,
        typer.Option(
            "--engine",
            "-e",
            metavar="ENGINE",
            help="Run on this engine only: agent-framework or tenure; repeatable.",
        ),
    ] = None,
) -> None:
    """Lose a write on one engine, and keep it on tenure.

    A web client asks a workflow to stream an answer, disconnects in the middle of a
    superstep, and asks again at once. The same client does so on Microsoft
    agent-framework, watched by tenure's instrumentor, and on tenure; the race detector
    names what was lost and leaked, and proves it.

    Spans are also exported live where OTEL_EXPORTER_OTLP_ENDPOINT is set.
    """
    names = list(dict.fromkeys(engine or EngineName))
    require("demo", *_NEEDED)
    if EngineName.AGENT_FRAMEWORK in names:
        require("demo", *_NEEDED_BY_AGENT_FRAMEWORK)
    from tenure.cli._demo.command import run_demo

    raise typer.Exit(run_demo([str(name) for name in names], output, as_json=json))
