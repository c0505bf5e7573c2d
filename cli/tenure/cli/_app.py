"""The application: commands, options that all share, and how errors end."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Final

import typer

from tenure.cli._commands.check import check
from tenure.cli._commands.demo import demo
from tenure.cli._commands.graph import graph
from tenure.cli._commands.watch import watch
from tenure.cli._status import CommandError, Status

_TRACEBACK_VARIABLE: Final = "TENURE_TRACEBACK"

app: Final = typer.Typer(
    name="tenure",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit status: 0 clean or as described, 1 violations or not as described, "
        "2 bad usage or a missing extra, 3 inconclusive."
    ),
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if wanted:
        typer.echo(f"tenure {version('tenure')}")
        raise typer.Exit


@app.callback()
def _tenure(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Print the version and exit.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Workflows in which a run can never touch what another run owns.

    tenure runs workflows, traces who owned what and when, and finds races in traces,
    its own and those of engines that people already run.
    """


app.command()(check)
app.command()(demo)
app.command()(graph)
app.command()(watch)


def run(arguments: Sequence[str]) -> int:
    """Run the command line.

    Args:
        arguments: What follows the name of the program.

    Returns:
        The exit status.
    """
    command = typer.main.get_command(app)
    try:
        command.main(list(arguments), prog_name="tenure")
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else Status.CLEAN
    except CommandError as error:
        if os.environ.get(_TRACEBACK_VARIABLE):
            raise
        sys.stderr.write(f"tenure: {error}\n")
        return error.status
    except Exception as error:
        if os.environ.get(_TRACEBACK_VARIABLE):
            raise
        sys.stderr.write(
            f"tenure: unexpected {type(error).__name__}: {error} "
            f"(set {_TRACEBACK_VARIABLE}=1 to see where)\n"
        )
        return Status.UNUSABLE
    return Status.CLEAN
