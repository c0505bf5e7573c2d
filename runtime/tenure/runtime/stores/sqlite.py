"""Instances in SQLite: one file per instance, fenced commits, one worker thread.

The fence is the first clause of the transaction that keeps the checkpoint, so no clock
takes part: a process that was paused and wakes up to commit finds another epoch in the
row and changes nothing. WAL with `synchronous=FULL` keeps what was acknowledged across
a power failure. One file per instance, because a process that is stopped in the middle
of a transaction blocks every writer of its file.
"""

import hashlib
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

from tenure.runtime import _spawn
from tenure.runtime._checkpoint import (
    Checkpoint,
    CheckpointInfo,
    CheckpointKind,
    Claimed,
    PendingRequest,
    Standing,
)
from tenure.runtime._codec import check_value, decode, encode
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._types import describe
from tenure.runtime.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    OwnershipLostError,
)

FULL_EVERY: Final = 50
"""How many checkpoints may follow one that holds the whole state."""

_OPEN: Final = 256
"""How many files are kept open."""

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tenure_instance (
    instance TEXT PRIMARY KEY, epoch INTEGER NOT NULL, run_id TEXT NOT NULL,
    position INTEGER NOT NULL, head TEXT, since_full INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tenure_checkpoint (
    checkpoint_id TEXT PRIMARY KEY, position INTEGER NOT NULL, parent_id TEXT,
    run_id TEXT NOT NULL, epoch INTEGER NOT NULL, superstep INTEGER NOT NULL,
    kind TEXT NOT NULL, is_full INTEGER NOT NULL, body BLOB NOT NULL
);
"""
# The row is never deleted: a new one would count from 1 again, and the fence with it.
_CLAIM: Final = """
INSERT INTO tenure_instance VALUES (:instance, 1, :run_id, 0, NULL, 0)
ON CONFLICT (instance) DO UPDATE SET epoch = epoch + 1, run_id = excluded.run_id
WHERE :expected IS NULL OR epoch = :expected
RETURNING epoch, position, head
"""
_FENCE: Final = """
UPDATE tenure_instance
SET position = position + 1, head = :checkpoint_id, since_full = :since_full
WHERE instance = :instance AND epoch = :epoch AND run_id = :run_id
  AND position = :position - 1
"""
_KEEP: Final = """
INSERT INTO tenure_checkpoint VALUES
(:checkpoint_id, :position, :parent_id, :run_id, :epoch, :superstep, :kind, :is_full,
 :body)
"""
_HISTORY: Final = """
SELECT checkpoint_id, parent_id, run_id, epoch, position, superstep, kind
FROM tenure_checkpoint ORDER BY position DESC
"""

R = TypeVar("R")


class SqliteStore:
    """Keeps instances in SQLite files under a directory.

    Several processes may use one directory. Values must be plain data or of types that
    `register_state_type` knows. A cancelled caller waits for the answer of what it has
    asked for: a commit is never in doubt.

    Args:
        directory: Where the files are; it is made if it is not there.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory: Final = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        self._worker: Final = ThreadPoolExecutor(1, thread_name_prefix="tenure-sqlite")
        # Used by the worker thread only.
        self._connections: Final[OrderedDict[str, sqlite3.Connection]] = OrderedDict()
        # Used by the event loop's thread only: how many commits since a whole state.
        self._since_full: Final[dict[str, int]] = {}

    def path_of(self, instance: str) -> Path:
        """Return the file of an instance.

        Args:
            instance: Workflow and key, as one name.
        """
        name = quote(instance, safe="")
        if len(name) > 150:
            name = f"{name[:100]}-{hashlib.sha256(instance.encode()).hexdigest()[:16]}"
        return self._directory / f"{name}.sqlite3"

    async def claim(
        self, instance: str, run_id: RunId, *, expected: Epoch | None = None
    ) -> Claimed:
        """See `Store.claim`."""
        facts = {"instance": instance, "run_id": run_id, "expected": expected}
        row = await self._ask(instance, lambda base: _claim(base, facts))
        if row is None:
            owner = await self._ask(instance, lambda base: _owner(base, instance))
            raise OwnershipLostError("claim", expected or 0, owner)
        self._since_full.pop(instance, None)
        return Claimed(Epoch(row[0]), row[1], row[2])

    async def commit(
        self, instance: str, checkpoint: Checkpoint, state: Mapping[str, Any]
    ) -> None:
        """See `Store.commit`."""
        since = self._since_full.get(instance, FULL_EVERY) + 1
        is_full = since > FULL_EVERY or checkpoint.parent_id is None
        facts = {
            "instance": instance,
            "checkpoint_id": checkpoint.checkpoint_id,
            "parent_id": checkpoint.parent_id,
            "run_id": checkpoint.run_id,
            "epoch": checkpoint.epoch,
            "position": checkpoint.position,
            "superstep": checkpoint.superstep,
            "kind": checkpoint.kind,
            "is_full": is_full,
            "since_full": 0 if is_full else since,
            "body": _body(checkpoint, state if is_full else None),
        }
        owner = await self._ask(instance, lambda base: _commit(base, facts))
        if owner is not None:
            raise OwnershipLostError("commit", checkpoint.epoch, owner)
        self._since_full[instance] = 0 if is_full else since

    async def load(
        self, instance: str, checkpoint_id: str
    ) -> tuple[Checkpoint, dict[str, Any]]:
        """See `Store.load`."""
        rows = await self._ask(instance, lambda base: _chain(base, checkpoint_id))
        if not rows:
            raise CheckpointNotFoundError(instance, checkpoint_id)
        try:
            return _assemble(rows)
        except (CheckpointError, KeyError, TypeError, ValueError) as exc:
            raise CheckpointError(
                f"checkpoint {checkpoint_id!r} of {instance!r} cannot be read",
                str(exc),
            ) from exc

    async def history(self, instance: str) -> Sequence[CheckpointInfo]:
        """See `Store.history`."""
        rows = await self._ask(instance, lambda base: base.execute(_HISTORY).fetchall())
        return [
            CheckpointInfo(row[0], row[1], RunId(row[2]), Epoch(row[3]), *row[4:])
            for row in rows
        ]

    def check(self, value: object, what: str) -> None:
        """See `Store.check`."""
        check_value(value, what)

    async def aclose(self) -> None:
        """Close all files; the store opens them again when it is asked."""
        await _spawn.in_worker(self._worker, self._close_all)

    async def _ask(
        self, instance: str, question: Callable[[sqlite3.Connection], R]
    ) -> R:
        def answer() -> R:
            return question(self._connection(instance))

        try:
            return await _spawn.in_worker(self._worker, answer)
        except sqlite3.Error as exc:
            raise CheckpointError(
                f"{self.path_of(instance)} cannot be used", str(exc)
            ) from exc

    def _connection(self, instance: str) -> sqlite3.Connection:
        known = self._connections.get(instance)
        if known is not None:
            self._connections.move_to_end(instance)
            return known
        made = sqlite3.connect(
            self.path_of(instance), isolation_level=None, check_same_thread=False
        )
        made.execute("PRAGMA busy_timeout = 5000")
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = FULL")
        made.executescript(_SCHEMA)
        self._connections[instance] = made
        if len(self._connections) > _OPEN:
            self._connections.popitem(last=False)[1].close()
        return made

    def _close_all(self) -> None:
        while self._connections:
            self._connections.popitem()[1].close()


def _claim(
    base: sqlite3.Connection, facts: Mapping[str, Any]
) -> tuple[int, int, str | None] | None:
    return cast(
        "tuple[int, int, str | None] | None", base.execute(_CLAIM, facts).fetchone()
    )


def _owner(base: sqlite3.Connection, instance: str) -> int:
    row = base.execute(
        "SELECT epoch FROM tenure_instance WHERE instance = ?", (instance,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def _commit(base: sqlite3.Connection, facts: Mapping[str, Any]) -> int | None:
    """Keep a checkpoint in one transaction; return the owner's epoch if refused."""
    base.execute("BEGIN IMMEDIATE")
    try:
        kept = base.execute(_FENCE, facts).rowcount == 1
        if kept:
            base.execute(_KEEP, facts)
            base.execute("COMMIT")
            return None
        base.execute("ROLLBACK")
    except BaseException:
        if base.in_transaction:
            base.execute("ROLLBACK")
        raise
    return _owner(base, facts["instance"])


def _chain(base: sqlite3.Connection, checkpoint_id: str) -> list[tuple[Any, ...]]:
    """Return a checkpoint's row and its ancestors' back to a whole state."""
    rows: list[tuple[Any, ...]] = []
    wanted: str | None = checkpoint_id
    while wanted is not None:
        row = base.execute(
            "SELECT * FROM tenure_checkpoint WHERE checkpoint_id = ?", (wanted,)
        ).fetchone()
        if row is None:
            break
        rows.append(row)
        if row[7]:
            break
        wanted = row[2]
    return rows


def _body(checkpoint: Checkpoint, state: Mapping[str, Any] | None) -> bytes:
    standing = checkpoint.standing
    body: dict[str, Any] = {
        "workflow": checkpoint.workflow,
        "instance": checkpoint.instance,
        "signature": checkpoint.signature,
        "writes": dict(checkpoint.writes),
        "deleted": list(checkpoint.deleted),
        "messages": [list(one) for one in standing.messages],
        "answers": [list(one) for one in standing.answers],
        "fan_ins": [list(one) for one in standing.fan_ins],
        "requests": [
            [one.request_id, one.executor_id, one.data, describe(one.response_type)]
            for one in standing.requests
        ],
        "snapshots": dict(standing.snapshots),
    }
    if state is not None:
        body["state"] = dict(state.items())
    return encode(body, "checkpoint")


def _assemble(rows: list[tuple[Any, ...]]) -> tuple[Checkpoint, dict[str, Any]]:
    """Return the newest of `rows` and the state that all of them make."""
    if not rows[-1][7]:
        raise CheckpointError("an ancestor is missing", str(rows[-1][2]))
    bodies = [decode(row[8]) for row in rows]
    state: dict[str, Any] = dict(bodies[-1]["state"])
    for body in reversed(bodies[:-1]):
        state.update(body["writes"])
        for key in body["deleted"]:
            state.pop(key, None)
    row, body = rows[0], bodies[0]
    checkpoint = Checkpoint(
        checkpoint_id=row[0],
        position=row[1],
        parent_id=row[2],
        run_id=RunId(row[3]),
        epoch=Epoch(row[4]),
        superstep=row[5],
        kind=cast("CheckpointKind", row[6]),
        workflow=body["workflow"],
        instance=body["instance"],
        signature=body["signature"],
        writes=body["writes"],
        deleted=body["deleted"],
        standing=Standing(
            [(target, message) for target, message in body["messages"]],
            [(target, request, answer) for target, request, answer in body["answers"]],
            [(edge, source, message) for edge, source, message in body["fan_ins"]],
            [PendingRequest(*request) for request in body["requests"]],
            body["snapshots"],
        ),
    )
    return checkpoint, state
