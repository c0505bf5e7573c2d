"""`tenure graph`: finds a workflow and draws it."""

import importlib
import inspect
import json
import shutil
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer

from tenure.cli._status import CommandError
from tenure.runtime import Workflow, to_dot, to_mermaid


def draw(reference: str, picture: str, output: Path | None) -> None:
    """Print or write a picture of a workflow.

    Args:
        reference: Module and attribute, separated by a colon.
        picture: `mermaid`, `dot`, `svg` or `json`.
        output: Where it goes; standard output if `None`.

    Raises:
        CommandError: There is no such workflow, or graphviz is missing.
    """
    workflow = find_workflow(reference)
    drawn = _DRAWN[picture](workflow)
    if output is None:
        typer.echo(drawn, nl=False)
        return
    try:
        output.write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from error


def find_workflow(reference: str) -> Workflow:
    """Import a workflow.

    Args:
        reference: Module and attribute, separated by a colon.

    Raises:
        CommandError: There is none.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise CommandError(
            f"{reference!r} names no workflow: write MODULE:WORKFLOW, such as "
            f"shop.orders:workflow"
        )
    sys.path.insert(0, "")
    try:
        # What a module prints is no part of the picture.
        with redirect_stdout(sys.stderr):
            found: Any = importlib.import_module(module_name)
            for name in path.split("."):
                found = getattr(found, name)
            if inspect.isroutine(found):
                found = found()
    except (Exception, SystemExit) as error:
        # A script that is not kept from running when it is imported may exit.
        raise CommandError(
            f"{reference!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    finally:
        with suppress(ValueError):  # the module may have changed the path
            sys.path.remove("")
    if inspect.iscoroutine(found):
        found.close()
    if not isinstance(found, Workflow):
        raise CommandError(
            f"{reference!r} is {type(found).__name__}, not a Workflow; "
            f"WorkflowBuilder(...).build() returns one"
        )
    return found


def _svg(workflow: Workflow) -> str:
    dot = shutil.which("dot")
    if dot is None:
        raise CommandError(
            "svg needs graphviz, and there is no dot here: install it (on Debian: "
            "apt install graphviz), or use --format dot or mermaid"
        )
    try:
        done = subprocess.run(  # noqa: S603 - the program that was found, and no shell
            [dot, "-Tsvg"],
            input=to_dot(workflow),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except OSError as error:
        raise CommandError(f"{dot} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise CommandError(f"dot failed: {done.stderr.strip()}")
    return done.stdout


def _json(workflow: Workflow) -> str:
    graph = workflow.graph
    document = {
        "workflow": workflow.name,
        "start": graph.start,
        "executors": [
            {"id": name, "takes": one.dispatch.takes()}
            for name, one in graph.executors.items()
        ],
        "edges": [
            {"source": name, "targets": list(edge.targets), "kind": type(edge).__name__}
            for name, edges in graph.leaving.items()
            for edge in edges
        ],
        "mermaid": to_mermaid(workflow),
    }
    return json.dumps(document, indent=2) + "\n"


_DRAWN = {"mermaid": to_mermaid, "dot": to_dot, "svg": _svg, "json": _json}
