"""What pruning and erasing do to a SQLite file, and to whoever else uses it."""

import asyncio
import dataclasses
import itertools
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import (
    CheckpointError,
    CheckpointNotFoundError,
    Executor,
    OwnershipLostError,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    register_state_type,
    response_handler,
)
from tenure.runtime import _state_types as types
from tenure.runtime.stores import _pruning, _reading, _retention
from tenure.runtime.testing import HeldExecutor

NAME = "press/default"


@pytest.fixture(params=["worker", "blocking"])
async def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[SqliteStore]:
    blocking = request.param == "blocking"
    async with SqliteStore(tmp_path, blocking=blocking, patience=0.05) as made:
        yield made


@executor
async def count(left: int, ctx: WorkflowContext[int, int]) -> None:
    if not ctx.get_state("steady"):
        # Beside it changes are small, so that few checkpoints hold the whole state.
        ctx.set_state("steady", "y" * 20_000)
    ctx.set_state("counted", ctx.get_state("counted", 0) + 1)
    ctx.set_state(f"left {left % 3}", "x" * ctx.kwargs.get("pad", 100) + str(left))
    if left > 1:
        await ctx.send_message(left - 1)
    else:
        await ctx.yield_output(ctx.get_state("counted"))


def counting(store: SqliteStore) -> Workflow:
    builder = WorkflowBuilder("press", start=count, store=store, max_supersteps=9999)
    return builder.add_edge(count, count).build()


def connected(store: SqliteStore) -> sqlite3.Connection:
    return sqlite3.connect(store.path_of(NAME), isolation_level=None, timeout=0)


def rows(store: SqliteStore) -> list[int]:
    base = connected(store)
    found = base.execute("SELECT position FROM tenure_checkpoint ORDER BY position")
    positions = [position for (position,) in found]
    base.close()
    return positions


def log_of(store: SqliteStore) -> Path:
    path = store.path_of(NAME)
    return path.with_name(f"{path.name}-wal")


# Step by step.


async def test_many_checkpoints_go_in_steps_and_commits_come_between_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = counting(store)
    await workflow.run(400)
    monkeypatch.setattr(_pruning, "STEP_ROWS", 60)
    order: list[str] = []

    async def prune() -> None:
        assert await workflow.prune(keep=10) == 391
        order.append("pruned")

    async def commit() -> None:
        await workflow.run(1)
        order.append("committed")

    await asyncio.gather(prune(), commit())
    assert order == ["committed", "pruned"]
    assert rows(store) == list(range(392, 404))
    assert (await counting(store).run(1)).outputs == (402,)


@pytest.mark.parametrize("limit", ["rows", "bytes"])
async def test_a_step_takes_no_more_than_it_may_but_what_hangs_together(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    await counting(store).run(400, pad=0)
    if limit == "rows":
        monkeypatch.setattr(_pruning, "STEP_ROWS", 60)
    else:
        monkeypatch.setattr(_pruning, "STEP_BYTES", 1)
    base = connected(store)
    removed = []
    while step := _pruning.remove_step(base, 390):
        removed.append(step)
        assert rows(store)[0] == 1 + sum(removed)
    base.close()
    assert sum(removed) == 389
    assert max(removed) <= 60
    assert len(removed) > 6


async def test_without_a_whole_one_in_reach_one_is_made(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = counting(store)
    await workflow.run(40)
    states = {
        one.checkpoint_id: await store.load(NAME, one.checkpoint_id)
        for one in (await workflow.history())[:5]
    }
    monkeypatch.setattr(_pruning, "STEP_ROWS", 4)
    assert await workflow.prune(keep=5) == 36
    for name, before in states.items():
        assert await store.load(NAME, name) == before


async def test_who_holds_the_file_locked_makes_pruning_fail_and_nothing_goes(
    store: SqliteStore,
) -> None:
    workflow = counting(store)
    await workflow.run(20)
    base = connected(store)
    base.execute("BEGIN IMMEDIATE")
    with pytest.raises(CheckpointError, match="locked"):
        await workflow.prune(keep=1)
    base.execute("ROLLBACK")
    base.close()
    assert len(rows(store)) == 21
    assert await workflow.prune(keep=1) == 20


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tenure_checkpoint SET change = x'c1' WHERE position = 7",
        "UPDATE tenure_checkpoint SET change = x'80' WHERE position = 3",
        "UPDATE tenure_checkpoint SET parent_id = 'x' WHERE position = 9",
        "DELETE FROM tenure_checkpoint WHERE position = 8",
        "DELETE FROM tenure_checkpoint WHERE position = 3",
    ],
)
async def test_what_cannot_be_made_whole_is_not_pruned(
    store: SqliteStore, damage: str
) -> None:
    workflow = counting(store)
    await workflow.run(20)
    assert await workflow.prune(keep=19) == 2, "the next one that is whole is far away"
    base = connected(store)
    base.execute(damage)
    before = list(base.execute("SELECT * FROM tenure_checkpoint"))
    with pytest.raises(CheckpointError, match="cannot be made whole"):
        await workflow.prune(keep=11)
    assert list(base.execute("SELECT * FROM tenure_checkpoint")) == before
    base.close()


