"""A run saves a checkpoint: in the store first, then in memory."""

import warnings
from collections.abc import Mapping
from typing import Any

from tenure.runtime._answers import finished
from tenure.runtime._change import UNCHANGED, Change
from tenure.runtime._checkpoint import EMPTY, CheckpointKind
from tenure.runtime._events import CheckpointFailed
from tenure.runtime._keeper import After
from tenure.runtime._run import Run
from tenure.runtime.errors import CheckpointError


async def save(
    run: Run,
    kind: CheckpointKind,
    change: Change = UNCHANGED,
    snapshots: Mapping[str, Any] = EMPTY,
) -> BaseException | None:
    """Save a checkpoint of `run` and make visible what is in it.

    The store decides: what it has kept is made visible even if the run is superseded,
    abandoned or cancelled meanwhile, and what it has refused never is.

    Args:
        run: Who owns the instance.
        kind: What the checkpoint is taken after.
        change: What changes with it.
        snapshots: What executors want saved.

    Returns:
        A cancellation that came meanwhile; the caller raises it once it has taken in
        that everything was saved.

    Raises:
        OwnershipLostError: Another run owns the instance in the store.
        StateTypeError: A value cannot be kept.
        CheckpointError: The store cannot be used, and the run is to fail for that.
    """
    holding, keeper = run.instance, run.instance.keeper
    assert keeper is not None
    unsaved = holding.unsaved
    writes = {**unsaved, **change.writes} if unsaved else change.writes
    requests = holding.requests_after(change)
    checkpoint = keeper.draft(run, kind, requests, writes, snapshots)
    whole = After(holding.state_values, change.writes)
    final = not run.mailbox
    try:
        owner, interruption = await finished(
            keeper.store.commit(keeper.name, checkpoint, whole, final=final)
        )
    except CheckpointError as exc:
        if keeper.fails:
            raise
        _go_on_without(run, change, writes, exc)
        return None
    # No await from here to the commit in memory.
    run.head, run.position = checkpoint.checkpoint_id, checkpoint.position
    run.final = final
    if unsaved:
        holding.unsaved = EMPTY
    if holding.commit(run, change, checkpoint.checkpoint_id, owner):
        run.voice.checkpoint_saved(
            owner or run.owner,
            checkpoint.checkpoint_id,
            checkpoint.parent_id,
            dict.fromkeys(snapshots, int(run.epoch)),
            previous=run.previous,
        )
    run.previous = None
    return interruption


def _go_on_without(
    run: Run, change: Change, writes: Mapping[str, Any], error: CheckpointError
) -> None:
    """Commit in memory only; the next checkpoint will have what this one should have.

    Nobody knows meanwhile whether the run still owns the instance.
    """
    if run.instance.commit(run, change, run.head):
        run.instance.unsaved = dict(writes)
    run.note(CheckpointFailed, run.index, error)
    warnings.warn(
        f"run {run.run_id} of {run.instance!r} goes on without a checkpoint: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
