"""Where commands print: one width, readable without colour, never a broken pipe."""

import sys
from typing import Final, TextIO

from rich.console import Console

WIDTH: Final = 100
"""Columns of a report; terminals that are narrower get fewer."""


def output() -> Console:
    """Return the console of standard output.

    Rich reads `NO_COLOR` and leaves colour out where the output is not a terminal.
    """
    return on(sys.stdout)


def errors() -> Console:
    """Return the console of standard error."""
    return on(sys.stderr)


def on(stream: TextIO) -> Console:
    """Return a console that prints on `stream`, be it a terminal, a pipe or a file."""
    # A terminal that cannot show a character gets a question mark, not an error.
    reconfigure = getattr(stream, "reconfigure", None)
    if callable(reconfigure):
        reconfigure(errors="replace")
    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    return console
