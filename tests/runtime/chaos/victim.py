"""Processes that are stopped and killed: started by the tests beside this file.

    victim.py kennel DIRECTORY              forks a victim for each line of its input
    victim.py pause DIRECTORY STORE SPANS   stops itself right before its commits
    victim.py compete DIRECTORY STORE       forks competitors, and buries them

`STORE` is `fenced`, tenure's own, or `unfenced`: a store that looks whether it owns the
instance and then writes, which the tests have to catch. `SPANS` is a file.
"""

import asyncio
import hashlib
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from exporting import exporting_to  # they lie beside this program
from fatal import FatalStore
from opentelemetry import trace

from tenure.instrumentation import add_listener
from tenure.instrumentation.operations import Operation, Owner
from tenure.runtime import (
    Checkpoint,
    CheckpointError,
    OwnershipLostError,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    executor,
)
from tenure.runtime.stores import _bodies

PAD = "x" * 700
LEASE = 0.3


def link_of(chain: str, count: int) -> str:
    """Return the next link of the chain that the state of an instance is."""
    return hashlib.sha256(f"{chain}{count}".encode()).hexdigest()


@executor
async def link(left: int, ctx: WorkflowContext[int, int]) -> None:
    """Add a link to the chain."""
    count = ctx.get_state("count", 0) + 1
    ctx.set_state("count", count)
    ctx.set_state("chain", link_of(ctx.get_state("chain", ""), count))
    ctx.set_state("by", [ctx.run_id, int(ctx.epoch)])
    ctx.set_state("pad", PAD)
    if left > 1:
        await ctx.send_message(left - 1)
    else:
        await ctx.yield_output(count)


class UnfencedStore(SqliteStore):
    """Looks who owns the instance, and then writes: the negative control."""

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner]:
        body = _bodies.body_of(checkpoint, state, None)
        until = None if final else time.time() + self.lease

        def look(base: sqlite3.Connection) -> None:
            epoch, valid = base.execute(
                "SELECT epoch, until FROM tenure_instance WHERE instance = ?",
                (instance,),
            ).fetchone()
            if epoch != checkpoint.epoch or (valid or 0) < time.time():
                raise OwnershipLostError("commit", checkpoint.epoch, epoch)

        def write(base: sqlite3.Connection) -> Owner:
            base.execute("BEGIN IMMEDIATE")
            owner = base.execute(
                "SELECT epoch, run_id FROM tenure_instance WHERE instance = ?",
                (instance,),
            ).fetchone()
            base.execute(
                "UPDATE tenure_instance SET position = position + 1, head = ?, "
                "until = ? WHERE instance = ?",
                (checkpoint.checkpoint_id, until, instance),
            )
            base.execute(
                "INSERT INTO tenure_checkpoint SELECT max(position) + 1, ?, ?, ?, ?, "
                "?, ?, ?, ?, ? FROM (SELECT 0 AS position UNION ALL "
                "SELECT position FROM tenure_checkpoint)",
                (
                    checkpoint.checkpoint_id,
                    checkpoint.parent_id,
                    checkpoint.run_id,
                    checkpoint.epoch,
                    checkpoint.superstep,
                    checkpoint.kind,
                    body.is_full,
                    body.change,
                    body.standing,
                ),
            )
            base.execute("COMMIT")
            return Owner(*owner)

        async def both() -> Owner:
            await self._ask(instance, look)
            return await self._ask(instance, write)

        return both()


STORES: dict[str, type[SqliteStore]] = {
    "fenced": SqliteStore,
    "unfenced": UnfencedStore,
}


