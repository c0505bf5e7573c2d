"""What is remembered of messages: sent and not received, and received, run by run.

Pure and bounded. Empty unless an engine tells messages, but for discards.
"""

from collections.abc import Callable
from typing import Final

from tenure.instrumentation.operations import Discard, Receive, Release, RunRef, Send

MAX_MESSAGES: Final = 4_096
"""How many messages, receipts and discards are remembered per instance, each."""

MAX_RECEIPTS: Final = 16
"""How many receipts are remembered per message."""

_Name = tuple[str, str, str]
"""Process, run and message: identities are unique in their run only."""


class Messages:
    """The messages of one instance whose runs are not over."""

    __slots__ = ("_discards", "_receipts", "_sent")

    def __init__(self) -> None:
        # For process, run and superstep, the position of the last discard of it.
        self._discards: Final[dict[tuple[str, str, int], int]] = {}
        # Invariant: nothing here is known to have been discarded with its superstep. A
        # receipt may still be, so that what was received is kept as sent.
        self._sent: Final[dict[_Name, Send]] = {}
        self._receipts: Final[dict[_Name, list[Receive]]] = {}

    def waiting(self, run: RunRef) -> tuple[Send, ...]:
        """Return what was sent in `run` and not received."""
        place = _place(run)
        return tuple(
            send
            for name, send in self._sent.items()
            if _place(send.run) == place and name not in self._receipts
        )

    def receipt(self, receive: Receive) -> Receive | None:
        """Return an earlier receipt of the message of `receive`, if there was one."""
        known = self._receipts.get(_name(receive))
        return known[0] if known else None

    def sent(self, send: Send) -> bool:
        """Remember a message; say whether there was room for it."""
        if self.undone(send):
            return True
        if len(self._sent) >= MAX_MESSAGES:
            return False
        self._sent[_name(send)] = send
        return True

    def received(self, receive: Receive) -> bool:
        """Remember a receipt; say whether there was room for it."""
        if self.undone(receive):
            return True
        name = _name(receive)
        if name not in self._receipts and len(self._receipts) >= MAX_MESSAGES:
            return False
        known = self._receipts.setdefault(name, [])
        if len(known) >= MAX_RECEIPTS:
            return False
        known.append(receive)
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
        self._forget(run, self.undone)
        return True

    def released(self, release: Release) -> None:
        """Forget the messages of a run that is over."""
        run = release.run
        self._forget(run, lambda _: True)
        for place in [one for one in self._discards if one[:2] == _place(run)]:
            del self._discards[place]

    def undone(self, one: Send | Receive) -> bool:
        """Say whether it is known to have been discarded with its superstep."""
        if one.index is None or one.seq is None:
            return False
        return one.seq < self._discards.get((*_place(one.run), one.index), 0)

    def _forget(self, run: RunRef, chosen: Callable[[Send | Receive], bool]) -> None:
        place = _place(run)
        for name in [one for one in self._sent if one[:2] == place]:
            if chosen(self._sent[name]):
                del self._sent[name]
        for name in [one for one in self._receipts if one[:2] == place]:
            left = [one for one in self._receipts[name] if not chosen(one)]
            if left:
                self._receipts[name] = left
            else:
                del self._receipts[name]


def _name(operation: Send | Receive) -> _Name:
    return operation.run.process, operation.run.run_id, operation.message


def _place(run: RunRef) -> tuple[str, str]:
    return run.process, run.run_id
