"""One instance and its store: claims, checkpoints, restoring."""

import inspect
import secrets
from collections.abc import Mapping
from typing import Any, Final

from tenure.runtime._checkpoint import (
    EMPTY,
    Checkpoint,
    CheckpointKind,
    Claimed,
    PendingRequest,
    Standing,
    Store,
)
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._graph import Graph
from tenure.runtime._keys import DELETED
from tenure.runtime._requests import restored
from tenure.runtime._run import Run
from tenure.runtime._signature import signature_of
from tenure.runtime.errors import CheckpointError, CheckpointMismatchError


class Restored:
    """What a checkpoint brings back.

    Args:
        checkpoint: The checkpoint.
        state: The whole state at it.
        requests: Its requests, by id.
    """

    __slots__ = ("checkpoint", "requests", "state")

    def __init__(
        self,
        checkpoint: Checkpoint,
        state: dict[str, Any],
        requests: dict[str, PendingRequest],
    ) -> None:
        self.checkpoint: Final = checkpoint
        self.state: Final = state
        self.requests: Final = requests


class Keeper:
    """Keeps one instance in a store. Used by the task of the run that owns it.

    Args:
        store: Where.
        graph: The graph.
        key: Key of the instance.
    """

    def __init__(self, store: Store, graph: Graph, key: str) -> None:
        self.store: Final = store
        self.name: Final = f"{graph.name}/{key}"
        self.signature: Final = signature_of(graph)
        self._graph: Final = graph
        self._key: Final = key
        # Invariant: the state in memory is that of `head`.
        self.head: str | None = None
        self.position = 0

    async def claim(self, run: Run) -> Claimed:
        """Claim the instance in the store: the first thing that a run awaits."""
        claimed = await self.store.claim(self.name, run.run_id)
        self.position = claimed.position
        return claimed

    async def restore(self, checkpoint_id: str, *, strict: bool) -> Restored:
        """Load a checkpoint.

        Args:
            checkpoint_id: The checkpoint.
            strict: Whether its graph has to be this one. What was left undone means
                nothing to another graph; state alone does.

        Raises:
            CheckpointError: It cannot be read.
            CheckpointMismatchError: It was taken of another graph.
        """
        checkpoint, state = await self.store.load(self.name, checkpoint_id)
        if strict or checkpoint.standing.requests:
            self._check_signature(checkpoint)
        requests = {
            one.request_id: restored(one, self._dispatch(one.executor_id))
            for one in checkpoint.standing.requests
        }
        return Restored(checkpoint, state, requests)

    async def keep(
        self,
        run: Run,
        kind: CheckpointKind,
        state: Mapping[str, Any],
        requests: Mapping[str, PendingRequest],
        writes: Mapping[str, Any] = EMPTY,
        snapshots: Mapping[str, Any] = EMPTY,
    ) -> None:
        """Save a checkpoint of `run`; after this the store holds it, or refused it.

        Args:
            run: Who owns the instance.
            kind: What it is taken after.
            state: The state before `writes`.
            requests: Requests that wait for an answer, after `writes`.
            writes: Keys that change with it, and their values or `DELETED`.
            snapshots: What executors want saved.

        Raises:
            OwnershipLostError: Another run owns the instance in the store.
        """
        checkpoint = Checkpoint(
            checkpoint_id=secrets.token_hex(12),
            parent_id=self.head,
            workflow=self._graph.name,
            instance=self._key,
            signature=self.signature,
            run_id=run.run_id,
            epoch=run.epoch,
            position=self.position + 1,
            superstep=run.index,
            kind=kind,
            writes={key: one for key, one in writes.items() if one is not DELETED},
            deleted=[key for key, one in writes.items() if one is DELETED],
            standing=Standing(
                messages=run.mailbox.messages(),
                answers=run.mailbox.answers(),
                fan_ins=run.mailbox.collected(self._graph.fan_ins),
                requests=tuple(requests.values()),
                snapshots=dict(snapshots),
            ),
        )
        await self.store.commit(self.name, checkpoint, _After(state, writes))
        # No await from here to the caller's commit in memory.
        self.head = checkpoint.checkpoint_id
        self.position = checkpoint.position
        run.voice.checkpoint_saved(
            run.owner,
            checkpoint.checkpoint_id,
            checkpoint.parent_id,
            dict.fromkeys(snapshots, int(run.epoch)),
        )

    def _check_signature(self, checkpoint: Checkpoint) -> None:
        if checkpoint.signature != self.signature:
            raise CheckpointMismatchError(
                checkpoint.checkpoint_id, self.signature, checkpoint.signature
            )

    def _dispatch(self, executor: str) -> Dispatch:
        try:
            return self._graph.executors[executor].dispatch
        except KeyError:
            raise CheckpointError(
                f"a request waits for executor {executor!r}", "there is none here"
            ) from None


class _After(Mapping[str, Any]):
    """A state with writes in it, made only if a store wants all of it."""

    def __init__(self, state: Mapping[str, Any], writes: Mapping[str, Any]) -> None:
        self._state = state
        self._writes = writes

    def _whole(self) -> dict[str, Any]:
        whole = {**self._state, **self._writes}
        for key, value in self._writes.items():
            if value is DELETED:
                del whole[key]
        return whole

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - state holds any value
        return self._whole()[key]

    def __iter__(self) -> Any:  # noqa: ANN401
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def items(self) -> Any:  # noqa: ANN401
        """Return the whole, once."""
        return self._whole().items()


async def save_snapshots(dispatches: Mapping[str, Dispatch]) -> dict[str, Any]:
    """Ask executors for what they want saved; what one raises fails the superstep.

    Args:
        dispatches: The run's executors.
    """
    found: dict[str, Any] = {}
    for name, dispatch in dispatches.items():
        if dispatch.executor.has_snapshot:
            snapshot = dispatch.executor.on_checkpoint_save()
            found[name] = await snapshot if inspect.isawaitable(snapshot) else snapshot
    return found


async def give_back_snapshots(
    snapshots: Mapping[str, Any], dispatches: Mapping[str, Dispatch]
) -> None:
    """Give executors what they had saved.

    Args:
        snapshots: What was saved, by executor.
        dispatches: The run's executors.
    """
    for name, snapshot in snapshots.items():
        done = dispatches[name].executor.on_checkpoint_restore(snapshot)
        if inspect.isawaitable(done):
            await done
