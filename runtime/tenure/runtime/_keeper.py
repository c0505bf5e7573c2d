"""One instance in a store: what is asked of it, and what a checkpoint is made of."""

import inspect
import secrets
import warnings
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import quote

from tenure.instrumentation.building import builder
from tenure.instrumentation.process import process_id
from tenure.runtime._checkpoint import (
    Checkpoint,
    CheckpointKind,
    Claimed,
    Collected,
    Held,
    PendingRequest,
    Standing,
    Store,
    new_checkpoint_id,
)
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._epoch import Epoch
from tenure.runtime._graph import Graph
from tenure.runtime._keys import DELETED
from tenure.runtime._requests import revived
from tenure.runtime._run import Run
from tenure.runtime.errors import CheckpointMismatchError, ExecutorError

_checkpoint: Final = builder(Checkpoint)
_standing: Final = builder(Standing)

SaveFailurePolicy = Literal["fail", "warn"]
"""What a run does whose checkpoint cannot be saved."""

GraphChangePolicy = Literal["fail", "warn"]
"""What a run does that is to go on from a checkpoint of another graph."""

SAVE_FAILURE_POLICIES: Final[tuple[str, ...]] = get_args(SaveFailurePolicy)
"""All of them."""

GRAPH_CHANGE_POLICIES: Final[tuple[str, ...]] = get_args(GraphChangePolicy)
"""Likewise."""


@dataclass(frozen=True, slots=True)
class Durability:
    """How the instances of a workflow are kept.

    Attributes:
        store: Where.
        signature: Signature of the workflow's graph.
        on_save_failure: What a run does whose checkpoint cannot be saved.
        on_graph_change: What one does that is to go on from one of another graph.
    """

    store: Store
    signature: str
    on_save_failure: SaveFailurePolicy = "fail"
    on_graph_change: GraphChangePolicy = "fail"


class Restored:
    """What a checkpoint brings back.

    Args:
        checkpoint: The checkpoint.
        state: The whole state at it.
        requests: Its requests, by id.
        collected: What fan-ins of this very graph hold in it.
    """

    __slots__ = ("checkpoint", "collected", "requests", "state")

    def __init__(
        self,
        checkpoint: Checkpoint,
        state: dict[str, Any],
        requests: dict[str, PendingRequest],
        collected: Sequence[Collected],
    ) -> None:
        self.checkpoint: Final = checkpoint
        self.collected: Final = collected
        self.state: Final = state
        self.requests: Final = requests


