"""What is remembered of messages: sent and not received, and received, run by run.

Pure and bounded, and empty unless an engine tells messages.
"""

from collections.abc import Callable
from typing import Final

from tenure.instrumentation.operations import Discard, Receive, Release, RunRef, Send

MAX_MESSAGES: Final = 4_096
"""How many messages, receipts and discards are remembered per instance, each."""

_Name = tuple[str, str, str]
"""Process, run and message: identities are unique in their run only."""


class Messages:
    """The messages of one instance whose runs are not over."""

    __slots__ = ("_discards", "_receipts", "_waiting")

    def __init__(self) -> None:
        # For process, run and superstep, the position of the last discard of it.
        self._discards: Final[dict[tuple[str, str, int], int]] = {}
        # Invariant: no message is in both; one received before it is known to have been
        # sent is in `_receipts` only.
        self._waiting: Final[dict[_Name, Send]] = {}
        self._receipts: Final[dict[_Name, Receive]] = {}

    def waiting(self, run: RunRef) -> tuple[Send, ...]:
        """Return what was sent in `run` and not received."""
        place = _place(run)
        return tuple(one for one in self._waiting.values() if _place(one.run) == place)

    def receipt(self, receive: Receive) -> Receive | None:
        """Return the first receipt of the message of `receive`, if there was one."""
        return self._receipts.get(_name(receive))

    def sent(self, send: Send) -> bool:
        """Remember a message; say whether there was room for it."""
        name = _name(send)
        if name in self._receipts or self._undone(send):
            return True
        if len(self._waiting) >= MAX_MESSAGES:
            return False
        self._waiting[name] = send
        return True

    def received(self, receive: Receive) -> bool:
        """Remember a receipt; say whether there was room for it."""
        name = _name(receive)
        if self._undone(receive):
            return True
        self._waiting.pop(name, None)
        if name not in self._receipts and len(self._receipts) >= MAX_MESSAGES:
            return False
        self._receipts.setdefault(name, receive)
        return True

    def discarded(self, discard: Discard) -> bool:
        """Forget what was sent and received in a superstep that did not happen.

        Returns:
            Whether there was room to remember that it did not.
        """
        run, index = discard.run, discard.index
        if index is None or discard.seq is None:
            return True
        place = (run.process, run.run_id, index)
        if place not in self._discards and len(self._discards) >= MAX_MESSAGES:
            return False
        self._discards[place] = max(discard.seq, self._discards.get(place, 0))
        self._forget(run, self._undone)
        return True

    def released(self, release: Release) -> None:
        """Forget the messages of a run that is over."""
        run = release.run
        self._forget(run, lambda _: True)
        for place in [one for one in self._discards if one[:2] == _place(run)]:
            del self._discards[place]

    def _undone(self, one: Send | Receive) -> bool:
        """Say whether it was discarded together with its superstep."""
        if one.index is None or one.seq is None:
            return False
        return one.seq < self._discards.get((*_place(one.run), one.index), 0)

    def _forget(self, run: RunRef, chosen: Callable[[Send | Receive], bool]) -> None:
        for known in (self._waiting, self._receipts):
            gone = [
                name
                for name, one in known.items()
                if _place(one.run) == _place(run) and chosen(one)
            ]
            for name in gone:
                del known[name]


def _name(operation: Send | Receive) -> _Name:
    return operation.run.process, operation.run.run_id, operation.message


def _place(run: RunRef) -> tuple[str, str]:
    return run.process, run.run_id
