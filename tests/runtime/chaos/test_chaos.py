"""Real SIGKILLs and SIGSTOPs: what was committed stays, and nobody commits late.

`make chaos` does the same for a minute: see the two numbers below.
"""

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.detectors import Detector
from tenure.instrumentation import operations as vocabulary
from tenure.instrumentation.operations import (
    CommitCause,
    DeliveryKind,
    DiscardCause,
    LateKind,
    Operation,
    Outcome,
    Owner,
    RunRef,
    Trigger,
    WriteSet,
)
from tenure.runtime import (
    RunId,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
)
from tenure.runtime import executor as as_executor

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP"),
    pytest.mark.timeout(600),
]

SECONDS = float(os.environ.get("TENURE_CHAOS_SECONDS", "10"))
"""How long processes compete."""

PAUSES = int(os.environ.get("TENURE_CHAOS_PAUSES", "1000"))
"""How many owners are paused right before a commit."""

VICTIM = Path(__file__).with_name("victim.py")
INSTANCE = "chaos/default"


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(VICTIM), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        text=True,
        bufsize=1,
    )


def end(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait()


def ask(process: subprocess.Popen[str], *words: object) -> str:
    tell(process, *words)
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], *words: object) -> None:
    assert process.stdin is not None
    process.stdin.write(" ".join(map(str, words)) + "\n")


# What is true of a database, looked up without any of tenure's code.


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


# Killed.


@pytest.mark.parametrize("steps", [3, 12])
def test_killed_at_any_statement_and_resumed_nothing_is_lost_or_done_twice(
    tmp_path: Path, steps: int
) -> None:
    """Kill a run at every statement, and the run that resumes it at another one.

    langchain-ai/langgraph#8039: writes and the checkpoint that followed them were kept
    one after the other, in either order; a crash in between had work done twice.

    Right: a superstep is kept in one transaction, so there is no between.
    """
    process = start("kennel", tmp_path)
    chance = random.Random(steps)
    killed = 0
    try:
        for statement in itertools.count(1):
            place = tmp_path / f"{statement}"
            status = ask(process, place.name, statement, "run", steps)
            assert status in ("0", "-9")
            if status == "0":
                break
            killed += 1
            assert _committed(place, steps) <= steps
            while chance.random() < 0.6:
                # Which statement, and whether that run comes so far, is left to chance.
                before = _committed(place, steps)
                status = ask(process, place.name, chance.randint(1, 20), "resume", 0)
                killed += status == "-9"
                assert before <= _committed(place, steps) <= steps
            entered = _has_entered(place)
            status = ask(process, place.name, 0, "resume", 0)
            assert status == ("0" if entered else "1"), "there is nothing to resume"
            assert _committed(place, steps) == (steps if entered else 0)
            assert wrong_in(place) == [] if entered else True
    finally:
        end(process)
    assert killed > 4 * steps


def _tables(directory: Path) -> bool:
    files = list(directory.glob("chaos*.sqlite3"))
    if not files:
        return False
    base = sqlite3.connect(files[0])
    try:
        return bool(
            base.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'tenure_checkpoint'"
            ).fetchone()
        )
    finally:
        base.close()


def _has_entered(directory: Path) -> bool:
    if not _tables(directory):
        return False
    base = database(directory)
    try:
        [count] = base.execute("SELECT count(*) FROM tenure_checkpoint").fetchone()
        return bool(count)
    finally:
        base.close()


def _committed(directory: Path, steps: int) -> int:
    """Return how many supersteps are committed, none of them twice."""
    if not _tables(directory):
        return 0
    base = database(directory)
    try:
        [count] = base.execute(
            "SELECT count(*) FROM tenure_checkpoint WHERE kind = 'superstep'"
        ).fetchone()
        return int(count)
    finally:
        base.close()


# Paused.


@as_executor
async def link(left: int, ctx: WorkflowContext[int, int]) -> None:
    """Stand for the victims' executor of that name."""


@as_executor
async def usurp(left: int, ctx: WorkflowContext[int, int]) -> None:
    ctx.set_state("usurped", left)
    if left > 1:
        await ctx.send_message(left - 1)


