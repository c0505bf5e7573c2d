"""Checkpoints in this process: for tests, for time travel, gone when it ends."""

import functools
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from tenure.instrumentation.operations import Owner
from tenure.runtime._answers import Known
from tenure.runtime._checkpoint import (
    Checkpoint,
    CheckpointInfo,
    Claimed,
    Held,
    Standing,
)
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._isolation import isolate
from tenure.runtime._requests import shown
from tenure.runtime.errors import (
    CheckpointNotFoundError,
    IsolationError,
    OwnershipLostError,
    StateTypeError,
)
from tenure.runtime.stores._retention import FULL_EVERY, PRUNE_EVERY, check_keep

KEEP: Final = 100
"""How many checkpoints of an instance are kept, if nobody says otherwise."""

P = ParamSpec("P")
R = TypeVar("R")

NONE: Final = Epoch(0)
NO_RUN: Final = RunId("")


@dataclass(slots=True)
class _Kept:
    """One instance.

    Invariant: it is never removed, so that its epochs are never issued again.
    """

    epoch: Epoch = NONE
    run_id: RunId = NO_RUN
    holder: str = ""
    rank: int = 0
    heard: float | None = None  # when the owner was heard last; `None`: not held
    position: int = 0
    head: str | None = None
    since_full: int = FULL_EVERY
    checkpoints: dict[str, Checkpoint] = field(default_factory=dict[str, Checkpoint])
    full: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def state_at(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """Return the whole state at a checkpoint that is kept."""
        chain = [checkpoint]
        while chain[-1].checkpoint_id not in self.full:
            parent = chain[-1].parent_id
            assert parent is not None  # a checkpoint without a parent is whole
            chain.append(self.checkpoints[parent])
        state = dict(self.full[chain.pop().checkpoint_id])
        for one in reversed(chain):
            state.update(one.writes)
            for key in one.deleted:
                state.pop(key, None)
        return state

    def prune(self, keep: int) -> int:
        """Keep the newest checkpoints only, the oldest of them whole."""
        line = list(self.checkpoints)
        gone, kept = line[:-keep], line[-keep:]
        if not gone:
            return 0
        # Only a child of the checkpoint before it is not whole, so the others can be
        # read as before.
        self.full[kept[0]] = self.state_at(self.checkpoints[kept[0]])
        for one in gone:
            del self.checkpoints[one]
            self.full.pop(one, None)
        return len(gone)


def _alone(
    method: "Callable[Concatenate[MemoryStore, P], R]",
) -> "Callable[Concatenate[MemoryStore, P], R]":
    """Have a method look and change as one: whoever shares the store may do so too."""

    @functools.wraps(method)
    def alone(self: "MemoryStore", /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return alone


class MemoryStore:
    """Keeps checkpoints in memory. Nothing is encoded, so no type needs registering.

    Workflows that share it share its instances. Safe to share between threads and event
    loops.

    Args:
        lease: Seconds of silence after which an owner may be taken for dead.
        keep: How many of an instance's newest checkpoints are kept at least; all if
            `None`. Older ones go now and then, so that there are never many more.
    """

    def __init__(self, *, lease: float = 30.0, keep: int | None = KEEP) -> None:
        if not lease >= 0:
            raise ValueError(f"lease={lease}: pass seconds")
        check_keep(keep)
        self.id: Final = secrets.token_hex(4)
        self.lease: Final = lease
        self.keep: Final = keep
        # Held by every method that looks or changes: none of them awaits anything.
        self.lock: Final = threading.RLock()
        self._instances: Final[dict[str, _Kept]] = {}

    @_alone
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
        """See `Store.claim`."""
        kept = self._instances.setdefault(instance, _Kept())
        if expected is not None and kept.epoch != expected:
            raise OwnershipLostError("claim", expected, kept.epoch)
        if holder and kept.holder == holder and kept.rank > rank:
            raise OwnershipLostError("claim", 0, kept.epoch)
        left = self._seconds_left(kept)
        if left > 0 and not takeover and kept.holder != holder:
            return Known(Held(kept.run_id, kept.epoch, left))
        kept.epoch = Epoch(kept.epoch + 1)
        kept.run_id, kept.holder, kept.rank = run_id, holder, rank
        kept.heard = time.monotonic()
        return Known(Claimed(kept.epoch, kept.position, kept.head))

    @_alone
    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner]:
        """See `Store.commit`."""
        kept = self._instances.setdefault(instance, _Kept())
        if (kept.epoch, kept.run_id, kept.position + 1) != (
            checkpoint.epoch,
            checkpoint.run_id,
            checkpoint.position,
        ):
            raise OwnershipLostError("commit", checkpoint.epoch, kept.epoch)
        own = _own(checkpoint)
        since_full = kept.since_full + 1
        # Only a child of the head can go on from what the head goes on from.
        if since_full > FULL_EVERY or checkpoint.parent_id != kept.head:
            kept.full[checkpoint.checkpoint_id] = dict(state)
            since_full = 0
        kept.checkpoints[checkpoint.checkpoint_id] = own
        kept.since_full = since_full
        kept.position = checkpoint.position
        kept.head = checkpoint.checkpoint_id
        kept.heard = None if final else time.monotonic()
        if self.keep is not None and len(kept.checkpoints) >= self.keep + PRUNE_EVERY:
            kept.prune(self.keep)
        return Known(Owner(kept.epoch, kept.run_id))

    @_alone
    def extend(
        self, instance: str, run_id: RunId, epoch: Epoch, *, final: bool = False
    ) -> Awaitable[bool]:
        """See `Store.extend`."""
        kept = self._instances.get(instance, _Kept())
        owns = (kept.epoch, kept.run_id) == (epoch, run_id)
        if owns and kept.heard is not None:
            kept.heard = None if final else time.monotonic()
        return Known(owns)

    @_alone
    def load(
        self, instance: str, checkpoint_id: str | None = None
    ) -> Awaitable[tuple[Checkpoint, dict[str, Any]]]:
        """See `Store.load`."""
        kept = self._instances.get(instance, _Kept())
        wanted = checkpoint_id or kept.head
        found = None if wanted is None else kept.checkpoints.get(wanted)
        if found is None:
            raise CheckpointNotFoundError(instance, checkpoint_id or "(any)")
        what = f"checkpoint {found.checkpoint_id}"
        own = replace(_own(found), writes=isolate(dict(found.writes), what))
        return Known((own, isolate(kept.state_at(found), what)))

    @_alone
    def history(self, instance: str) -> Awaitable[Sequence[CheckpointInfo]]:
        """See `Store.history`."""
        kept = self._instances.get(instance, _Kept())
        return Known([info_of(one) for one in reversed(kept.checkpoints.values())])

    @_alone
    def prune(self, instance: str, keep: int) -> Awaitable[int]:
        """See `Store.prune`."""
        check_keep(keep)
        kept = self._instances.get(instance, _Kept())
        return Known(kept.prune(keep))

    @_alone
    def erase(self, instance: str, run_id: RunId, epoch: Epoch) -> Awaitable[None]:
        """See `Store.erase`."""
        kept = self._instances.get(instance, _Kept())
        if (kept.epoch, kept.run_id) != (epoch, run_id):
            raise OwnershipLostError("erase", epoch, kept.epoch)
        kept.checkpoints, kept.full = {}, {}
        kept.head, kept.since_full, kept.heard = None, FULL_EVERY, None
        return Known(None)

    def check(self, value: object, what: str) -> None:
        """See `Store.check`: everything that can be isolated can be kept."""
        try:
            isolate(value, what)
        except IsolationError as exc:
            kind = f"{exc.value_type} ({exc.reason})"
            raise StateTypeError(what, kind) from exc

    def _seconds_left(self, kept: _Kept) -> float:
        if kept.heard is None:
            return 0.0
        return kept.heard + self.lease - time.monotonic()


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
    """Return a copy whose messages, answers and snapshots nobody else can change.

    State values are shared: the engine never changes them.
    """
    standing = checkpoint.standing
    what = f"checkpoint {checkpoint.checkpoint_id}"
    own = Standing(
        isolate(standing.messages, what),
        isolate(standing.answers, what),
        isolate(standing.fan_ins, what),
        [shown(one) for one in standing.requests],
        isolate(dict(standing.snapshots), what),
    )
    return replace(checkpoint, standing=own)
