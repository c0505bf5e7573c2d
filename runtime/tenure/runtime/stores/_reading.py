"""Reading a checkpoint from a SQLite file, with the ancestors that its state is of."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from tenure.runtime._checkpoint import Checkpoint, position_in
from tenure.runtime.errors import CheckpointError, CheckpointNotFoundError
from tenure.runtime.stores._bodies import checkpoint_of
from tenure.runtime.stores._statements import FIND, ROW, SEARCH


def read_checkpoint(
    base: sqlite3.Connection, instance: str, checkpoint_id: str | None
) -> tuple[Checkpoint, dict[str, Any]]:
    """Return a checkpoint and the whole state at it.

    Call it in a transaction: meanwhile another process may remove an ancestor, having
    made whole what goes on from it.

    Args:
        base: The file.
        instance: The instance.
        checkpoint_id: The checkpoint; the newest one if `None`.

    Raises:
        CheckpointNotFoundError: There is none of that id, or none at all.
        CheckpointError: It cannot be read.
    """
    wanted = checkpoint_id
    if wanted is None:
        row = base.execute(ROW, (instance,)).fetchone()
        wanted = None if row is None else row[6]
    found = None if wanted is None else _found(base, wanted)
    if found is None:
        if wanted is not None and checkpoint_id is None:
            raise CheckpointError(
                f"checkpoint {wanted!r} of {instance!r} cannot be read",
                "it is the newest one, and it is not there",
            )
        raise CheckpointNotFoundError(instance, wanted or "(any)")
    return _assembled(base, found)


def _found(base: sqlite3.Connection, checkpoint_id: str) -> Sequence[Any] | None:
    """Return the row of a checkpoint, at the place that its id says if it says one."""
    place = position_in(checkpoint_id)
    row: Sequence[Any] | None = base.execute(FIND, (place, checkpoint_id)).fetchone()
    if row is None:
        row = base.execute(SEARCH, (checkpoint_id,)).fetchone()
    return row


def _assembled(
    base: sqlite3.Connection, row: Sequence[Any]
) -> tuple[Checkpoint, dict[str, Any]]:
    """Return the checkpoint of `row`, with its ancestors back to a whole state."""
    position, checkpoint_id, parent, run_id, epoch, superstep, kind = row[:7]
    is_full, change, standing = row[7:]
    facts = {
        "checkpoint_id": checkpoint_id,
        "parent_id": parent,
        "run_id": run_id,
        "epoch": epoch,
        "position": position,
        "superstep": superstep,
        "kind": kind,
    }
    changes = [change]
    while not is_full:
        ancestor = None if parent is None else _found(base, parent)
        if ancestor is None:
            raise CheckpointError(
                f"checkpoint {checkpoint_id!r} cannot be read",
                f"its ancestor {parent!r} is not there",
            )
        parent, is_full, change = ancestor[2], ancestor[7], ancestor[8]
        changes.append(change)
    return checkpoint_of(facts, standing, changes)
