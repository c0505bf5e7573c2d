"""Instances in SQLite: one file per instance, fenced commits, one worker thread.

The fence is the first clause of the transaction that keeps the checkpoint, so no clock
takes part: a process that was paused and wakes up to commit finds another epoch in the
row and changes nothing. WAL with `synchronous=FULL` keeps what was acknowledged across
a power failure. One file per instance, because a process that is stopped in the middle
of a transaction blocks every writer of its file.
"""

import os
import sqlite3
import time
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from anyio import sleep

from tenure.instrumentation.operations import Owner
from tenure.runtime._answers import Inline, LaterError, Worker
from tenure.runtime._checkpoint import Checkpoint, CheckpointInfo, Claimed, Held
from tenure.runtime._codec import check_value
from tenure.runtime._endings import watch_endings
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    OwnershipLostError,
)
from tenure.runtime.stores._bodies import Chain, body_of
from tenure.runtime.stores._fencing import committing, epoch_in, pass_fence
from tenure.runtime.stores._files import (
    LockedError,
    OpenFiles,
    Snapshot,
    Transaction,
    file_id,
    finish,
    identity,
    path_of,
)
from tenure.runtime.stores._owners import expect, held_by_another, refuse_overtaken
from tenure.runtime.stores._pruning import (
    give_back,
    remove_all,
    remove_some,
    remove_step,
    scrub,
)
from tenure.runtime.stores._reading import read_checkpoint
from tenure.runtime.stores._retention import check_keep, is_due, oldest_kept
from tenure.runtime.stores._statements import (
    CLAIM,
    EXTEND,
    HISTORY,
    ROW,
)

_CHAINS: Final = 10_000
"""Of how many instances it is remembered how far they are from a whole state."""

_HASTE: Final = 0.02
"""For how many seconds the worker waits for a lock before others come first."""

R = TypeVar("R")


