"""The fence of a SQLite file: it lets the owner commit and nobody else."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from tenure.instrumentation.operations import Owner
from tenure.runtime._checkpoint import Checkpoint
from tenure.runtime.errors import OwnershipLostError
from tenure.runtime.stores._bodies import Body
from tenure.runtime.stores._statements import (
    FENCE,
    KEEP,
    OWNER,
    ROW,
)

Committing = tuple[Checkpoint, Sequence[Any], Sequence[Any]]
"""A checkpoint, what the fence is asked with, and the row to keep."""


def committing(
    instance: str, checkpoint: Checkpoint, body: Body, until: float | None
) -> Committing:
    """Return what `pass_fence` takes.

    Args:
        instance: The instance.
        checkpoint: What to keep.
        body: The same as bytes.
        until: When the owner may be taken for dead; `None` if it gives the instance
            back.
    """
    chain = body.chain
    fence = (
        *(checkpoint.checkpoint_id, until, chain.depth, chain.changed, chain.whole),
        *(instance, checkpoint.epoch, checkpoint.run_id, checkpoint.position),
    )
    row = (
        checkpoint.position,
        checkpoint.checkpoint_id,
        checkpoint.parent_id,
        checkpoint.run_id,
        checkpoint.epoch,
        checkpoint.superstep,
        checkpoint.kind,
        body.is_full,
        body.change,
        body.standing,
    )
    return checkpoint, fence, row


def pass_fence(base: sqlite3.Connection, what: Committing) -> Owner:
    """Keep a checkpoint in the transaction that is open, if its run is the owner.

    Args:
        base: The file.
        what: What `committing` returned.

    Returns:
        Who owns the instance, as the row says it: evidence, by which nothing is
        decided. A fence that does not hold shows in it.

    Raises:
        OwnershipLostError: The epoch, the run or the position is not the expected one;
            nothing has changed.
    """
    checkpoint, fence, row = what
    instance = fence[5]
    if base.execute(FENCE, fence).rowcount != 1:
        raise OwnershipLostError("commit", checkpoint.epoch, epoch_in(base, instance))
    # Asked apart: an update that returns what it has updated takes longer than both.
    owner = base.execute(OWNER, (instance,)).fetchone()
    base.execute(KEEP, row)
    return Owner(*owner)


def epoch_in(base: sqlite3.Connection, instance: str) -> int:
    """Return the newest epoch of an instance; 0 if it has none."""
    row = base.execute(ROW, (instance,)).fetchone()
    return 0 if row is None else int(row[0])
