"""Bare asyncio: a task for each unit of work, and nothing that makes it safe.

This is the floor that ratios refer to.
"""

import asyncio
import itertools
import secrets
import sqlite3
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import PAD, Peer, Prepared, Request, disk, main
from opentelemetry.trace import Tracer
from tracing import Tracing

SPANS = 3
"""What tenure emits in full detail: superstep, execute and commit."""


async def increment(number: int) -> int:
    """Do the work of a unit."""
    return number + 1


def chain(request: Request) -> Prepared:
    """One task after the other."""

    async def go() -> int:
        number = 0
        for _ in range(request.n):
            number = await asyncio.create_task(increment(number))
        return number

    return Prepared(go=go, units=request.n, check=lambda got: got == request.n)


def fan(request: Request) -> Prepared:
    """Tasks side by side, gathered."""
    width = request.workers

    async def work(number: int, place: int) -> int:
        return number + place

    async def go() -> int:
        total = 0
        for _ in range(request.n):
            answers = await asyncio.gather(*(work(1, place) for place in range(width)))
            total = sum(answers)
        return total

    right = width + width * (width - 1) // 2
    return Prepared(go=go, units=request.n, check=lambda got: got == right, unit="run")


def state(request: Request) -> Prepared:
    """Tasks that stage into a dict, which is then merged."""
    keys = [f"k{number}" for number in range(request.keys)]

    async def work(committed: dict[str, int], staged: dict[str, int], x: int) -> int:
        for key in keys:
            staged[key] = x
        return sum(staged.get(key, committed.get(key, 0)) for key in keys)

    async def go() -> int:
        committed: dict[str, int] = {}
        total = 0
        for x in range(request.n):
            staged: dict[str, int] = {}
            total = await asyncio.create_task(work(committed, staged, x))
            committed.update(staged)
        return total

    right = (request.n - 1) * len(keys)
    return Prepared(go=go, units=request.n, check=lambda got: got == right)


async def _run(steps: int) -> int:
    number = 0
    for _ in range(steps):
        number = await asyncio.create_task(increment(number))
    return number


def runs(request: Request) -> Prepared:
    """Short chains, one after the other."""

    async def go() -> bool:
        return all([
            await _run(request.steps) == request.steps for _ in range(request.n)
        ])

    return Prepared(go=go, units=request.n, check=bool, unit="run")


def concurrent(request: Request) -> Prepared:
    """Short chains, all at once."""

    async def go() -> list[int]:
        return await asyncio.gather(*(_run(request.steps) for _ in range(request.n)))

    return Prepared(
        go=go,
        units=request.n,
        check=lambda got: got == [request.steps] * request.n,
        unit="run",
    )


def traced(request: Request) -> Prepared:
    """A chain with hand-written spans around each task."""
    tracing = Tracing()
    tracer = tracing.provider.get_tracer("bench")
    spans = min(request.number("spans", SPANS), SPANS)
    body = _BODIES[spans]
    further = {
        f"bench.attribute.{number}": "some text" if number % 2 else number
        for number in range(request.number("attributes", 2) - 2)
    }

    async def go() -> int:
        number = 0
        with tracer.start_as_current_span("run"):
            for _ in range(request.n):
                number = await body(tracer, number, further)
        return number

    return Prepared(
        go=go,
        units=request.n,
        check=lambda got: got == request.n,
        note=f"{spans} spans a superstep, {len(further) + 2} attributes each",
        after=tracing.flush,
        close=tracing.close,
        spans=tracing.count,
        expected_spans=spans * request.n + 1,
    )


