"""SQLite files: opening, transactions, and what tells one file from another."""

import hashlib
import os
import secrets
import sqlite3
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote

from tenure.instrumentation.operations import Trigger
from tenure.runtime._answers import Inline, Worker
from tenure.runtime._endings import current_trigger
from tenure.runtime.errors import CheckpointError
from tenure.runtime.stores._statements import FOREIGN, LAYOUT, SCHEMA

_AT_EXIT: Final = 1.0
"""For how many seconds the exit of the interpreter waits for files to be closed."""

_LOCKED: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)

_FOR_ONE: Final = 3
"""How many file descriptors SQLite needs for one: it, its log, its shared memory."""

_NAME: Final = 120
"""How much of an instance's name is in the name of its file."""


class LockedError(Exception):
    """Another process's transaction is in the way; nothing has been done yet.

    Args:
        error: What SQLite says.
    """

    def __init__(self, error: sqlite3.OperationalError) -> None:
        super().__init__(error)
        self.error = error


class Transaction:
    """`BEGIN IMMEDIATE` to `COMMIT`, or to `ROLLBACK` if anything is raised.

    Entering it raises `LockedError` if another process is in one.
    """

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base: Final = base

    def __enter__(self) -> Self:
        try:
            self._base.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as exc:
            if is_locked(exc):
                raise LockedError(exc) from exc
            raise
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
        LockedError: Another process is making it.
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
    except BaseException as exc:
        made.close()
        if isinstance(exc, sqlite3.OperationalError) and is_locked(exc):
            raise LockedError(exc) from exc
        raise
    return made


def is_locked(error: sqlite3.OperationalError) -> bool:
    """Tell a lock of another process from all that may be wrong with a file.

    SQLite gives up with `SQLITE_PROTOCOL` where the log is locked for long.
    """
    return error.sqlite_errorcode & 0xFF in _LOCKED


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


def file_id(path: Path | str) -> tuple[int, int] | None:
    """Return what tells a file from another of its name; `None` if there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def path_of(directory: Path, instance: str) -> Path:
    """Return the file of an instance.

    Args:
        directory: Where the files are.
        instance: Workflow and key, as one name.
    """
    # The digest tells apart what a file system does not, such as upper and lower case,
    # and what is cut off.
    digest = hashlib.sha256(instance.encode(errors="surrogatepass")).hexdigest()[:12]
    name = quote(instance, safe=" ", errors="replace")[:_NAME].rstrip("%. ")
    return directory / f"{name}-{digest}.sqlite3"


class OpenFiles:
    """The files that a store has open: the newest few of those that were asked.

    Used by one thread at a time.

    Args:
        directory: Where they are.
        most: How many.
        patience: Seconds to wait for another process's transaction, before others who
            wait for the thread come first.
    """

    def __init__(self, directory: Path, most: int, patience: float) -> None:
        self._directory: Final = directory
        self._most: Final = most
        self.patience: Final = patience
        # The one that was used last at the end.
        self._connections: Final[OrderedDict[str, sqlite3.Connection]] = OrderedDict()
        self._files: Final[dict[str, tuple[str, tuple[int, int] | None]]] = {}

    def open(self, instance: str) -> sqlite3.Connection:
        """Return a connection to the file of an instance."""
        known = self._connections.get(instance)
        if known is not None:
            self._connections.move_to_end(instance)
            return known
        path = path_of(self._directory, instance)
        made = self._opened(path)
        self._connections[instance] = made
        self._files[instance] = str(path), file_id(path)
        if len(self._connections) > self._most:
            oldest, unused = self._connections.popitem(last=False)
            unused.close()
            self._files.pop(oldest, None)
        return made

    def _opened(self, path: Path) -> sqlite3.Connection:
        try:
            return open_file(path, self.patience)
        except sqlite3.OperationalError:
            if not self._connections or _can_open_more():
                raise
        # Others of this process need file descriptors too.
        self.close()
        return open_file(path, self.patience)

    def is_there(self, instance: str) -> bool:
        """Say whether the file that is open is the one that is there now."""
        path, known = self._files[instance]
        return known is not None and known == file_id(path)

    def that_is_there(
        self, instance: str, base: sqlite3.Connection
    ) -> sqlite3.Connection:
        """Return a connection to the file that is there now.

        A file that was removed or replaced lives on for whoever has it open, and nobody
        else would ever see what is written there.

        Args:
            instance: Whose file it is.
            base: The connection that is open.
        """
        if self.is_there(instance):
            return base
        self._connections.pop(instance).close()
        return self.open(instance)

    def close(self) -> None:
        """Close all of them and forget them."""
        while self._connections:
            self._connections.popitem()[1].close()


def _can_open_more() -> bool:
    """Say whether the process may open as many files as SQLite needs for one."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_FOR_ONE))
    except OSError:
        return False
    finally:
        for one in opened:
            os.close(one)
    return True


def finish(process: int, worker: Worker | Inline, files: OpenFiles) -> None:
    """Close what a store has open that nobody holds any more; in a finalizer.

    Never beside the thread that works: at the exit of the interpreter it may be in the
    middle of a commit, and SQLite does not survive that.

    Args:
        process: Whose files they are; a fork leaves its parent's alone.
        worker: What works with them.
        files: What is open.
    """
    if process == os.getpid():
        at_exit = current_trigger() is Trigger.SHUTDOWN
        worker.leave(files.close, _AT_EXIT if at_exit else 0.0)


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
