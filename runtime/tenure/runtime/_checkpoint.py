"""What a checkpoint holds, and what a store must do. Pure data and protocols."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from tenure.instrumentation.operations import Owner
from tenure.runtime._epoch import Epoch, RunId

CheckpointKind = Literal[
    "entry", "superstep", "responses", "cancellation", "restore", "fork"
]
"""What a checkpoint was taken after: the entry of a run with a message, a superstep,
the entry of one with responses, a withdrawal of requests, the return to an earlier
checkpoint, or a fork of another instance."""

EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
"""No keys, no requests, no snapshots."""


_DIGITS: Final = 18
"""How many digits a position may have: as many as 64 bits hold."""


def no_values() -> Mapping[str, Any]:
    """Return an empty mapping that nobody can change."""
    return EMPTY


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A question of an executor that waits for an answer.

    Attributes:
        request_id: Identity of the request.
        executor_id: Who asked, and gets the answer.
        data: The question.
        response_type: What an answer must be, as the executor wrote it.
        begun_by: The run whose message has led to it, be it through earlier answers.
    """

    request_id: str
    executor_id: str
    data: Any
    response_type: Any = field(compare=False)
    begun_by: str = ""


Collected = tuple[int, str, Any, str]
"""A message that a fan-in holds: position of the fan-in in the graph, source, message,
and the run whose message has led to it: only what one run has begun is joined."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an instance is, besides its state: what runs left for later runs.

    Attributes:
        messages: Messages for the next superstep, in order: receiver, message, and the
            run whose message has led to it.
        answers: Answers for the next superstep: receiver, request id and answer.
        fan_ins: What fan-ins hold.
        requests: Requests that wait for an answer.
        snapshots: What executors gave to be saved.
    """

    messages: Sequence[tuple[str, Any, str]] = ()
    answers: Sequence[tuple[str, str, Any]] = ()
    fan_ins: Sequence[Collected] = ()
    requests: Sequence[PendingRequest] = ()
    snapshots: Mapping[str, Any] = field(default_factory=no_values)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A durable copy of an instance, taken by one run between two supersteps.

    Attributes:
        checkpoint_id: Its identity.
        parent_id: The checkpoint that it follows; `None` for the first.
        workflow: Name of the workflow.
        instance: Key of the instance.
        signature: Signature of the graph.
        run_id: The run that took it.
        epoch: That run's epoch.
        position: Its place among the commits of the instance, from 1.
        superstep: The run's superstep that it was taken after; 0 at its entry.
        kind: What it was taken after.
        writes: State keys that changed since the parent.
        deleted: State keys that went since the parent.
        standing: What is left for the next superstep.
    """

    checkpoint_id: str
    parent_id: str | None
    workflow: str
    instance: str
    signature: str
    run_id: RunId
    epoch: Epoch
    position: int
    superstep: int
    kind: CheckpointKind
    writes: Mapping[str, Any]
    deleted: Sequence[str]
    standing: Standing


def new_checkpoint_id(position: int, run_id: RunId) -> str:
    """Return an identity that no other checkpoint has, in any instance.

    A run has one checkpoint at a position, so the two together are one.

    Args:
        position: The checkpoint's place among the commits of its instance.
        run_id: The run that takes it.
    """
    return f"{position}.{run_id}"


def position_in(checkpoint_id: str) -> int | None:
    """Return the position that an identity says, if it is one of ours.

    Args:
        checkpoint_id: Any identity.
    """
    position, dot, _ = checkpoint_id.partition(".")
    ours = dot and position.isdecimal() and len(position) <= _DIGITS
    return int(position) if ours else None


@dataclass(frozen=True, slots=True)
class CheckpointInfo:
    """What a history says of a checkpoint.

    Attributes:
        checkpoint_id: Its identity.
        parent_id: The checkpoint that it follows.
        run_id: The run that took it.
        epoch: That run's epoch.
        position: Its place among the commits of the instance.
        superstep: The run's superstep that it was taken after.
        kind: What it was taken after.
    """

    checkpoint_id: str
    parent_id: str | None
    run_id: RunId
    epoch: Epoch
    position: int
    superstep: int
    kind: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A store's answer to a claim: the run owns the instance.

    Attributes:
        epoch: The run's epoch.
        position: How many commits the instance has had.
        head: Its newest checkpoint, if it has one.
    """

    epoch: Epoch
    position: int
    head: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """A store's answer to a claim that was not to replace a live owner.

    Attributes:
        run_id: The owner.
        epoch: Its epoch.
        seconds: After how many seconds it counts as dead if nothing is heard of it.
    """

    run_id: RunId
    epoch: Epoch
    seconds: float


