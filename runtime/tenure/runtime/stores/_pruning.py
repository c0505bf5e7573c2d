"""Old checkpoints of a SQLite file go: how many at a time, and what becomes of others.

The rows that are left are the newest, without a gap. One that holds changes only goes
on from the row before it, because a checkpoint whose parent is not the newest one holds
the whole state. So all that are kept can be read as long as the oldest of them is
whole: the cut is made where one is, or the row at the cut is made whole in the same
transaction, from bytes that are moved about and never built into values.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime.errors import CheckpointError
from tenure.runtime.stores._bodies import joined
from tenure.runtime.stores._files import Transaction, is_locked

STEP_ROWS: Final = 200
"""How many checkpoints go in one transaction at most, or as many as hang together."""

STEP_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of them go in one transaction, more or less."""

SMALL: Final = 1024
"""A file is packed if what is left of it takes no more than that many pages, so that
nobody waits for long: some 25 milliseconds for 4 MB."""

_WORTH_IT: Final = 64
"""How many pages have to be free for that."""

_HASTE: Final = 100
"""Milliseconds that housekeeping waits for others, who are not to wait for it."""

OLDEST: Final = """
SELECT position, is_full, length(change) + length(standing) FROM tenure_checkpoint
WHERE position <= ? ORDER BY position LIMIT ?
"""
BACKWARDS: Final = """
SELECT checkpoint_id, parent_id, is_full, change FROM tenure_checkpoint
WHERE position <= ? ORDER BY position DESC
"""
MAKE_WHOLE: Final = """
UPDATE tenure_checkpoint SET is_full = 1, change = ? WHERE position = ?
"""
REMOVE: Final = """
DELETE FROM tenure_checkpoint WHERE position < ?
"""
GIVE_UP: Final = """
UPDATE tenure_instance
SET head = NULL, until = NULL, depth = 0, changed = 0, whole = 0
WHERE instance = ? AND epoch = ? AND run_id = ?
"""


def remove_some(base: sqlite3.Connection, kept: int) -> int:
    """Remove the oldest checkpoints, in the transaction that is open.

    None is made whole for that, so it may leave some that need not be kept.

    Args:
        base: The file.
        kept: Position of the oldest checkpoint that is kept.

    Returns:
        How many went; they may be fewer than might.
    """
    return _remove_before(base, _cut(_oldest(base, kept)))


def remove_step(base: sqlite3.Connection, kept: int) -> int:
    """Remove the oldest checkpoints, in a transaction of its own.

    Args:
        base: The file.
        kept: As in `remove_some`.

    Returns:
        How many went; 0 if there are none left that need not be kept.

    Raises:
        CheckpointError: The one to begin with cannot be made whole.
    """
    with Transaction(base):
        rows = _oldest(base, kept)
        cut = _cut(rows)
        if cut is None and len(rows) > 1:
            cut = rows[-1][0]
            _make_whole(base, cut)
        return _remove_before(base, cut)


def remove_all(
    base: sqlite3.Connection, instance: str, run_id: RunId, epoch: Epoch
) -> bool:
    """Remove all checkpoints, if the run owns the instance; it gives that back.

    Args:
        base: The file.
        instance: The instance.
        run_id: Who asks.
        epoch: Its epoch.

    Returns:
        Whether it is the owner; if not, nothing has changed.
    """
    with Transaction(base):
        if base.execute(GIVE_UP, (instance, epoch, run_id)).rowcount != 1:
            return False
        base.execute("DELETE FROM tenure_checkpoint")
    return True


def give_back(base: sqlite3.Connection, patience: float) -> None:
    """Return to the file system what pruning has freed, if nobody waits long for it.

    Else it stays in the file and is used again. Others come first: what is in use by
    them is left as it is.

    Args:
        base: The file.
        patience: What the connection waits for others at other times, in seconds.
    """
    free, pages = _number(base, "freelist_count"), _number(base, "page_count")
    base.execute(f"PRAGMA busy_timeout = {_HASTE}")
    try:
        # Locked by others, or no room to pack it in: it is as good as before.
        with suppress(sqlite3.OperationalError):
            if free >= _WORTH_IT and 2 * free > pages and pages - free <= SMALL:
                base.execute("VACUUM")
            base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        base.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")


def scrub(base: sqlite3.Connection) -> bool:
    """Leave nothing in the file of what was removed, nor in its log.

    Args:
        base: The file.

    Returns:
        Whether that was done; not if somebody else is using the file.
    """
    try:
        base.execute("VACUUM")
    except sqlite3.OperationalError as exc:
        if is_locked(exc):
            return False
        raise
    busy: int = base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    return not busy


def _oldest(base: sqlite3.Connection, kept: int) -> Sequence[Sequence[int]]:
    """Return position, whether it is whole, and size of the oldest, up to `kept`."""
    return base.execute(OLDEST, (kept, STEP_ROWS + 1)).fetchall()


def _cut(rows: Sequence[Sequence[int]]) -> int | None:
    """Return the position before which all may go; `None` if there is none. Pure."""
    cut, size = None, 0
    for number, (position, is_full, length) in enumerate(rows):
        if number and is_full:
            if cut is not None and size > STEP_BYTES:
                break
            cut = position
        size += length
    return cut


def _remove_before(base: sqlite3.Connection, position: int | None) -> int:
    return 0 if position is None else base.execute(REMOVE, (position,)).rowcount


def _make_whole(base: sqlite3.Connection, position: int) -> None:
    """Have the checkpoint at a position hold the whole state."""
    changes: list[bytes] = []
    wanted, found = None, False
    rows = base.execute(BACKWARDS, (position,))
    for name, parent, is_full, change in rows:
        if wanted is not None and name != wanted:
            break
        changes.append(change)
        wanted, found = parent, bool(is_full)
        if found:
            break
    rows.close()
    if not found:
        raise CheckpointError(
            f"the checkpoint at position {position} cannot be made whole",
            f"its ancestor {wanted!r} is not where it was",
        )
    base.execute(MAKE_WHOLE, (joined(changes, position), position))


def _number(base: sqlite3.Connection, pragma: str) -> Any:  # noqa: ANN401 - untyped
    return base.execute(f"PRAGMA {pragma}").fetchone()[0]
