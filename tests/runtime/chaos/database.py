"""What is true of a database, looked up without any of tenure's code."""

import hashlib
import itertools
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec


def database(directory: Path) -> sqlite3.Connection:
    [file] = directory.glob("chaos*default*.sqlite3")
    return sqlite3.connect(file, timeout=20)


def watch(directory: Path) -> None:
    """Have SQLite keep a log of claims and commits, in the transactions themselves."""
    base = database(directory)
    with base:
        base.executescript("""
            CREATE TABLE audit (
                number INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER, run_id TEXT,
                position INTEGER, head TEXT
            );
            CREATE TRIGGER audit_words AFTER UPDATE OF epoch, position
            ON tenure_instance BEGIN
                INSERT INTO audit (epoch, run_id, position, head)
                VALUES (new.epoch, new.run_id, new.position, new.head);
            END;
        """)
    base.close()


def wrong_in_audit(base: sqlite3.Connection) -> Iterator[str]:
    """Yield what the log of claims and commits shows to be wrong."""
    written = {
        row[0]: row[1:]
        for row in base.execute(
            "SELECT checkpoint_id, epoch, run_id, position FROM tenure_checkpoint"
        )
    }
    rows = base.execute(
        "SELECT epoch, run_id, position, head FROM audit ORDER BY number"
    ).fetchall()
    for before, after in itertools.pairwise(rows):
        epoch, run_id, position, head = after
        if position == before[2]:
            if epoch != before[0] + 1:
                yield f"epoch {before[0]} was followed by a claim of epoch {epoch}"
            continue
        if (epoch, run_id) != before[:2]:
            yield f"a commit changed the owner: {before} to {after}"
        if position != before[2] + 1:
            yield f"a commit went from position {before[2]} to {position}"
        if written.get(head) != (epoch, run_id, position):
            yield f"{written.get(head)} committed while {after} was the owner"


def wrong_in_line(base: sqlite3.Connection) -> Iterator[str]:
    """Yield what is wrong with the line of checkpoints and the chain in their state."""
    count, chain, parent, epoch, superstep, run = 0, "", None, 0, 0, ""
    state: dict[str, Any] = {}
    for row in base.execute(
        "SELECT position, checkpoint_id, parent_id, run_id, epoch, superstep, kind, "
        "is_full, change FROM tenure_checkpoint ORDER BY position"
    ):
        position, checkpoint, its_parent, its_run, its_epoch, its_step, kind = row[:7]
        if its_parent != parent:
            yield f"checkpoint {position} follows {its_parent} and not {parent}"
        if its_epoch < epoch or (its_epoch == epoch and its_run != run):
            yield f"checkpoint {position} of epoch {its_epoch} follows epoch {epoch}"
        expected = superstep + 1 if its_run == run else 1 if kind == "superstep" else 0
        if its_step != expected:
            yield f"checkpoint {position} is of superstep {its_step}, not {expected}"
        change = msgspec.msgpack.decode(row[8])
        state = change["state"] if row[7] else {**state, **change["writes"]}
        if kind == "superstep":
            count += 1
            chain = hashlib.sha256(f"{chain}{count}".encode()).hexdigest()
            if state.get("by") != [its_run, its_epoch]:
                yield f"checkpoint {position} of {its_run} has state of {state['by']}"
        if (state.get("count", 0), state.get("chain", "")) != (count, chain):
            yield f"checkpoint {position} has count {state.get('count')}, not {count}"
            count, chain = state.get("count", 0), state.get("chain", "")
        parent, epoch, superstep, run = checkpoint, its_epoch, its_step, its_run


def wrong_in_head(base: sqlite3.Connection) -> Iterator[str]:
    row = base.execute("SELECT position, head FROM tenure_instance").fetchone()
    newest = base.execute(
        "SELECT position, checkpoint_id FROM tenure_checkpoint "
        "ORDER BY position DESC LIMIT 1"
    ).fetchone()
    if row != (newest or (0, None)):
        yield f"the instance is at {row}, and its newest checkpoint is {newest}"


def stale_commits_in(directory: Path) -> set[tuple[str, int]]:
    """Return each run that committed after a claim, and the epoch that was claimed."""
    base = database(directory)
    try:
        return {
            (run_id, owner)
            for run_id, owner in base.execute(
                "SELECT kept.run_id, audit.epoch FROM audit "
                "JOIN tenure_checkpoint AS kept ON kept.checkpoint_id = audit.head "
                "WHERE kept.epoch < audit.epoch AND audit.position > "
                "(SELECT before.position FROM audit AS before "
                "WHERE before.number = audit.number - 1)"
            )
        }
    finally:
        base.close()


def wrong_in(directory: Path, *, audited: bool = False) -> list[str]:
    base = database(directory)
    try:
        found = [*wrong_in_line(base), *wrong_in_head(base)]
        if audited:
            found += wrong_in_audit(base)
        if base.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            found.append("the file is damaged")
        return found
    finally:
        base.close()
