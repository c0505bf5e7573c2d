"""Eight processes that compete for one instance, and whoever stops and kills them."""

import asyncio
import itertools
import os
import random
import select
import signal
import sqlite3
import threading
import time
from pathlib import Path

from tenure.instrumentation.operations import Operation
from tenure.runtime import (
    SqliteStore,
    WorkflowBuilder,
    WorkflowContext,
)
from tenure.runtime import executor as as_executor

from .database import database, watch
from .processes import ask, end, start
from .told import read_operation

SECONDS = float(os.environ.get("TENURE_CHAOS_SECONDS", "4"))
"""How long processes compete; `make chaos` has them do it for a minute."""

COMPETITORS = 8
FEWEST_COMMITS = 200
"""How many commits there are at least, and more seconds if it takes more."""

EXPORT_EVERY = "20"
"""Milliseconds between exports: what a killed process has not exported is lost."""


class Sleepers:
    """Victims that are stopped, each of whom wakes up in time.

    A thread wakes them: whoever asks the database may have to wait for one of them.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        # Invariant: those who are stopped, by when they wake up.
        self._wakes: dict[int, float] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._wake_all, daemon=True)
        self._thread.start()

    def stop(self, victim: int, seconds: float) -> bool:
        """Stop a victim for a while; say whether it was awake."""
        with self._changing:
            if victim in self._wakes:
                return False
            os.kill(victim, signal.SIGSTOP)
            self._wakes[victim] = time.monotonic() + seconds
            self._changing.notify()
            return True

    def forget(self, victim: int) -> None:
        """Have nothing to do any more with a victim."""
        with self._changing:
            self._wakes.pop(victim, None)

    def close(self) -> None:
        """Wake nobody any more."""
        with self._changing:
            self._closed = True
            self._changing.notify()
        self._thread.join()

    def _wake_all(self) -> None:
        with self._changing:
            while not self._closed:
                now = time.monotonic()
                for victim in [one for one, at in self._wakes.items() if at <= now]:
                    os.kill(victim, signal.SIGCONT)
                    del self._wakes[victim]
                soonest = min(self._wakes.values(), default=None)
                self._changing.wait(None if soonest is None else soonest - now)


class Arena:
    """Processes that compete, and whoever stops and kills them.

    Args:
        directory: Where the instance is kept, and where each process leaves two files:
            what it told its listeners, and the spans that it exported.
        kind: `fenced` or `unfenced`: what store they use.
        seed: What leaves less to chance.
    """

    def __init__(self, directory: Path, kind: str, seed: int) -> None:
        self.directory = directory
        self.chance = random.Random(seed)
        self.numbers = itertools.count()
        self.spawner = start(
            "compete", directory, kind, OTEL_BSP_SCHEDULE_DELAY=EXPORT_EVERY
        )
        self.running: list[int] = []
        self.sleepers = Sleepers()
        self.stopped = self.killed = 0
        self.owner = self.commits = 0

    def spawn(self) -> None:
        self.running.append(int(ask(self.spawner, "spawn", next(self.numbers))))

    def kill(self, victim: int) -> None:
        self.running.remove(victim)
        self.sleepers.forget(victim)
        os.kill(victim, signal.SIGKILL)
        status = ask(self.spawner, "reap", victim)
        assert status == "-9", f"a victim has ended by itself: {status}"

    def look(self) -> None:
        """Look up who owns the instance, and how far it has come."""
        base = database(self.directory)
        try:
            holder, self.commits = base.execute(
                "SELECT holder, position FROM tenure_instance"
            ).fetchone()
            self.owner = int(holder.partition("/")[0].rsplit("-", 2)[1])
        except sqlite3.OperationalError:
            self.owner = 0  # somebody was stopped who had a lock
        finally:
            base.close()

    def rage(self, seconds: float) -> None:
        """Stop and kill, half of the time the owner, for so many seconds.

        A machine that has much else to do gets more of them.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until or self.commits < FEWEST_COMMITS:
            self.look()
            victim = self.chance.choice(self.running)
            if self.owner in self.running and self.chance.random() < 0.5:
                victim = self.owner
            if self.chance.random() < 0.15:
                self.kill(victim)
                self.killed += 1
                self.spawn()
            else:
                pause = self.chance.uniform(0.02, 0.4)
                self.stopped += self.sleepers.stop(victim, pause)
            wait(self.chance.uniform(0.005, 0.03))

    def operations(self) -> list[Operation]:
        """Return what all have told, about as it would reach a collector."""
        found = [
            read_operation(line)
            for file in self.directory.glob("*.told.jsonl")
            for line in file.read_text().splitlines(keepends=True)
            if line.endswith("\n")  # a killed process may leave half a line
        ]
        return sorted(found, key=lambda one: one.time)

    @property
    def spans(self) -> list[Path]:
        """The files of spans, one of each process that there ever was."""
        found = self.directory.glob("*.spans.jsonl")
        return sorted(found, key=lambda file: int(file.name.partition(".")[0]))


def wait(seconds: float) -> None:
    """Let the victims run: a pause in real time is what this test is about."""
    select.select([], [], [], seconds)


def compete(directory: Path, kind: str, seconds: float, seed: int = 1) -> Arena:
    """Let processes compete for an instance; all are dead when this returns."""
    prepare(directory)
    arena = Arena(directory, kind, seed)
    try:
        for _ in range(COMPETITORS):
            arena.spawn()
        arena.rage(seconds)
        for victim in list(arena.running):
            arena.kill(victim)
    finally:
        arena.sleepers.close()
        for victim in arena.running:  # nobody, unless something went wrong
            os.kill(victim, signal.SIGKILL)
        end(arena.spawner)
    return arena


@as_executor
async def link(left: int, ctx: WorkflowContext[int, int]) -> None:
    """Stand for the victims' executor of that name."""


def prepare(directory: Path) -> None:
    """Have the instance there, and a log of what happens to it."""

    async def first() -> None:
        async with SqliteStore(directory) as store:
            # The graph of the victims, one of whom may resume what is prepared here.
            builder = WorkflowBuilder("chaos", start=link, store=store)
            await builder.add_edge(link, link).build().cancel_requests([])

    asyncio.run(first())
    watch(directory)
