"""Eight processes that compete for one instance, and whoever stops and kills them."""

import asyncio
import itertools
import os
import random
import select
import signal
import sqlite3
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
"""How long processes compete."""

COMPETITORS = 8
EXPORT_EVERY = "20"
"""Milliseconds between exports: what a killed process has not exported is lost."""


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
        self.stopped = self.killed = 0

    def spawn(self) -> None:
        self.running.append(int(ask(self.spawner, "spawn", next(self.numbers))))

    def kill(self, victim: int) -> None:
        self.running.remove(victim)
        os.kill(victim, signal.SIGKILL)
        status = ask(self.spawner, "reap", victim)
        assert status == "-9", f"a victim has ended by itself: {status}"

    def owner(self) -> int | None:
        base = database(self.directory)
        try:
            [holder] = base.execute("SELECT holder FROM tenure_instance").fetchone()
        except sqlite3.Error:
            return None
        finally:
            base.close()
        pid = int(holder.partition("/")[0].rsplit("-", 2)[1])
        return pid if pid in self.running else None

    def rage(self, seconds: float) -> None:
        """Stop and kill, half of the time the owner, for so many seconds."""
        asleep: dict[int, float] = {}
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for victim in [one for one, wakes in asleep.items() if wakes <= now]:
                os.kill(victim, signal.SIGCONT)
                del asleep[victim]
            owner = self.owner() if self.chance.random() < 0.5 else None
            victim = owner or self.chance.choice(self.running)
            if self.chance.random() < 0.15:
                asleep.pop(victim, None)
                self.kill(victim)
                self.killed += 1
                self.spawn()
            elif victim not in asleep:
                os.kill(victim, signal.SIGSTOP)
                asleep[victim] = now + self.chance.uniform(0.02, 0.4)
                self.stopped += 1
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
