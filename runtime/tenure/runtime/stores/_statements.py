"""What the SQLite store says to its files."""

from typing import Final

# The row is never deleted: a new one would count from 1 again, and the fence with it.
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tenure_instance (
    instance TEXT PRIMARY KEY, epoch INTEGER NOT NULL, run_id TEXT NOT NULL,
    holder TEXT NOT NULL, rank INTEGER NOT NULL, until REAL,
    position INTEGER NOT NULL, head TEXT,
    depth INTEGER NOT NULL, changed INTEGER NOT NULL, whole INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenure_checkpoint (
    position INTEGER PRIMARY KEY, checkpoint_id TEXT NOT NULL UNIQUE, parent_id TEXT,
    run_id TEXT NOT NULL, epoch INTEGER NOT NULL, superstep INTEGER NOT NULL,
    kind TEXT NOT NULL, is_full INTEGER NOT NULL, change BLOB NOT NULL,
    standing BLOB NOT NULL
);
"""
ROW: Final = """
SELECT epoch, run_id, holder, rank, until, position, head, depth, changed, whole
FROM tenure_instance WHERE instance = ?
"""
CLAIM: Final = """
INSERT INTO tenure_instance VALUES
(:instance, 1, :run_id, :holder, :rank, :until, 0, NULL, 0, 0, 0)
ON CONFLICT (instance) DO UPDATE
SET epoch = epoch + 1, run_id = :run_id, holder = :holder, rank = :rank,
    until = :until
"""
FENCE: Final = """
UPDATE tenure_instance
SET position = position + 1, head = :checkpoint_id, until = :until, depth = :depth,
    changed = :changed, whole = :whole
WHERE instance = :instance AND epoch = :epoch AND run_id = :run_id
  AND position = :position - 1
"""
KEEP: Final = """
INSERT INTO tenure_checkpoint VALUES
(:position, :checkpoint_id, :parent_id, :run_id, :epoch, :superstep, :kind, :is_full,
 :change, :standing)
"""
# Evidence: read after the fence and in its transaction, and decided by nobody.
OWNER: Final = "SELECT epoch, run_id FROM tenure_instance WHERE instance = :instance"
EXTEND: Final = """
UPDATE tenure_instance SET until = :until
WHERE instance = :instance AND epoch = :epoch AND run_id = :run_id
"""
FIND: Final = """
SELECT position, checkpoint_id, parent_id, run_id, epoch, superstep, kind, is_full,
       change, standing
FROM tenure_checkpoint WHERE checkpoint_id = ?
"""
ANCESTOR: Final = """
SELECT parent_id, is_full, change FROM tenure_checkpoint WHERE checkpoint_id = ?
"""
HISTORY: Final = """
SELECT checkpoint_id, parent_id, run_id, epoch, position, superstep, kind
FROM tenure_checkpoint ORDER BY position DESC
"""
