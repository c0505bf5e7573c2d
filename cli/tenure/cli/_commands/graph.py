"""`tenure graph`: a workflow as a picture."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Picture(StrEnum):
    """What a graph may be drawn as."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    JSON = "json"


def graph(
    workflow: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:WORKFLOW",
            help="Where the workflow is, such as shop.orders:workflow; a function "
            "without arguments that returns one will do.",
        ),
    ],
    *,
    picture: Annotated[
        Picture,
        typer.Option("--format", "-f", help="What to draw; svg needs graphviz's dot."),
    ] = Picture.MERMAID,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document instead.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write it there.", dir_okay=False),
    ] = None,
) -> None:
    """Draw a workflow: executors, conditions, fan-outs, fan-ins and sub-workflows.

    The module is imported from here or from the environment; nothing is run.
    """
    from tenure.cli._graph import draw

    draw(workflow, "json" if json else picture.value, output)
