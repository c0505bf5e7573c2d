"""What the app asks of an engine."""

from collections.abc import AsyncIterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from steps import Progress


class BusyError(Exception):
    """The engine refuses a question while it works on another."""


class Run(
    AsyncIterable[object], AbstractAsyncContextManager[AsyncIterable[object]], Protocol
):
    """A run, as a stream of its events.

    Iterate it as it is, or in a block of its own, `async with run as events`, whose end
    is the end of the run.
    """


class Engine(Protocol):
    """One workflow on some engine."""

    @property
    def name(self) -> str:
        """Engine and version."""
        ...

    def ask(self, question: str) -> Run:
        """Start a run.

        Raises:
            BusyError: Another run is under way.
        """
        ...

    def progress(self, event: object) -> Progress | None:
        """Return what `event` means to a reader, if anything."""
        ...

    def state(self) -> Mapping[str, Any]:
        """Return the committed state."""
        ...