async def test_nobody_else_writes_from_the_look_at_what_may_go_until_it_has_gone(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = counting(store)
    await workflow.run(20)
    join, tried = _pruning.joined, []

    def try_to_write(changes: Sequence[bytes], position: int) -> bytes:
        other = connected(store)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()
        tried.append(position)
        return join(changes, position)

    monkeypatch.setattr(_pruning, "joined", try_to_write)
    assert await workflow.prune(keep=5) == 16
    assert tried == [17]


@register_state_type
@dataclasses.dataclass(frozen=True)
class Ware:
    name: str


async def test_a_process_that_does_not_know_a_type_prunes_it_all_the_same(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    @executor
    async def sell(name: str, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state(name, Ware(name))

    workflow = WorkflowBuilder("press", start=sell, store=store).build()
    for name in ("a", "\N{GREEK SMALL LETTER BETA}", "c"):
        await workflow.run(name)
    before = await store.load(NAME)
    with monkeypatch.context() as patched:
        patched.delitem(types._by_tag, "Ware")
        patched.delitem(types._by_class, Ware)
        with pytest.raises(CheckpointError, match="Ware"):
            await store.load(NAME)
        assert await workflow.prune(keep=1) == 5
    assert await store.load(NAME) == before
    assert before[1]["c"] == Ware("c")


# Whoever reads meanwhile.


@pytest.mark.parametrize("wanted", ["newest", "by its name"])
async def test_who_reads_a_checkpoint_while_its_ancestors_are_pruned_has_it_all(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    workflow = counting(store)
    await workflow.run(20)
    await workflow.prune(keep=19)
    newest = (await workflow.history())[0].checkpoint_id
    before = await store.load(NAME)
    found = _reading._found
    pruned: list[int] = []

    def prune_first(base: sqlite3.Connection, name: str) -> Any:
        row = found(base, name)
        if not pruned:
            other = connected(store)
            pruned.append(_pruning.remove_step(other, 21))
            other.close()
        return row

    monkeypatch.setattr(_reading, "_found", prune_first)
    asked = None if wanted == "newest" else newest
    assert await store.load(NAME, asked) == before
    assert pruned == [18]
    assert await store.load(NAME, asked) == before


# Space.


async def test_what_pruning_frees_goes_back_to_the_file_system(
    store: SqliteStore,
) -> None:
    workflow = counting(store)
    await workflow.run(1500, pad=1000)
    path = store.path_of(NAME)
    await workflow.prune(keep=1501)
    large = path.stat().st_size + log_of(store).stat().st_size
    await workflow.prune(keep=5)
    assert path.stat().st_size + log_of(store).stat().st_size < 100_000 < large / 10
    assert (await counting(store).run(1)).outputs == (1501,)


async def test_what_does_not_go_back_is_used_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_pruning, "SMALL", 0)
    workflow = counting(store)
    await workflow.run(600, pad=1000)
    await workflow.prune(keep=5)
    path = store.path_of(NAME)
    size = path.stat().st_size
    await workflow.run(500, pad=1000)
    await workflow.prune(keep=5)
    assert path.stat().st_size == size > 500_000


async def test_what_is_removed_is_not_written_once_more(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    workflow = counting(store)
    await workflow.run(60, pad=100_000)
    await workflow.prune(keep=61)
    assert log_of(store).stat().st_size == 0
    written: list[int] = []

    def look(base: sqlite3.Connection, patience: float) -> None:
        written.append(log_of(store).stat().st_size)

    monkeypatch.setattr("tenure.runtime.stores.sqlite.give_back", look)
    assert await workflow.prune(keep=1) == 60
    assert written[0] < 600_000


@pytest.mark.parametrize("pad", [100, 30_000])
async def test_a_store_that_keeps_few_checkpoints_has_files_that_stay_small(
    tmp_path: Path, pad: int
) -> None:
    sizes = []
    async with SqliteStore(tmp_path, keep=5) as store:
        workflow = counting(store)
        for _ in range(3):
            await workflow.run(300, pad=pad)
            size = store.path_of(NAME).stat().st_size
            sizes.append(size + log_of(store).stat().st_size)
        assert len(rows(store)) <= 107
        # SQLite writes its log back when it has a thousand pages.
        assert log_of(store).stat().st_size < 10_000_000
    assert sizes[2] <= 1.2 * sizes[1]
    async with SqliteStore(tmp_path / "all") as everything:
        await counting(everything).run(900, pad=pad)
    assert (
        3 * store.path_of(NAME).stat().st_size < everything.path_of(NAME).stat().st_size
    )


async def test_processes_that_commit_a_few_times_and_end_take_their_turn(
    tmp_path: Path,
) -> None:
    most = 0
    for _ in range(60):
        async with SqliteStore(tmp_path, keep=5) as store:
            await counting(store).run(3)
            most = max(most, len(rows(store)))
    assert 54 <= most <= 5 + 102


async def test_a_large_checkpoint_is_a_reason_to_look_at_once(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path, keep=2) as store:
        await counting(store).run(30, pad=_retention.LARGE)
        assert len(rows(store)) < 10


async def test_a_store_that_begins_to_keep_less_catches_up_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SqliteStore(tmp_path) as store:
        await counting(store).run(399)
    monkeypatch.setattr(_pruning, "STEP_ROWS", 120)
    async with SqliteStore(tmp_path, keep=5) as store:
        left = [len(rows(store))]
        for _ in range(6):
            await counting(store).run(49)
            left.append(len(rows(store)))
    assert all(after > before - 130 for before, after in itertools.pairwise(left))
    assert left[0] == 400
    assert left[-1] <= 5 + 102


# Nothing is left.

SECRET = "a secret that nobody may find again"


class Confiding(Executor):
    @handler
    async def confide(self, word: str, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state(f"key of {word}", word)
        await ctx.request_info(word, str)

    @response_handler
    async def answered(
        self, word: str, answer: str, ctx: WorkflowContext[None, None]
    ) -> None:
        """Take it."""


def confiding(store: SqliteStore) -> Workflow:
    return WorkflowBuilder("press", start=Confiding("confiding"), store=store).build()


def found_in(directory: Path) -> list[str]:
    return [
        path.name
        for path in sorted(directory.iterdir())
        if SECRET.encode() in path.read_bytes()
    ]


async def test_the_bytes_of_what_was_erased_are_in_no_file(
    store: SqliteStore, tmp_path: Path
) -> None:
    workflow = confiding(store)
    for number in range(80):
        await workflow.run(f"{SECRET} {number}")
    assert found_in(tmp_path), "there is something to find"
    await workflow.prune(keep=1)
    await workflow.run("harmless")
    await workflow.erase()
    assert found_in(tmp_path) == []
    assert store.path_of(NAME).stat().st_size < 20_000
    await workflow.run("harmless")
    assert found_in(tmp_path) == []


async def test_who_keeps_reading_the_file_makes_the_erasure_say_so(
    store: SqliteStore, tmp_path: Path
) -> None:
    workflow = confiding(store)
    await workflow.run(SECRET)
    base = connected(store)
    base.execute("BEGIN")
    base.execute("SELECT * FROM tenure_checkpoint").fetchall()
    with pytest.raises(CheckpointError, match="erase again"):
        await workflow.erase()
    # It is gone for everybody but that one.
    assert await workflow.history() == []
    assert dict(workflow.state) == {}
    assert workflow.pending_requests == ()
    with pytest.raises(CheckpointNotFoundError):
        await store.load(NAME)
    assert found_in(tmp_path)
    base.close()
    await workflow.erase()
    assert found_in(tmp_path) == []


async def test_a_process_that_was_paused_before_the_erasure_commits_nothing_after_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held, store=store).build()
    run = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    async with SqliteStore(tmp_path) as other:
        await counting(other).erase(on_conflict="supersede")
    held.released["a"].set()
    with pytest.raises(OwnershipLostError):
        await run
    assert rows(store) == []


@pytest.mark.parametrize("verb", ["prune", "erase"])
async def test_the_word_of_ownership_stays_whatever_goes(
    store: SqliteStore, verb: str
) -> None:
    workflow = counting(store)
    await workflow.run(5)
    asked: dict[str, Callable[[], Any]] = {
        "prune": lambda: workflow.prune(keep=1),
        "erase": workflow.erase,
    }
    await asked[verb]()
    base = connected(store)
    words = base.execute("SELECT epoch, position FROM tenure_instance").fetchall()
    base.close()
    assert words == [(1 if verb == "prune" else 2, 6)]
    assert (await workflow.run(1)).epoch == words[0][0] + 1
