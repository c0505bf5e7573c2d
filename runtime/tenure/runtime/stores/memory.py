"""Checkpoints in this process: for tests, for time travel, gone when it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tenure.runtime._checkpoint import Checkpoint, CheckpointInfo, Claimed
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._isolation import isolate
from tenure.runtime.errors import CheckpointNotFoundError, OwnershipLostError

FULL_EVERY: Final = 50
"""How many checkpoints may follow one that holds the whole state."""


def info_of(checkpoint: Checkpoint) -> CheckpointInfo:
    """Return what a history says of `checkpoint`."""
    return CheckpointInfo(
        checkpoint.checkpoint_id,
        checkpoint.parent_id,
        checkpoint.run_id,
        checkpoint.epoch,
        checkpoint.position,
        checkpoint.superstep,
        checkpoint.kind,
    )


def _own(checkpoint: Checkpoint) -> Checkpoint:
    """Return a copy whose messages, answers and snapshots nobody else can change."""
    standing = checkpoint.standing
    what = f"checkpoint {checkpoint.checkpoint_id}"
    parts = {
        "messages": standing.messages,
        "answers": standing.answers,
        "fan_ins": standing.fan_ins,
        "snapshots": standing.snapshots,
    }
    own = {name: isolate(part, what) for name, part in parts.items()}
    return replace(checkpoint, standing=replace(standing, **own))


@dataclass(slots=True)
class _Kept:
    """One instance."""

    epoch: Epoch = field(default_factory=lambda: Epoch(0))
    run_id: RunId = field(default_factory=lambda: RunId(""))
    position: int = 0
    head: str | None = None
    since_full: int = FULL_EVERY
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    full: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])


class MemoryStore:
    """Keeps checkpoints in memory. Nothing is encoded, so no type needs registering."""

    def __init__(self) -> None:
        self._instances: Final[dict[str, _Kept]] = {}

    async def claim(
        self, instance: str, run_id: RunId, *, expected: Epoch | None = None
    ) -> Claimed:
        """See `Store.claim`."""
        kept = self._instances.setdefault(instance, _Kept())
        if expected is not None and kept.epoch != expected:
            raise OwnershipLostError("claim", expected, kept.epoch)
        kept.epoch = Epoch(kept.epoch + 1)
        kept.run_id = run_id
        return Claimed(kept.epoch, kept.position, kept.head)

    async def commit(
        self, instance: str, checkpoint: Checkpoint, state: Mapping[str, Any]
    ) -> None:
        """See `Store.commit`."""
        kept = self._instances.setdefault(instance, _Kept())
        if (kept.epoch, kept.run_id, kept.position + 1) != (
            checkpoint.epoch,
            checkpoint.run_id,
            checkpoint.position,
        ):
            raise OwnershipLostError("commit", checkpoint.epoch, kept.epoch)
        kept.checkpoints[checkpoint.checkpoint_id] = _own(checkpoint)
        kept.since_full += 1
        if kept.since_full > FULL_EVERY or checkpoint.parent_id is None:
            kept.full[checkpoint.checkpoint_id] = dict(state.items())
            kept.since_full = 0
        kept.position = checkpoint.position
        kept.head = checkpoint.checkpoint_id

    async def load(
        self, instance: str, checkpoint_id: str
    ) -> tuple[Checkpoint, dict[str, Any]]:
        """See `Store.load`."""
        kept = self._instances.get(instance, _Kept())
        chain: list[Checkpoint] = []
        wanted: str | None = checkpoint_id
        state: dict[str, Any] = {}
        while wanted is not None:
            found = kept.checkpoints.get(wanted)
            if found is None:
                raise CheckpointNotFoundError(instance, wanted)
            chain.append(found)
            if wanted in kept.full:
                state = dict(kept.full[wanted])
                chain.pop()
                break
            wanted = found.parent_id
        for checkpoint in reversed(chain):
            state.update(checkpoint.writes)
            for key in checkpoint.deleted:
                state.pop(key, None)
        return _own(kept.checkpoints[checkpoint_id]), state

    async def history(self, instance: str) -> Sequence[CheckpointInfo]:
        """See `Store.history`."""
        kept = self._instances.get(instance, _Kept())
        return [info_of(one) for one in reversed(kept.checkpoints.values())]

    def check(self, value: object, what: str) -> None:
        """See `Store.check`: everything that can be isolated can be kept."""