def checkpoint(request: Request) -> Prepared:
    """A bare fenced transaction of 1 KB for each unit: no engine, no thread.

    With `thread=1` in an executor of one thread, so that the event loop goes on. With
    `memory=1` a dict of 1 KB texts instead, each put there by a task.
    """
    if request.number("memory", 0):
        return _remembered(request)
    directory = tempfile.TemporaryDirectory(dir=disk())
    base = sqlite3.connect(
        f"{directory.name}/bare.sqlite3", isolation_level=None, check_same_thread=False
    )
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("PRAGMA synchronous = FULL")
    base.executescript("""
        CREATE TABLE owner (
            instance TEXT PRIMARY KEY, epoch INTEGER, run_id TEXT, position INTEGER,
            head TEXT
        ) WITHOUT ROWID;
        CREATE TABLE checkpoint (
            position INTEGER PRIMARY KEY, checkpoint_id TEXT UNIQUE, parent_id TEXT,
            epoch INTEGER, run_id TEXT, body BLOB
        );
        INSERT INTO owner VALUES ('press/default', 1, 'run', 0, NULL);
    """)
    body, places = b"x" * PAD, itertools.count()

    thread = ThreadPoolExecutor(1)
    parent: str | None = None

    def close() -> None:
        thread.shutdown()
        base.close()
        directory.cleanup()

    def commit() -> int:
        nonlocal parent
        place, name = next(places), secrets.token_hex(12)
        base.execute("BEGIN IMMEDIATE")
        kept = base.execute(
            "UPDATE owner SET position = position + 1, head = ? WHERE instance = ? "
            "AND epoch = ? AND run_id = ? AND position = ?",
            (name, "press/default", 1, "run", place),
        ).rowcount
        base.execute(
            "INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?, ?)",
            (place + 1, name, parent, 1, "run", body),
        )
        base.execute("COMMIT")
        parent = name
        return kept

    async def go() -> int:
        if not request.number("thread", 0):
            return sum(commit() for _ in range(request.n))
        loop = asyncio.get_running_loop()
        return sum([
            await loop.run_in_executor(thread, commit) for _ in range(request.n)
        ])

    return Prepared(
        go=go, units=request.n, check=lambda got: got == request.n, close=close
    )


def _remembered(request: Request) -> Prepared:
    async def put(kept: dict[int, str], number: int) -> None:
        kept[number] = "x" * PAD

    async def go() -> int:
        kept: dict[int, str] = {}
        for number in range(request.n):
            await asyncio.create_task(put(kept, number))
        return len(kept)

    return Prepared(go=go, units=request.n, check=lambda got: got == request.n)


async def _executed(tracer: Tracer, number: int, further: dict[str, Any]) -> int:
    attributes = {"executor.id": "inc", "superstep": number, **further}
    with tracer.start_as_current_span("execute", attributes=attributes):
        return number + 1


async def _no_span(_tracer: Tracer, number: int, _further: dict[str, Any]) -> int:
    return await asyncio.create_task(increment(number))


async def _one_span(tracer: Tracer, number: int, further: dict[str, Any]) -> int:
    return await asyncio.create_task(_executed(tracer, number, further))


async def _two_spans(tracer: Tracer, number: int, further: dict[str, Any]) -> int:
    attributes = {"workflow": "chain", "superstep": number, **further}
    with tracer.start_as_current_span("superstep", attributes=attributes):
        return await _one_span(tracer, number, further)


async def _three_spans(tracer: Tracer, number: int, further: dict[str, Any]) -> int:
    attributes = {"workflow": "chain", "superstep": number, **further}
    with tracer.start_as_current_span("superstep", attributes=attributes):
        answer = await _one_span(tracer, number, further)
        tracer.start_span(
            "commit", attributes={"cause": "superstep", "superstep": number, **further}
        ).end()
        return answer


_BODIES = {0: _no_span, 1: _one_span, 2: _two_spans, 3: _three_spans}

PEER = Peer(
    "asyncio",
    None,
    {
        "chain": chain,
        "fan": fan,
        "state": state,
        "runs": runs,
        "concurrent": concurrent,
        "traced": traced,
        "checkpoint": checkpoint,
    },
    {
        "spans": f"traced: spans a superstep, 0 to 3 ({SPANS}, as tenure emits)",
        "attributes": "traced: attributes of each span (2)",
        "memory": "checkpoint: 1 keeps it in a dict",
        "thread": "checkpoint: 1 has a worker thread commit",
    },
)

if __name__ == "__main__":
    sys.exit(main(PEER))
