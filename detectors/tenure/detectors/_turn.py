"""A lock that nobody waits for: who does not get it leaves its work to who has it."""

import os
import threading
from typing import Final
from weakref import WeakSet


class Turn:
    """The right to empty a queue, held by one call at a time.

    May be taken from any thread and from a finalizer: taking it never blocks.
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _turns.add(self)

    def take(self) -> bool:
        """Take the turn; say whether it was free."""
        return self._lock.acquire(blocking=False)

    def give_back(self) -> None:
        """Give the turn back. Look at the queue once more after this."""
        self._lock.release()

    def renew(self) -> None:
        """Free the turn in a forked child: its holder does not exist there."""
        self._lock = threading.Lock()


_turns: Final[WeakSet[Turn]] = WeakSet()


def _renew_all() -> None:
    for turn in list(_turns):
        turn.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
