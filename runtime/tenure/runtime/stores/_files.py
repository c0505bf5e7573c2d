"""SQLite files: opening, transactions, and what tells one file from another."""

import os
import secrets
import sqlite3
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tenure.instrumentation.operations import Trigger
from tenure.runtime._answers import Inline, Worker
from tenure.runtime._endings import current_trigger
from tenure.runtime.errors import CheckpointError
from tenure.runtime.stores._statements import FOREIGN, LAYOUT, SCHEMA

_AT_EXIT: Final = 1.0
"""For how many seconds the exit of the interpreter waits for files to be closed."""

Connections = OrderedDict[str, sqlite3.Connection]
"""Open files by instance, the one that was used last at the end."""


class Transaction:
    """`BEGIN IMMEDIATE` to `COMMIT`, or to `ROLLBACK` if anything is raised."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base: Final = base

    def __enter__(self) -> Self:
        self._base.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        base = self._base
        try:
            if exc is None:
                base.execute("COMMIT")
        finally:
            if base.in_transaction:
                with suppress(sqlite3.Error):
                    base.execute("ROLLBACK")


class Snapshot(Transaction):
    """A transaction that only reads: all as of one moment, and in nobody's way."""

    def __enter__(self) -> Self:
        self._base.execute("BEGIN")
        return self


def open_file(path: Path, patience: float) -> sqlite3.Connection:
    """Open the file of an instance, and make it if it is not there.

    Args:
        path: The file.
        patience: Seconds to wait for another process's transaction.

    Raises:
        CheckpointError: It is another program's, or of a later version of this one.
        sqlite3.Error: It cannot be opened.
    """
    made = sqlite3.connect(
        path, timeout=patience, isolation_level=None, check_same_thread=False
    )
    try:
        _refuse_foreign(made, path)
        made.execute("PRAGMA journal_mode = WAL")
        made.execute("PRAGMA synchronous = FULL")
        # Some builds overwrite what is deleted with zeros, which writes all of it once
        # more: pruning takes thirty times as long. Erasing sees to that by itself.
        made.execute("PRAGMA secure_delete = OFF")
        if _layout(made) != LAYOUT:
            made.executescript(SCHEMA)
    except BaseException:
        made.close()
        raise
    return made


def _refuse_foreign(base: sqlite3.Connection, path: Path) -> None:
    """Refuse a file of another program, or of a later version of this one."""
    layout = _layout(base)
    if layout > LAYOUT:
        reason = f"it has layout {layout}, which a later version made; use that one"
    elif not layout and base.execute(FOREIGN).fetchone() is not None:
        reason = "it is a database of something else"
    else:
        return
    raise CheckpointError(f"{path} cannot be used", reason)


def _layout(base: sqlite3.Connection) -> int:
    [layout] = base.execute("PRAGMA user_version").fetchone()
    return int(layout)


def file_id(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; `None` if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def close_all(connections: Connections) -> None:
    """Close all files and forget them."""
    while connections:
        connections.popitem()[1].close()


def finish(process: int, worker: Worker | Inline, connections: Connections) -> None:
    """Close what a store has open that nobody holds any more; in a finalizer.

    Never beside the thread that works: at the exit of the interpreter it may be in the
    middle of a commit, and SQLite does not survive that.

    Args:
        process: Whose connections they are; a fork leaves its parent's alone.
        worker: What works with them.
        connections: Open files.
    """
    if process == os.getpid():
        at_exit = current_trigger() is Trigger.SHUTDOWN
        worker.leave(partial(close_all, connections), _AT_EXIT if at_exit else 0.0)


def identity(file: Path) -> str:
    """Return what is in `file`; who comes first decides what that is."""
    with suppress(FileNotFoundError):
        return file.read_text(encoding="ascii").strip()
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    draft.write_text(f"{secrets.token_hex(4)}\n", encoding="ascii")
    try:
        os.link(draft, file)
    except FileExistsError:
        pass
    except OSError:  # where files cannot have two names
        draft.replace(file)
    draft.unlink(missing_ok=True)
    return file.read_text(encoding="ascii").strip()