class Store(Protocol):
    """Where instances are kept: ownership and checkpoints are one thing.

    Every method is atomic: it happens whole or not at all, and once asked for it is
    not interrupted by cancellation of whoever waits for the answer. An answer that is
    lost on its way (a broken connection) has to be resolved by the store, by reading
    back what it holds.

    Nothing that decides who may write depends on a clock. A lease only says for how
    long other holders are polite to an owner that is silent.
    """

    @property
    def id(self) -> str:
        """What tells this store apart from others: the same for all who share it."""
        ...

    @property
    def lease(self) -> float:
        """Seconds of silence after which an owner may be taken for dead."""
        ...

    def claim(
        self,
        instance: str,
        run_id: RunId,
        *,
        holder: str = "",
        rank: int = 0,
        takeover: bool = True,
        expected: Epoch | None = None,
    ) -> Awaitable[Claimed | Held]:
        """Make `run_id` the owner of an instance, with an epoch above all earlier ones.

        Args:
            instance: Workflow and key, as one name.
            run_id: Who claims.
            holder: Who decides among its own runs which of them is the owner. It begins
                with the process's identity.
            rank: Rank of the run among those of its holder: it replaces a lower one,
                and never a higher one, whose claim has overtaken this one.
            takeover: Whether a live owner of another holder is replaced.
            expected: Claim only if this is the newest epoch; 0 if there is none.

        Returns:
            `Held`, with nothing changed, if there is such an owner and it is not to be
            replaced.

        Raises:
            OwnershipLostError: The newest epoch is not the expected one, or is that of
                a higher rank.
            CheckpointError: The store cannot be used.
        """
        ...

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner | None]:
        """Keep `checkpoint`, if its run still owns the instance.

        What it holds is taken in before the call returns.

        Args:
            instance: Workflow and key, as one name.
            checkpoint: What to keep; its position is the next one.
            state: The whole state with the checkpoint's writes in it. Ask for its items
                only if all of it is to be kept: they are put together then.
            final: Whether the run has nothing more to do: it gives the instance back.

        Returns:
            Who owned the instance, as read in the same transaction. It decides nothing:
            it is the evidence by which a detector finds that a fence does not hold. A
            store that returns `None` is believed to have kept it for its owner.

        Raises:
            OwnershipLostError: The epoch, the run or the position is not the expected
                one: nothing is kept.
            StateTypeError: It holds a value that cannot be kept.
            CheckpointError: The store cannot be used; nothing is kept.
        """
        ...

    def extend(
        self, instance: str, run_id: RunId, epoch: Epoch, *, final: bool = False
    ) -> Awaitable[bool]:
        """Say that the owner lives, or that it gives the instance back.

        An instance that was given back stays so: a heartbeat may come after its run's
        last commit, and is not to hold what nobody will give back again.

        Args:
            instance: Workflow and key, as one name.
            run_id: Who says so.
            epoch: Its epoch.
            final: Whether it gives the instance back.

        Returns:
            Whether it is the owner.
        """
        ...

    def load(
        self, instance: str, checkpoint_id: str | None = None
    ) -> Awaitable[tuple[Checkpoint, dict[str, Any]]]:
        """Return a checkpoint and the whole state at it.

        Both are the caller's own: changing them changes nothing that is kept.

        Args:
            instance: Workflow and key, as one name.
            checkpoint_id: The checkpoint; the newest one if `None`.

        Raises:
            CheckpointNotFoundError: There is none of that id, any more or ever, or none
                at all.
            CheckpointError: It cannot be read. Another one is never returned instead.
        """
        ...

    def history(self, instance: str) -> Awaitable[Sequence[CheckpointInfo]]:
        """Return the checkpoints of an instance that are kept, the newest first."""
        ...

    def prune(self, instance: str, keep: int) -> Awaitable[int]:
        """Remove all checkpoints but the newest ones.

        What is kept is read as before, and whoever owns the instance goes on. It may go
        in steps, the oldest first, each of them atomic and short, so that nobody's
        commit waits for long.

        Args:
            instance: Workflow and key, as one name.
            keep: How many are kept, one at least: the newest never goes.

        Returns:
            How many were removed.

        Raises:
            ValueError: `keep` is less than one.
            CheckpointError: The store cannot be used, or one that is kept cannot be
                read; whatever is left of the others is as it was.
        """
        ...

    def erase(self, instance: str, run_id: RunId, epoch: Epoch) -> Awaitable[None]:
        """Remove all checkpoints of an instance, and give it back, if the run owns it.

        Who owned it, in which epoch, and how many commits it has had stay: the next
        claim goes on counting.

        Args:
            instance: Workflow and key, as one name.
            run_id: Who owns it.
            epoch: Its epoch.

        Raises:
            OwnershipLostError: Another run owns the instance: nothing is removed.
            CheckpointError: The store cannot be used; or all is removed, and bytes of
                it are still where the store keeps them.
        """
        ...

    def check(self, value: object, what: str) -> None:
        """Refuse a value that the store cannot hold, before it is staged.

        Args:
            value: Any value.
            what: What it is for, such as `state key 'cart'`.

        Raises:
            StateTypeError: It cannot be held.
        """
        ...