async def take_over(
    store: SqliteStore, workflow: Workflow, key: str, steps: int
) -> None:
    """Claim, and commit so many supersteps; or claim and commit nothing at all."""
    if steps:
        await workflow.instance(key).run(steps, on_conflict="supersede")
    else:
        await store.claim(f"chaos/{key}", RunId("usurper"))


def pauses(directory: Path, kind: str, count: int) -> Counter[str]:
    """Let owners stop right before a commit, be replaced, and wake up."""
    process = start("pause", directory, kind)
    answers: Counter[str] = Counter()

    async def go() -> None:
        async with SqliteStore(directory) as store:
            builder = WorkflowBuilder("chaos", start=usurp, store=store)
            workflow = builder.add_edge(usurp, usurp).build()
            for number in range(count):
                key = f"k{number}"
                # The second to fifth commit; the first is the entry.
                tell(process, key, 2 + number % 4)
                _, status = os.waitpid(process.pid, os.WUNTRACED)  # noqa: ASYNC222
                assert os.WIFSTOPPED(status)
                await take_over(store, workflow, key, number % 4)
                before = await workflow.instance(key).history()
                process.send_signal(signal.SIGCONT)
                assert process.stdout is not None
                answers[process.stdout.readline().split()[0]] += 1
                after = await workflow.instance(key).history()
                answers["changed"] += after != before
                workflow.forget(key)

    try:
        asyncio.run(go())
    finally:
        end(process)
    return answers


def test_an_owner_that_was_paused_before_its_commit_is_refused_when_it_wakes_up(
    tmp_path: Path,
) -> None:
    """langchain-ai/langgraph#8894: a superseded owner has to be refused, visibly.

    Right: it is, at whichever commit it was paused, by the store and not by a clock.
    """
    answers = pauses(tmp_path, "fenced", PAUSES)
    assert answers == {"refused": PAUSES, "changed": 0}


def test_a_store_without_a_fence_is_caught_at_it(tmp_path: Path) -> None:
    """The negative control: it looks who owns the instance, and then writes."""
    answers = pauses(tmp_path, "unfenced", 20)
    assert answers["changed"] == 20
    assert answers["accepted"] > 0


# Many against each other.

_ENUMS: dict[tuple[str, str], Any] = {
    ("Release", "outcome"): Outcome,
    ("Release", "trigger"): Trigger,
    ("Commit", "cause"): CommitCause,
    ("Discard", "cause"): DiscardCause,
    ("Discard", "trigger"): Trigger,
    ("Late", "kind"): LateKind,
    ("ForeignDelivery", "kind"): DeliveryKind,
}


def read_operation(line: str) -> Operation:
    """Return an operation that a victim has written down."""
    found = json.loads(line)
    kind = getattr(vocabulary, found.pop("type"))
    for name, value in found.items():
        if value is None:
            continue
        if (kind.__name__, name) in _ENUMS:
            found[name] = _ENUMS[kind.__name__, name](value)
        elif name == "run":
            found[name] = RunRef(**value)
        elif name == "owner":
            found[name] = Owner(**value)
        elif name == "writes":
            pairs = tuple((key, epoch) for key, epoch in value["pairs"])
            found[name] = WriteSet(pairs, value["omitted"])
        elif isinstance(value, list):
            found[name] = tuple(
                tuple(one) if isinstance(one, list) else one for one in value
            )
    assert {one.name for one in fields(kind)} == set(found)
    operation: Operation = kind(**found)
    return operation


