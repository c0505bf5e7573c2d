"""The one vocabulary: what engines, instrumentors, trace files and explorers can say.

An operation is a frozen fact about one workflow instance. Rules are written over
operations only, so a rule is written once and serves production, CI and post-mortem.
This module imports the standard library only.
"""

from dataclasses import dataclass
from typing import ClassVar

from tenure.instrumentation._facts import (
    NO_WRITES,
    WRITE_CAP,
    CommitCause,
    DeliveryKind,
    DiscardCause,
    LateKind,
    Outcome,
    Owner,
    RunRef,
    SpanRef,
    Trigger,
    WriteSet,
)

__all__ = [
    "NO_WRITES",
    "WRITE_CAP",
    "CheckpointRestore",
    "CheckpointSave",
    "Claim",
    "Commit",
    "CommitCause",
    "DeliveryKind",
    "Discard",
    "DiscardCause",
    "Execute",
    "ForeignDelivery",
    "ForeignRead",
    "Late",
    "LateKind",
    "Operation",
    "Outcome",
    "Owner",
    "Receive",
    "Release",
    "RunRef",
    "Send",
    "SpanRef",
    "SuperstepEnd",
    "SuperstepStart",
    "Trigger",
    "WriteSet",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What all operations say.

    Attributes:
        run: On whose behalf the operation acts.
        seq: Its position among the operations of the instance in `run.process`; `None`
            where a source does not number its operations.
        owner: Who owned the instance in the very step of the operation; `None` where
            that was not recorded.
        span: The span that carried it, where one did.
        time: Wall clock in nanoseconds since 1970, for display. No rule may read it.
    """

    name: ClassVar[str] = ""

    run: RunRef
    seq: int | None
    owner: Owner | None
    span: SpanRef | None = None
    time: int = 0

    @property
    def stale(self) -> bool | None:
        """Whether the acting epoch is older than the owner's; `None` if unknown."""
        return None if self.owner is None else self.run.epoch < self.owner.epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Operation):
    """A run becomes the owner; its `owner` is the run itself.

    Attributes:
        superseded: Epoch that this claim replaced by policy, where it did.
    """

    name: ClassVar[str] = "claim"

    superseded: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Operation):
    """A run stops being the owner, by itself or because a successor superseded it.

    Attributes:
        outcome: How its tenure ended.
        trigger: How the end came about, where a finalizer did it.
    """

    name: ClassVar[str] = "release"

    outcome: Outcome
    trigger: Trigger | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperstepStart(Operation):
    """A superstep begins to deliver messages.

    Attributes:
        index: Its number in the run, from 1.
    """

    name: ClassVar[str] = "superstep start"

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SuperstepEnd(Operation):
    """A superstep has been committed or discarded.

    Attributes:
        index: Its number in the run, from 1.
    """

    name: ClassVar[str] = "superstep end"

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Execute(Operation):
    """One executor invocation has ended.

    Attributes:
        executor: The executor.
        index: Number of the superstep; `None` where the engine has none.
        reads: State keys that it read, in order, at most `WRITE_CAP`.
        writes: State keys that it staged; `None` where that was not recorded.
        error: Class of the error that ended it, where one did.
        reduced: Those of the written keys whose writes a declared reducer joins.
        isolated: Whether it read the state as of the superstep's start and its own
            writes only, never what a sibling has staged.
    """

    name: ClassVar[str] = "execute"

    executor: str
    index: int | None = None
    reads: tuple[str, ...] = ()
    writes: WriteSet | None = None
    error: str | None = None
    reduced: tuple[str, ...] = ()
    isolated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Operation):
    """Staged writes became committed state.

    Attributes:
        writes: What was committed; `None` where that was not recorded.
        cause: Why.
        index: Number of the superstep, where it belongs to one.
        inherited: Released epochs whose staged writes the run took over on purpose.
    """

    name: ClassVar[str] = "commit"

    writes: WriteSet | None
    cause: CommitCause = CommitCause.SUPERSTEP
    index: int | None = None
    inherited: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard(Operation):
    """Staged writes were thrown away, or were to be and the engine refused.

    Attributes:
        writes: What was thrown away (when `fenced`: nothing was, and this is empty);
            `None` where that was not recorded.
        cause: Why.
        fenced: Whether it was refused, so that nothing was thrown away.
        ledger: Epoch whose ledger was acted on; `None` where that is unknown.
        shared: Whether all runs share the map that was acted on.
        trigger: How the end came about, where a finalizer did it.
        index: Number of the superstep, where it belongs to one.
        snapshots: Those of the keys that hold snapshots for a checkpoint.
    """

    name: ClassVar[str] = "discard"

    writes: WriteSet | None
    cause: DiscardCause
    fenced: bool = False
    ledger: int | None = None
    shared: bool = False
    trigger: Trigger | None = None
    index: int | None = None
    snapshots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSave(Operation):
    """A durable copy was made.

    Attributes:
        checkpoint: Its identity.
        parent: The checkpoint that it follows.
        parts: Executor snapshots and edge buffers in it, each with the epoch it was
            taken in; `None` where that was not recorded.
        taken: Snapshots that were taken for it, whether they are in it or not; `None`
            where that was not recorded.
        previous: The newest checkpoint that the run's claim had found, where the run
            went back from there to `parent`.
    """

    name: ClassVar[str] = "checkpoint save"

    checkpoint: str
    parent: str | None = None
    parts: tuple[tuple[str, int], ...] | None = None
    taken: tuple[str, ...] | None = None
    previous: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRestore(Operation):
    """State was restored from a durable copy.

    Attributes:
        checkpoint: Its identity.
        parent: The checkpoint that it follows.
        parts: As in `CheckpointSave`.
    """

    name: ClassVar[str] = "checkpoint restore"

    checkpoint: str
    parent: str | None = None
    parts: tuple[tuple[str, int], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Late(Operation):
    """A run that no longer owns its instance still tried to write.

    Attributes:
        kind: What it tried.
        writes: State keys that it tried to stage, for a late stage.
        ledger: Epoch whose ledger took the write. Its own means that the write reaches
            nobody; a map that all runs share is the owner's.
        shared: Whether all runs share the map that took the write.
        executor: The executor that did it, where known.
    """

    name: ClassVar[str] = "late"

    kind: LateKind
    writes: WriteSet | None = None
    ledger: int | None = None
    shared: bool = False
    executor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Send(Operation):
    """A message was put where an executor will get it.

    Attributes:
        message: Its identity, unique in its run: what goes to two executors is two.
        executor: The executor that sent it, where one did.
        target: The executor that is to get it, where known.
        index: Number of the superstep that it was sent in, where the engine has them.
    """

    name: ClassVar[str] = "send"

    message: str
    executor: str | None = None
    target: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receive(Operation):
    """An executor got a message that was told as sent.

    Attributes:
        message: Its identity.
        executor: The executor, where known.
        index: Number of the superstep that it was got in, where the engine has them.
    """

    name: ClassVar[str] = "receive"

    message: str
    executor: str | None = None
    index: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRead(Operation):
    """A run read what another epoch had staged and not committed.

    Attributes:
        key: The state key.
        writer: Epoch that had staged the value.
        executor: The executor that read it, where known.
    """

    name: ClassVar[str] = "foreign read"

    key: str
    writer: int
    executor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDelivery(Operation):
    """A message or an event of one epoch reached another.

    Attributes:
        kind: What was delivered.
        origin: Epoch that it comes from.
        message: Identity of the message, where it has one.
        executor: The executor that got it, where one did.
    """

    name: ClassVar[str] = "foreign delivery"

    kind: DeliveryKind
    origin: int
    message: str | None = None
    executor: str | None = None