class Keeper:
    """Keeps one instance in a store. It remembers nothing that a commit changes.

    Args:
        durability: How instances of the workflow are kept.
        graph: The graph.
        key: Key of the instance.
    """

    def __init__(self, durability: Durability, graph: Graph, key: str) -> None:
        self.store: Final = durability.store
        self.name: Final = instance_name(graph.name, key)
        self.signature: Final = durability.signature
        self.fails: Final = durability.on_save_failure == "fail"
        self._insists: Final = durability.on_graph_change == "fail"
        self._graph: Final = graph
        self._key: Final = key
        self._identity: Final = secrets.token_hex(4)

    def claim(
        self, run: Run, *, expected: Epoch | None = None
    ) -> Awaitable[Claimed | Held]:
        """Claim the instance in the store: the first thing that a run awaits."""
        return self.store.claim(
            self.name,
            run.run_id,
            # Of this process's own runs, the one that claimed here is the owner.
            holder=f"{process_id()}/{self._identity}",
            rank=run.rank,
            takeover=run.policy == "supersede",
            expected=expected,
        )

    async def restore(
        self, checkpoint_id: str | None, *, strict: bool, source: str | None = None
    ) -> Restored:
        """Load a checkpoint.

        Args:
            checkpoint_id: The checkpoint; the newest one if `None`.
            strict: Whether its graph has to be this one. What was left undone means
                nothing to another graph; state alone does.
            source: Another instance whose checkpoint it is.

        Raises:
            CheckpointError: It cannot be read.
            CheckpointMismatchError: It was taken of another graph; and if that is not
                minded, it holds what this one has no place for.
        """
        name = self.name if source is None else source
        checkpoint, state = await self.store.load(name, checkpoint_id)
        same = checkpoint.signature == self.signature
        if strict and not same:
            self._mind_change(checkpoint)
        askers = self._graph.shared
        requests = {
            one.request_id: revived(one, askers) for one in checkpoint.standing.requests
        }
        collected = checkpoint.standing.fan_ins if same else ()
        return Restored(checkpoint, state, requests, collected)

    def _mind_change(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint of another graph, or warn of it."""
        facts = (checkpoint.checkpoint_id, self.signature, checkpoint.signature)
        if self._insists:
            raise CheckpointMismatchError(*facts)
        standing, known = checkpoint.standing, self._graph.executors
        receivers = [one[0] for one in (*standing.messages, *standing.answers)]
        lost = [name for name in dict.fromkeys(receivers) if name not in known]
        if lost:
            reason = f"messages wait in it for {lost[0]!r}, which is not there any more"
            raise CheckpointMismatchError(*facts, reason)
        if standing.fan_ins:
            reason = "fan-ins hold messages in it, and are told by their place"
            raise CheckpointMismatchError(*facts, reason)
        warnings.warn(
            f"instance {self.name!r} goes on from checkpoint "
            f"{checkpoint.checkpoint_id!r} of another graph",
            RuntimeWarning,
            stacklevel=2,
        )

    def draft(
        self,
        run: Run,
        kind: CheckpointKind,
        requests: Mapping[str, PendingRequest],
        writes: Mapping[str, Any],
        snapshots: Mapping[str, Any],
    ) -> Checkpoint:
        """Return the checkpoint that a run is to save now.

        Args:
            run: Who owns the instance.
            kind: What it is taken after.
            requests: Requests that wait for an answer, after `writes`.
            writes: Keys that change with it, and their values or `DELETED`.
            snapshots: What executors want saved.
        """
        position = run.position + 1
        deleted = [key for key, one in writes.items() if one is DELETED]
        if deleted:
            writes = {key: one for key, one in writes.items() if one is not DELETED}
        return _checkpoint(
            checkpoint_id=new_checkpoint_id(position, run.run_id),
            parent_id=run.head,
            workflow=self._graph.name,
            instance=self._key,
            signature=self.signature,
            run_id=run.run_id,
            epoch=run.epoch,
            position=position,
            superstep=run.index,
            kind=kind,
            writes=writes,
            deleted=deleted,
            standing=_standing(
                messages=run.mailbox.messages(),
                answers=run.mailbox.answers(),
                fan_ins=run.mailbox.collected(self._graph.fan_ins),
                requests=tuple(requests.values()),
                snapshots=snapshots,
            ),
        )


class After(Mapping[str, Any]):
    """A state with writes in it, put together only if a store wants all of it.

    Args:
        state: The state before.
        writes: Keys that change, and their values or `DELETED`.
    """

    __slots__ = ("_state", "_together", "_writes")

    def __init__(self, state: Mapping[str, Any], writes: Mapping[str, Any]) -> None:
        self._state: Final = state
        self._writes: Final = writes
        self._together: dict[str, Any] | None = None

    def _whole(self) -> dict[str, Any]:
        if self._together is None:
            whole = {**self._state, **self._writes}
            for key, value in self._writes.items():
                if value is DELETED:
                    del whole[key]
            self._together = whole
        return self._together

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - state holds any value
        return self._whole()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())


def instance_name(workflow: str, key: str) -> str:
    """Return the name of an instance in a store; no other instance has it.

    Args:
        workflow: Name of the workflow.
        key: Key of the instance.
    """
    return f"{quote(workflow, safe=' ')}/{key}"


def savers(dispatches: Mapping[str, Dispatch]) -> dict[str, Dispatch]:
    """Return those executors that have something of their own to save."""
    return {name: one for name, one in dispatches.items() if one.executor.has_snapshot}


async def save_snapshots(
    savers: Mapping[str, Dispatch], store: Store, superstep: int
) -> dict[str, Any]:
    """Ask executors for what they want saved.

    Args:
        savers: Those of the run's executors that save something.
        store: Where it is to be saved.
        superstep: Number of the superstep, for errors.

    Raises:
        ExecutorError: One raised, or gave what the store cannot hold.
    """
    found: dict[str, Any] = {}
    for name, dispatch in savers.items():
        try:
            snapshot = dispatch.executor.on_checkpoint_save()
            if inspect.isawaitable(snapshot):
                snapshot = await snapshot
            store.check(snapshot, f"snapshot of executor {name!r}")
        except Exception as exc:
            reason = f"on_checkpoint_save: {type(exc).__name__}: {exc}"
            raise ExecutorError(name, superstep, reason) from exc
        found[name] = snapshot
    return found


async def give_back_snapshots(
    snapshots: Mapping[str, Any], dispatches: Mapping[str, Dispatch]
) -> None:
    """Give executors what they had saved.

    Args:
        snapshots: What was saved, by executor.
        dispatches: The run's executors, or those of them that get it.

    Raises:
        ExecutorError: One raised.
    """
    for name, dispatch in dispatches.items():
        if name not in snapshots:
            continue
        try:
            done = dispatch.executor.on_checkpoint_restore(snapshots[name])
            if inspect.isawaitable(done):
                await done
        except Exception as exc:
            reason = f"on_checkpoint_restore: {type(exc).__name__}: {exc}"
            raise ExecutorError(name, 0, reason) from exc