def answer(*words: object) -> None:
    """Tell the test something."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def drawn(store: SqliteStore) -> Workflow:
    builder = WorkflowBuilder("chaos", start=link, store=store)
    return builder.add_edge(link, link).build()


# Killed at a chosen statement.


def kennel(directory: str) -> None:
    """Fork a victim for each line: subdirectory, statement, verb, supersteps.

    Answers each with its exit status. The modules are loaded once, so that hundreds of
    processes can be killed in some seconds.
    """
    for line in sys.stdin:
        place, statement, verb, steps = line.split()
        pid = os.fork()
        if not pid:
            _die_at(f"{directory}/{place}", int(statement), verb, int(steps))
        _, status = os.waitpid(pid, 0)
        answer(os.waitstatus_to_exitcode(status))


def _die_at(directory: str, statement: int, verb: str, steps: int) -> None:
    """Run, and be killed when SQLite is about to execute a statement of that number."""

    async def go() -> None:
        workflow = drawn(FatalStore(directory, statement))
        if verb == "run":
            await workflow.run(steps)
        else:
            await workflow.resume()

    try:
        asyncio.run(go())
    except CheckpointError:
        os._exit(1)
    os._exit(0)


# Stopped right before a commit.


def stopping(kind: type[SqliteStore]) -> Any:
    """Return a kind of store that stops the process before its `armed`-th commit."""

    class Stopping(kind):  # type: ignore[misc, valid-type]
        armed = 0

        def _ask(
            self, instance: str, question: Callable[..., Any], nothing: Any = None
        ) -> Awaitable[Any]:
            if question.__name__ not in ("commit", "write"):
                return super()._ask(instance, question, nothing)
            self.armed -= 1
            if self.armed:
                return super()._ask(instance, question)

            def stopped(base: sqlite3.Connection) -> Any:
                # To this very thread: it goes no further before all of them stop.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
                return question(base)

            return super()._ask(instance, stopped)

    return Stopping


def pause(directory: str, kind: str, spans: str) -> None:
    """For each line, an instance and a number, run it and stop before that commit.

    Answers with what became of the commit, after somebody has let it go on.
    """
    provider = exporting_to(spans)
    trace.set_tracer_provider(provider)

    async def go() -> None:
        store = stopping(STORES[kind])(directory, lease=60)
        workflow = drawn(store)
        while line := await asyncio.to_thread(sys.stdin.readline):
            key, commits = line.split()
            store.armed = int(commits)
            instance = workflow.instance(key)
            try:
                await instance.run(4, on_conflict="supersede")
            except OwnershipLostError:
                answer("refused")
            else:
                answer("accepted")
            workflow.forget(key)

    asyncio.run(go())
    provider.shutdown()


# Many against each other.


def _write_down(file: int) -> Callable[[Operation], None]:
    """Return a listener that writes each operation as a line of its own."""

    def write(operation: Operation) -> None:
        line = {"type": type(operation).__name__, **asdict(operation)}
        os.write(file, f"{json.dumps(line)}\n".encode())

    return write


def compete(directory: str, kind: str) -> None:
    """Fork competitors, and bury the dead.

    For `spawn NUMBER` it answers with the process's number, for `reap PID` with the
    exit status. The modules are loaded once, so that who is killed is soon replaced.
    """
    alive: set[int] = set()
    for line in sys.stdin:
        verb, number = line.split()
        if verb == "spawn":
            parent = os.getpid()
            pid = os.fork()
            if not pid:
                _compete(Path(directory), number, kind, parent)
            alive.add(pid)
            answer(pid)
        else:
            _, status = os.waitpid(int(number), 0)
            alive.discard(int(number))
            answer(os.waitstatus_to_exitcode(status))
    for pid in alive:
        os.kill(pid, signal.SIGKILL)


def _compete(directory: Path, number: str, kind: str, parent: int) -> NoReturn:
    """Run on one instance, again and again, whoever else does."""
    chance = random.Random(f"{kind}{number}")
    log = directory / f"{number}.told.jsonl"
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    add_listener(_write_down(file))
    trace.set_tracer_provider(exporting_to(directory / f"{number}.spans.jsonl"))

    async def go() -> None:
        store = STORES[kind](directory, lease=LEASE)
        workflow = drawn(store)
        while os.getppid() == parent:
            steps = chance.randint(1, 15)
            policy: Any = chance.choice(["supersede", "supersede", "reject", "wait"])
            try:
                if chance.random() < 0.2:
                    await workflow.resume(on_conflict=policy)
                else:
                    await workflow.run(steps, on_conflict=policy)
            except (OwnershipLostError, WorkflowBusyError):
                await asyncio.sleep(chance.random() / 100)
            except CheckpointError as exc:
                # Somebody was stopped inside a transaction, for longer than we wait.
                if not isinstance(exc.__cause__, sqlite3.OperationalError):
                    raise

    try:
        asyncio.run(go())
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    {"kennel": kennel, "pause": pause, "compete": compete}[sys.argv[1]](*sys.argv[2:])
