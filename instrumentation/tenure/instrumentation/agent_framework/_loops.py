"""The event loop of a foreign engine: the only module here that names asyncio."""

import asyncio  # noqa: TID251 - this engine runs on asyncio
import weakref
from collections.abc import Callable
from typing import Final

Cancelled: Final = asyncio.CancelledError
"""What a cancelled task of the engine raises."""


class LoopReference:
    """The loop that a run was claimed or first driven on, not kept alive."""

    __slots__ = ("_loop",)

    def __init__(self) -> None:
        self._loop: weakref.ref[asyncio.AbstractEventLoop] | None = None
        self.find()

    def find(self) -> None:
        """Remember the loop that runs in this thread, if none is known yet."""
        if self._loop is None:
            try:
                self._loop = weakref.ref(asyncio.get_running_loop())
            except RuntimeError:
                return

    @property
    def closed(self) -> bool:
        """Whether a loop is known and will run nothing any more."""
        if self._loop is None:
            return False
        loop = self._loop()
        return loop is None or loop.is_closed()

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Run `callback` on the loop; do nothing where there is none left.

        May be called from any thread and from a finalizer, as asyncio's own hook for
        asynchronous generators is.

        Args:
            callback: What to run.
        """
        loop = None if self._loop is None else self._loop()
        if loop is None or loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop was closed by another thread in between.
            return
