"""What operations are made of: who acts, what was touched, and how it came about.

`operations` shows these names. This module imports the standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

WRITE_CAP: Final = 32
"""How many key and epoch pairs an operation lists."""


class Outcome(StrEnum):
    """How a run, or the tenure of a run, ended."""

    COMPLETED = "completed"
    PENDING_REQUESTS = "pending_requests"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"
    LOST = "lost"


class CommitCause(StrEnum):
    """Why staged writes became committed state."""

    SUPERSTEP = "superstep"
    RUN_ENTRY = "run_entry"
    CHECKPOINT = "checkpoint"


class DiscardCause(StrEnum):
    """Why staged writes were thrown away, or were to be."""

    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    SUPERSEDED = "superseded"
    SWEEP = "sweep"
    FINALIZER = "finalizer"
    RUN_ENTRY = "run_entry"


class Trigger(StrEnum):
    """How the end of a run came about."""

    CLOSE = "close"
    REFCOUNT = "refcount"
    GC = "gc"
    SHUTDOWN = "shutdown"
    ERROR = "error"


class LateKind(StrEnum):
    """What a run that no longer owns its instance still tried to do."""

    STAGE = "stage"
    SEND = "send"
    OUTPUT = "output"


class DeliveryKind(StrEnum):
    """What reached a run that did not cause it."""

    MESSAGE = "message"
    OUTPUT = "output"
    EVENT = "event"
    FAN_IN = "fan_in"


@dataclass(frozen=True, slots=True)
class RunRef:
    """One run of one instance, as seen by one process.

    Attributes:
        engine: Engine and version, such as `tenure/0.1.0`.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        run_id: Unique identity of the run.
        epoch: The run's rank among the runs of its instance.
        process: Who counts `seq` for this run.
    """

    engine: str
    workflow: str
    instance: str
    run_id: str
    epoch: int
    process: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns an instance: the newest claim, whether released since or not.

    Attributes:
        epoch: The owner's epoch.
        run_id: The owner's run; empty where it is unknown.
    """

    epoch: int
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class SpanRef:
    """The span that carried an operation.

    Attributes:
        trace_id: 128-bit trace id.
        span_id: 64-bit span id.
    """

    trace_id: int
    span_id: int


@dataclass(frozen=True, slots=True)
class WriteSet:
    """State keys and, for each, the epoch that staged it.

    Attributes:
        pairs: Key and epoch, at most `WRITE_CAP` of them, other epochs' first.
        omitted: How many pairs the cap left out.
    """

    pairs: tuple[tuple[str, int], ...] = ()
    omitted: int = 0

    @classmethod
    def staged_by(cls, keys: Mapping[str, int], acting: int) -> Self:
        """List `keys`, those that another epoch than `acting` staged first.

        Args:
            keys: Each staged key and the epoch that staged it.
            acting: Epoch on whose behalf the operation acts.

        Returns:
            The write set, capped so that foreign pairs stay in it.
        """
        pairs = tuple(keys.items())
        if len(pairs) <= WRITE_CAP:
            return cls(pairs)
        pairs = tuple(sorted(pairs, key=lambda pair: pair[1] == acting))
        return cls(pairs[:WRITE_CAP], len(pairs) - WRITE_CAP)

    @property
    def count(self) -> int:
        """How many keys were touched in all."""
        return len(self.pairs) + self.omitted

    @property
    def keys(self) -> tuple[str, ...]:
        """The listed keys."""
        return tuple(key for key, _ in self.pairs)

    @property
    def epochs(self) -> tuple[int, ...]:
        """For each listed key, the epoch that staged it."""
        return tuple(epoch for _, epoch in self.pairs)

    def lists_all_foreign_to(self, acting: int) -> bool:
        """Say whether every pair of another epoch than `acting` is listed.

        Pairs of other epochs come first: where one of its own is listed, all of the
        others are. A list in another order proves nothing.
        """
        if not self.omitted:
            return True
        own = [epoch == acting for _, epoch in self.pairs]
        return any(own) and own == sorted(own)

    def foreign_to(self, *epochs: int) -> tuple[tuple[str, int], ...]:
        """The listed pairs that none of `epochs` staged."""
        return tuple(pair for pair in self.pairs if pair[1] not in epochs)


NO_WRITES: Final = WriteSet()
"""A write set that is known to be empty; an unknown one is `None`."""