class Arena:
    """Processes that compete, and whoever stops and kills them."""

    def __init__(self, directory: Path, kind: str, seed: int) -> None:
        self.directory = directory
        self.kind = kind
        self.chance = random.Random(seed)
        self.numbers = itertools.count()
        self.running: list[subprocess.Popen[str]] = []
        self.stopped = self.killed = 0

    def spawn(self) -> None:
        number = next(self.numbers)
        log = self.directory / f"{number}.jsonl"
        self.running.append(
            start("compete", self.directory, log, f"{self.kind}{number}", self.kind)
        )

    def owner(self) -> subprocess.Popen[str] | None:
        base = database(self.directory)
        try:
            [holder] = base.execute("SELECT holder FROM tenure_instance").fetchone()
        except sqlite3.Error:
            return None
        finally:
            base.close()
        pid = int(holder.partition("/")[0].rsplit("-", 2)[1])
        return next((one for one in self.running if one.pid == pid), None)

    def rage(self, seconds: float) -> None:
        """Stop and kill, half of the time the owner, for so many seconds."""
        asleep: list[tuple[float, subprocess.Popen[str]]] = []
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            for wakes, process in list(asleep):
                if wakes <= now:
                    process.send_signal(signal.SIGCONT)
                    asleep.remove((wakes, process))
            victim = self.owner() if self.chance.random() < 0.5 else None
            victim = victim or self.chance.choice(self.running)
            assert victim.poll() is None, "a victim has ended by itself"
            if self.chance.random() < 0.15:
                self.running.remove(victim)
                asleep = [one for one in asleep if one[1] is not victim]
                end(victim)
                self.killed += 1
                self.spawn()
            elif all(process is not victim for _, process in asleep):
                victim.send_signal(signal.SIGSTOP)
                asleep.append((now + self.chance.uniform(0.02, 0.4), victim))
                self.stopped += 1
            select_wait(self.chance.uniform(0.005, 0.03))

    def operations(self) -> list[Operation]:
        """Return what all have told, about as it would reach a collector."""
        found = [
            read_operation(line)
            for file in self.directory.glob("*.jsonl")
            for line in file.read_text().splitlines(keepends=True)
            if line.endswith("\n")  # a killed process may leave half a line
        ]
        return sorted(found, key=lambda one: one.time)


def select_wait(seconds: float) -> None:
    """Let the victims run: a pause in real time is what this test is about."""
    select.select([], [], [], seconds)


def compete(directory: Path, kind: str, seconds: float, seed: int = 1) -> Arena:
    arena = Arena(directory, kind, seed)
    prepare(directory)
    try:
        for _ in range(8):
            arena.spawn()
        arena.rage(seconds)
    finally:
        for process in arena.running:
            end(process)
    return arena


def prepare(directory: Path) -> None:
    async def first() -> None:
        async with SqliteStore(directory) as store:
            # The graph of the victims, one of whom may resume what is prepared here.
            builder = WorkflowBuilder("chaos", start=link, store=store)
            await builder.add_edge(link, link).build().cancel_requests([])

    asyncio.run(first())
    watch(directory)


def test_eight_processes_that_are_stopped_and_killed_never_commit_out_of_turn(
    tmp_path: Path,
) -> None:
    arena = compete(tmp_path, "fenced", SECONDS)
    assert wrong_in(tmp_path, audited=True) == []
    # What a process was told is committed is there, and is what it was told.
    base = database(tmp_path)
    kept = {
        row[0]: row[1:]
        for row in base.execute(
            "SELECT checkpoint_id, parent_id, epoch, run_id FROM tenure_checkpoint"
        )
    }
    [claims] = base.execute("SELECT epoch FROM tenure_instance").fetchone()
    base.close()
    told = arena.operations()
    saves = [one for one in told if isinstance(one, vocabulary.CheckpointSave)]
    for save in saves:
        expected = (save.parent, save.run.epoch, save.run.run_id)
        assert kept.get(save.checkpoint) == expected
    detector = Detector()
    for operation in told:
        detector.feed(operation)
    assert detector.findings == ()
    lost = sum(
        isinstance(one, vocabulary.Release) and one.outcome is Outcome.LOST
        for one in told
    )
    sys.stdout.write(
        f"{SECONDS:g} s: {arena.stopped} stops, {arena.killed} kills, {claims} claims, "
        f"{len(kept)} commits, {len(saves)} told, {lost} runs lost, "
        f"{len(told)} operations\n"
    )
    assert arena.stopped > 10
    assert arena.killed > 2
    assert lost > 0
    assert len(kept) > 100


def test_eight_processes_on_a_store_without_a_fence_are_caught(tmp_path: Path) -> None:
    """The negative control of the check itself."""
    for seed in range(1, 6):
        directory = tmp_path / str(seed)
        directory.mkdir()
        compete(directory, "unfenced", min(SECONDS, 10), seed)
        if wrong := wrong_in(directory, audited=True):
            break
    assert wrong
