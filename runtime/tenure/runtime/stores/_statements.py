"""What the SQLite store says to its files."""

from typing import Final

# The row is never deleted: a new one would count from 1 again, and the fence with it.
# There is no index of checkpoint ids: it would cost every commit a page of the log, and
# an id says the position.
SCHEMA: Final = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS tenure_instance (
    instance TEXT PRIMARY KEY, epoch INTEGER NOT NULL, run_id TEXT NOT NULL,
    holder TEXT NOT NULL, rank INTEGER NOT NULL, until REAL,
    position INTEGER NOT NULL, head TEXT,
    depth INTEGER NOT NULL, changed INTEGER NOT NULL, whole INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenure_checkpoint (
    position INTEGER PRIMARY KEY, checkpoint_id TEXT NOT NULL, parent_id TEXT,
    run_id TEXT NOT NULL, epoch INTEGER NOT NULL, superstep INTEGER NOT NULL,
    kind TEXT NOT NULL, is_full INTEGER NOT NULL, change BLOB NOT NULL,
    standing BLOB NOT NULL
);
PRAGMA user_version = 1;
COMMIT;
"""
LAYOUT: Final = 1
"""What `SCHEMA` makes; it is written into the file."""

FOREIGN: Final = """
SELECT name FROM sqlite_master
WHERE type = 'table' AND name NOT LIKE 'tenure\\_%' ESCAPE '\\'
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
# What every commit says has no names: binding by name costs more than a microsecond.
FENCE: Final = """
UPDATE tenure_instance
SET position = position + 1, head = ?, until = ?, depth = ?, changed = ?, whole = ?
WHERE instance = ? AND epoch = ? AND run_id = ? AND position = ? - 1
"""
KEEP: Final = """
INSERT INTO tenure_checkpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
OWNER: Final = """
SELECT epoch, run_id FROM tenure_instance WHERE instance = ?
"""
# What was given back stays so: a heartbeat may come after its run's last commit.
EXTEND: Final = """
UPDATE tenure_instance SET until = CASE WHEN until IS NULL THEN NULL ELSE :until END
WHERE instance = :instance AND epoch = :epoch AND run_id = :run_id
"""
FIND: Final = """
SELECT position, checkpoint_id, parent_id, run_id, epoch, superstep, kind, is_full,
       change, standing
FROM tenure_checkpoint WHERE position = ? AND checkpoint_id = ?
"""
SEARCH: Final = """
SELECT position, checkpoint_id, parent_id, run_id, epoch, superstep, kind, is_full,
       change, standing
FROM tenure_checkpoint WHERE checkpoint_id = ?
"""
HISTORY: Final = """
SELECT checkpoint_id, parent_id, run_id, epoch, position, superstep, kind
FROM tenure_checkpoint ORDER BY position DESC
"""
