"""A lock that nobody waits for: who does not get it leaves its work to who has it."""

import functools
import os
import threading
from collections.abc import Callable
from typing import Final
from weakref import WeakSet


class Turn:
    """The right to empty a queue, held by one call at a time.

    May be taken from any thread and from a finalizer: taking it never blocks.
    """

    __slots__ = ("__weakref__", "give_back", "take")

    take: Callable[[], bool]
    """Take the turn; say whether it was free."""

    give_back: Callable[[], None]
    """Give the turn back. Look at the queue once more after this."""

    def __init__(self) -> None:
        self.renew()
        _turns.add(self)

    def renew(self) -> None:
        """Free the turn in a forked child: its holder does not exist there."""
        # Bound once, because every operation takes the turn.
        lock = threading.Lock()
        self.take = functools.partial(lock.acquire, blocking=False)
        self.give_back = lock.release


_turns: Final[WeakSet[Turn]] = WeakSet()


def _renew_all() -> None:
    for turn in list(_turns):
        turn.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