class SqliteStore:
    """Keeps instances in SQLite files under a directory, one file for each.

    Any number of processes of one machine may use one directory. Values must be plain
    data or of types that `register_state_type` knows. A commit is never in doubt: who
    is cancelled while one is made waits for its answer.

    Safe to share between threads and event loops. Close it with `aclose`, or use it as
    an async context manager.

    Args:
        directory: Where the files are; it is made if it is not there.
        lease: Seconds of silence after which an owner may be taken for dead, by those
            who do not supersede live ones. One whose process has ended is dead at once.
        patience: Seconds to wait for another process's transaction on the same file.
        blocking: Whether the event loop waits for the disk, instead of a thread that
            does so on its behalf: a tenth of a millisecond less for each superstep, in
            which the loop does nothing else. For scripts and batch jobs, not servers.
        keep: How many of an instance's newest checkpoints are kept at least; all by
            default. Older ones go now and then, so that there are never many more.
        open_files: How many files are kept open. Each takes three file descriptors;
            instances beyond are opened anew whenever it is their turn.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        lease: float = 30.0,
        patience: float = 5.0,
        blocking: bool = False,
        keep: int | None = None,
        open_files: int = 256,
    ) -> None:
        if not (lease >= 0 and patience >= 0):
            raise ValueError(f"lease={lease}, patience={patience}: pass seconds")
        if open_files < 1:
            raise ValueError(f"open_files={open_files}: one file has to be open")
        check_keep(keep)
        # Wherever the process goes later.
        self._directory: Final = Path(directory).absolute()
        self._directory.mkdir(parents=True, exist_ok=True)
        self.id: Final = identity(self._directory / "store-id")
        self.lease: Final = lease
        self.keep: Final = keep
        self._patience: Final = patience
        self._blocking: Final = blocking
        self._open_files: Final = open_files
        self._process = os.getpid()
        self._worker = self._new_worker()
        # Used by the worker thread only.
        self._files = self._new_files()
        # Replaced as a whole; written by the worker thread only.
        self._chains: OrderedDict[str, Chain] = OrderedDict()
        self._finalizer = self._new_finalizer()
        watch_endings()

    def path_of(self, instance: str) -> Path:
        """Return the file of an instance.

        Args:
            instance: Workflow and key, as one name.
        """
        return path_of(self._directory, instance)

    def claim(
        self,
        instance: str,
        run_id: RunId,
        *,
        holder: str = "",
        rank: int = 0,
        takeover: bool = True,
        expected: Epoch | None = None,
    ) -> Awaitable[Claimed | Held]:
        """See `Store.claim`."""
        facts = {
            "instance": instance,
            "run_id": run_id,
            "holder": holder,
            "rank": rank,
        }

        def claim(base: sqlite3.Connection) -> Claimed | Held:
            base = self._files.that_is_there(instance, base)
            with Transaction(base):
                row = base.execute(ROW, (instance,)).fetchone()
                expect(expected, row)
                refuse_overtaken(holder, rank, row)
                held = None if takeover else held_by_another(row, holder)
                if held is not None:
                    return held
                base.execute(CLAIM, {**facts, "until": time.time() + self.lease})
            if row is None:
                self._note(instance, Chain(None, 0, 0, 0))
                return Claimed(Epoch(1), 0, None)
            epoch, _, _, _, _, position, head, *chain = row
            self._note(instance, Chain(head, *chain))
            return Claimed(Epoch(epoch + 1), position, head)

        return self._ask(instance, claim)

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner]:
        """See `Store.commit`."""
        body = body_of(checkpoint, state, self._chains.get(instance))
        until = None if final else time.time() + self.lease
        what = committing(instance, checkpoint, body, until)
        size = len(body.change) + len(body.standing)
        keep = self.keep if is_due(checkpoint.position, size) else None

        def commit(base: sqlite3.Connection) -> Owner:
            if not self._files.is_there(instance):
                reason = "it was removed or replaced while it was in use"
                raise CheckpointError(
                    f"{self.path_of(instance)} cannot be used", reason
                )
            with Transaction(base):
                owner = pass_fence(base, what)
                if keep is not None:
                    remove_some(base, oldest_kept(checkpoint.position, keep))
            self._note(instance, body.chain)
            return owner

        return self._ask(instance, commit)

    def extend(
        self, instance: str, run_id: RunId, epoch: Epoch, *, final: bool = False
    ) -> Awaitable[bool]:
        """See `Store.extend`."""
        facts = {
            "instance": instance,
            "run_id": run_id,
            "epoch": epoch,
            "until": None if final else time.time() + self.lease,
        }

        def extend(base: sqlite3.Connection) -> bool:
            with Transaction(base):
                return base.execute(EXTEND, facts).rowcount == 1

        return self._ask(instance, extend)

    def load(
        self, instance: str, checkpoint_id: str | None = None
    ) -> Awaitable[tuple[Checkpoint, dict[str, Any]]]:
        """See `Store.load`."""

        def load(base: sqlite3.Connection) -> tuple[Checkpoint, dict[str, Any]]:
            with Snapshot(base):
                return read_checkpoint(base, instance, checkpoint_id)

        def nothing() -> tuple[Checkpoint, dict[str, Any]]:
            raise CheckpointNotFoundError(instance, checkpoint_id or "(any)")

        return self._look(instance, load, nothing)

    def history(self, instance: str) -> Awaitable[Sequence[CheckpointInfo]]:
        """See `Store.history`."""

        def history(base: sqlite3.Connection) -> Sequence[CheckpointInfo]:
            return [
                CheckpointInfo(row[0], row[1], RunId(row[2]), Epoch(row[3]), *row[4:])
                for row in base.execute(HISTORY)
            ]

        return self._look(instance, history, list)

    async def prune(self, instance: str, keep: int) -> int:
        """See `Store.prune`.

        What it frees goes back to the file system if what is left is small, and is used
        again otherwise. Between two steps it leaves the file to others for as long as
        it has kept them waiting: SQLite's locks are not fair.
        """
        check_keep(keep)

        def newest(base: sqlite3.Connection) -> int:
            row = base.execute(ROW, (instance,)).fetchone()
            return 0 if row is None else row[5]

        def step(base: sqlite3.Connection) -> int:
            return remove_step(base, kept)

        position = await self._look(instance, newest, int)
        if not position:
            return 0
        kept = oldest_kept(position, keep)
        removed, began = 0, time.monotonic()
        while more := await self._ask(instance, step):
            removed += more
            await sleep(time.monotonic() - began)
            began = time.monotonic()
        await self._ask(instance, lambda base: give_back(base, self._files.patience))
        return removed

    async def erase(self, instance: str, run_id: RunId, epoch: Epoch) -> None:
        """See `Store.erase`. Nothing of it is left in the file, nor in its log."""

        def remove(base: sqlite3.Connection) -> None:
            if not remove_all(base, instance, run_id, epoch):
                raise OwnershipLostError("erase", epoch, epoch_in(base, instance))

        await self._ask(instance, remove)
        until = time.monotonic() + self._patience
        while not await self._ask(instance, scrub):
            if time.monotonic() > until:
                raise CheckpointError(
                    f"what {instance!r} held is removed, but bytes of it are still in "
                    f"its file",
                    "somebody keeps reading the file; erase again",
                )
            await sleep(_HASTE)

    def check(self, value: object, what: str) -> None:
        """See `Store.check`."""
        check_value(value, what)

    async def aclose(self) -> None:
        """Close all files; the store opens them again when it is asked."""
        self._mind_forks()
        await self._worker.ask(self._files.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    def _look(
        self,
        instance: str,
        question: Callable[[sqlite3.Connection], R],
        nothing: Callable[[], R],
    ) -> Awaitable[R]:
        """Ask the file that is there now; no file is made for that."""
        return self._ask(
            instance,
            lambda base: question(self._files.that_is_there(instance, base)),
            nothing,
        )

    def _ask(
        self,
        instance: str,
        question: Callable[[sqlite3.Connection], R],
        nothing: Callable[[], R] | None = None,
    ) -> Awaitable[R]:
        self._mind_forks()

        until: float | None = None

        def answer() -> R:
            nonlocal until
            until = until or time.monotonic() + self._patience
            try:
                if nothing is not None and file_id(self.path_of(instance)) is None:
                    return nothing()
                return question(self._connection(instance))
            except (LockedError, sqlite3.Error, OSError, UnicodeEncodeError) as exc:
                error: Exception = exc
                if isinstance(exc, LockedError):
                    if not self._blocking and time.monotonic() < until:
                        raise LaterError from exc
                    error = exc.error
                raise CheckpointError(
                    f"{self.path_of(instance)} cannot be used",
                    f"{type(error).__name__}: {error}",
                ) from error

        return self._worker.ask(answer)

    def _connection(self, instance: str) -> sqlite3.Connection:
        return self._files.open(instance)

    def _new_worker(self) -> Worker | Inline:
        return Inline() if self._blocking else Worker("tenure-sqlite")

    def _new_files(self) -> OpenFiles:
        # One thread serves all instances: it does not wait long for one of them.
        patience = self._patience
        if not self._blocking:
            patience = min(patience, _HASTE)
        return OpenFiles(self._directory, self._open_files, patience)

    def _new_finalizer(self) -> "weakref.finalize[..., Any]":
        return weakref.finalize(self, finish, self._process, self._worker, self._files)

    def _mind_forks(self) -> None:
        """Use nothing that was open when this process was forked off.

        SQLite's connections must not be carried over, not even to be closed; a worker
        thread is not there in a fork.
        """
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._finalizer.detach()
        _inherited.append(self._files)
        self._files = self._new_files()
        self._chains = OrderedDict()
        self._worker = self._new_worker()
        self._finalizer = self._new_finalizer()

    def _note(self, instance: str, chain: Chain) -> None:
        self._chains[instance] = chain
        if len(self._chains) > _CHAINS:
            self._chains.popitem(last=False)


_inherited: Final[list[OpenFiles]] = []
"""Files of the process that this one was forked from; never touched again."""
