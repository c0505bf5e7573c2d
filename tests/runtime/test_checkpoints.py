"""Checkpoints: what is in them, and what comes back from them."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation.operations import CheckpointSave, Operation
from tenure.runtime import (
    Checkpoint,
    CheckpointError,
    CheckpointFailed,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    DefinitionError,
    Executor,
    ExecutorError,
    MemoryStore,
    Outcome,
    SqliteStore,
    StateKey,
    StateTypeError,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    append,
    executor,
    handler,
)

SEEN = StateKey[list[str]]("seen", reduce=append)


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with SqliteStore(tmp_path / "runs", patience=0.05) as made:
        yield made


class BrokenError(Exception):
    pass


class Fuse:
    """Fails the invocations that it is told to, counted over all executors."""

    def __init__(self, *blows: int) -> None:
        self.blows = set(blows)
        self.count = 0
        self.keys: list[str] = []

    def burn(self, ctx: WorkflowContext[Any, Any]) -> None:
        self.count += 1
        self.keys.append(ctx.idempotency_key)
        if self.count in self.blows:
            raise BrokenError


class Teller(Executor):
    """Keeps a number of its own."""

    def __init__(self, fuse: Fuse) -> None:
        super().__init__("teller")
        self.told = 0
        self.fuse = fuse

    @handler
    async def tell(self, names: list[str], ctx: WorkflowContext[str, str]) -> None:
        self.fuse.burn(ctx)
        self.told += 1
        ctx.set_state(SEEN, ["+".join(names)])
        if len(ctx.get_state(SEEN) or ()) < 9:
            await ctx.send_message(f"again{self.told}")
        else:
            await ctx.yield_output(f"told {self.told}: {names}")

    def on_checkpoint_save(self) -> Any:
        return {"told": self.told}

    async def on_checkpoint_restore(self, snapshot: Any) -> None:
        self.told = snapshot["told"]


def drawn(store: Store | None, *blows: int, **how: Any) -> tuple[Workflow, Fuse]:
    """Draw a workflow with a loop, a fan-out and a fan-in that is left half full.

    start → {left, right} → teller (fan-in) → start; `slow` hands right's message on one
    superstep later, so that the fan-in holds left's meanwhile.
    """
    fuse = Fuse(*blows)
    teller = Teller(fuse)

    @executor
    async def start(name: str, ctx: WorkflowContext[str, str]) -> None:
        fuse.burn(ctx)
        ctx.set_state("latest", name)
        await ctx.send_message(name)

    def side(place: str) -> Executor:
        @executor(id=place)
        async def work(name: str, ctx: WorkflowContext[str, str]) -> None:
            fuse.burn(ctx)
            ctx.set_state(SEEN, [f"{place} {name}"])
            await ctx.send_message(f"{name}-{place}")

        return work

    left, right, slow = side("left"), side("right"), side("slow")
    workflow = (
        WorkflowBuilder("press", start=start, store=store, **how)
        .add_fan_out(start, [left, right])
        .add_edge(right, slow)
        .add_fan_in([left, slow], teller)
        .add_edge(teller, start)
        .build()
    )
    return workflow, fuse


async def told(store: Store | None) -> tuple[Any, dict[str, Any], int]:
    """Return outputs, state and the number of invocations of an undisturbed run."""
    workflow, fuse = drawn(store)
    result = await workflow.run("a")
    return result.outputs, dict(workflow.state), fuse.count


INVOCATIONS, SUPERSTEPS = 15, 12


async def test_there_is_one_checkpoint_at_the_entry_and_one_per_superstep(
    store: Store,
) -> None:
    workflow, _ = drawn(store)
    result = await workflow.run("a")
    line = list(reversed(await workflow.history()))
    assert [one.kind for one in line] == ["entry", *["superstep"] * result.supersteps]
    assert [one.superstep for one in line] == list(range(result.supersteps + 1))
    assert [one.position for one in line] == list(range(1, len(line) + 1))
    assert [one.parent_id for one in line] == [
        None, *(one.checkpoint_id for one in line[:-1])
    ]  # fmt: skip
    assert {(one.run_id, one.epoch) for one in line} == {(result.run_id, 1)}


async def test_the_entry_checkpoint_holds_the_input_before_anything_runs(
    store: Store,
) -> None:
    workflow, fuse = drawn(store, 1)
    with pytest.raises(ExecutorError):
        await workflow.run("a")
    [entry] = await workflow.history()
    assert entry.kind == "entry"
    checkpoint, state = await store.load("press/default", entry.checkpoint_id)
    assert list(checkpoint.standing.messages) == [("start", "a", entry.run_id)]
    assert checkpoint.standing.snapshots == {"teller": {"told": 0}}
    assert state == {}
    assert fuse.count == 1


async def test_the_test_counts_right() -> None:
    assert (await told(None))[2] == INVOCATIONS


@pytest.mark.parametrize("blow", range(1, INVOCATIONS + 1))
@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another"])
async def test_wherever_a_run_fails_resuming_brings_what_it_would_have_brought(
    store: Store, blow: int, anew: bool
) -> None:
    outputs, state, _ = await told(None)
    workflow, first = drawn(store, blow)
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("a")
    assert isinstance(caught.value.__cause__, BrokenError)
    before = dict(workflow.state)
    if anew:
        workflow, second = drawn(store)
        assert await workflow.refresh() == before
    else:
        second = first
    result = await workflow.resume()
    assert result.outputs == outputs
    assert dict(workflow.state) == state
    line = list(reversed(await workflow.history()))
    assert [one.kind for one in line] == ["entry"] + ["superstep"] * SUPERSTEPS
    keys = first.keys if second is first else first.keys + second.keys
    assert len(set(keys)) == INVOCATIONS, "the work that was repeated has other keys"
    assert len(keys) > INVOCATIONS


async def test_a_run_may_fail_again_and_again_and_still_come_to_its_end(
    store: Store,
) -> None:
    outputs, state, _ = await told(None)
    workflow, _ = drawn(store, 2)
    handle = workflow.run("a")
    for _ in range(INVOCATIONS):
        with contextlib.suppress(ExecutorError):
            result = await handle
            break
        # Each process dies in its second invocation, in the next superstep.
        workflow, _ = drawn(store, 3)
        handle = workflow.resume()
    assert result.outputs == outputs
    assert dict(workflow.state) == state


async def test_resuming_a_final_checkpoint_runs_nothing_and_saves_nothing(
    store: Store,
) -> None:
    workflow, _ = drawn(store)
    await workflow.run("a")
    before = await workflow.history()
    again, fuse = drawn(store)
    result = await again.resume()
    assert result.outcome is Outcome.COMPLETED
    assert (result.outputs, result.supersteps, fuse.count) == ((), 0, 0)
    assert dict(again.state) == dict(workflow.state)
    assert await again.history() == before


async def test_there_is_nothing_to_resume_at_first(store: Store) -> None:
    workflow, _ = drawn(store)
    with pytest.raises(CheckpointNotFoundError):
        await workflow.resume()
    with pytest.raises(CheckpointNotFoundError):
        await workflow.run(checkpoint_id="nobody")
    assert (await workflow.run("a")).outcome is Outcome.COMPLETED


async def test_without_a_store_the_error_says_how_to_get_one() -> None:
    workflow, _ = drawn(None)
    for ask in (workflow.resume, lambda: workflow.run(checkpoint_id="c")):
        with pytest.raises(CheckpointError, match=r"SqliteStore\(directory\)"):
            ask()
    for question in (workflow.history(), workflow.refresh(), workflow.fork(None, "x")):
        with pytest.raises(CheckpointError, match=r"SqliteStore\(directory\)"):
            await question


# A fresh message.


async def test_a_fresh_message_begins_with_the_committed_state_in_any_process(
    store: Store,
) -> None:
    workflow, _ = drawn(store, 6)
    with pytest.raises(ExecutorError):
        await workflow.run("a")
    before = dict(workflow.state)
    other, fuse = drawn(store, 1)
    with pytest.raises(ExecutorError):
        await other.run("b")
    # What was on its way in the failed run is not delivered to the next one.
    assert fuse.count == 1
    assert dict(other.state) == before
    kinds = [one.kind for one in await other.history()]
    assert kinds[0] == "entry"


async def test_executors_that_runs_share_go_on_and_those_of_a_run_begin_anew(
    store: Store,
) -> None:
    class Counting(Executor):
        def __init__(self) -> None:
            super().__init__("counting")
            self.count = 0

        @handler
        async def work(self, message: str, ctx: WorkflowContext[None, int]) -> None:
            self.count += 1
            await ctx.yield_output(self.count)

        def on_checkpoint_save(self) -> Any:
            return self.count

        def on_checkpoint_restore(self, snapshot: Any) -> None:
            self.count = snapshot

    async def counted(start: Any, key: str) -> int:
        workflow = WorkflowBuilder("count", start=start, store=store).build()
        return (await workflow.instance(key).run("x")).outputs[0]

    assert [await counted(Counting(), "shared") for _ in range(3)] == [1, 2, 3]
    assert [await counted(Counting, "own") for _ in range(3)] == [1, 1, 1]


# Time travel.


async def test_going_back_runs_on_from_there_and_points_to_where_it_came_from(
    store: Store,
) -> None:
    outputs, state, _ = await told(None)
    workflow, _ = drawn(store)
    await workflow.run("a")
    line = list(reversed(await workflow.history()))
    for chosen in line:
        other, _ = drawn(store)
        result = await other.run(checkpoint_id=chosen.checkpoint_id)
        assert dict(other.state) == state
        if chosen is not line[-1]:
            assert result.outputs == outputs
            new = [one for one in await other.history() if one.run_id == result.run_id][
                -1
            ]
            assert (new.kind, new.parent_id) == ("restore", chosen.checkpoint_id)


async def test_what_comes_next_goes_on_from_where_one_has_gone_back_to(
    store: Store,
) -> None:
    workflow, _ = drawn(store)
    await workflow.run("a")
    third = list(reversed(await workflow.history()))[2]
    _, state = await store.load("press/default", third.checkpoint_id)
    going, _ = drawn(store, 1)
    with pytest.raises(ExecutorError):
        await going.run(checkpoint_id=third.checkpoint_id)
    assert dict(going.state) == state
    other, _ = drawn(store)
    assert dict(await other.refresh()) == state
    result = await other.resume()
    assert result.outputs == (await told(None))[0]


async def test_going_back_to_where_nothing_was_left_undone_is_a_change_too(
    store: Store,
) -> None:
    @executor
    async def note(name: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(SEEN, [name])

    def workflow() -> Workflow:
        return WorkflowBuilder("w", start=note, store=store).build()

    first = workflow()
    await first.run("a")
    after_a = (await first.history())[0]
    await first.run("b")
    result = await first.run(checkpoint_id=after_a.checkpoint_id)
    assert (result.supersteps, dict(first.state)) == (0, {"seen": ["a"]})
    other = workflow()
    assert dict(await other.refresh()) == {"seen": ["a"]}
    await other.run("c")
    assert dict(other.state) == {"seen": ["a", "c"]}


async def test_a_run_that_goes_back_says_from_where_and_is_taken_for_no_fork(
    store: Store, operations: list[Operation]
) -> None:
    workflow, _ = drawn(store)
    await workflow.run("a")
    line = [one.checkpoint_id for one in reversed(await workflow.history())]
    here = len(operations)
    other, _ = drawn(store)
    await other.run(checkpoint_id=line[2])
    await other.run("b")
    saves = [one for one in operations if isinstance(one, CheckpointSave)]
    [back] = [one for one in saves if one.previous is not None]
    assert (back.parent, back.previous) == (line[2], line[-1])
    # To a detector the two are two processes, of which each knows its own owners.
    detector = Detector()
    for number, one in enumerate(operations):
        process = "p" if number < here else "q"
        seq = number + 1 if number < here else number - here + 1
        detector.feed(replace(one, run=replace(one.run, process=process), seq=seq))
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


# Forks.


@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another"])
async def test_a_fork_has_all_that_its_checkpoint_held_and_leaves_that_alone(
    store: Store, anew: bool
) -> None:
    outputs, state, _ = await told(None)
    workflow, _ = drawn(store, 6)
    with pytest.raises(ExecutorError):
        await workflow.run("a")
    before, history = dict(workflow.state), await workflow.history()
    workflow, _ = drawn(store) if anew else (workflow, None)
    chosen = history[0].checkpoint_id
    fork = await workflow.fork(chosen, "twin")
    assert fork.key == "twin"
    assert dict(fork.state) == before
    [first] = await fork.history()
    assert (first.kind, first.parent_id, first.epoch) == ("fork", chosen, 1)
    assert await workflow.history() == history
    if anew:
        fork = drawn(store)[0].instance("twin")
    assert (await fork.resume()).outputs == outputs
    assert dict(fork.state) == state
    assert dict(await drawn(store)[0].refresh()) == before


async def test_a_fork_may_be_of_any_checkpoint_and_is_refused_where_something_is(
    store: Store,
) -> None:
    workflow, _ = drawn(store)
    await workflow.run("a")
    for number, one in enumerate(await workflow.history()):
        fork = await workflow.fork(one.checkpoint_id, f"fork {number}")
        _, state = await store.load("press/default", one.checkpoint_id)
        assert dict(fork.state) == state
    newest = await workflow.fork(None, "newest")
    assert dict(newest.state) == dict(workflow.state)
    for taken in ("newest", "fork 0", "default"):
        with pytest.raises(CheckpointError, match="exists already"):
            await workflow.fork(None, taken)
    # A fork that is refused makes nothing: the key is as good as new.
    with pytest.raises(CheckpointNotFoundError):
        await workflow.fork("nobody", "new")
    assert await workflow.instance("new").history() == []
    assert dict((await workflow.fork(None, "new")).state) == dict(newest.state)
    assert (await newest.run("b")).outcome is Outcome.COMPLETED


# What cannot be read.


def spoil(store: SqliteStore, column: str, where: str, value: Any) -> None:
    base = sqlite3.connect(store.path_of("press/default"))
    with base:
        base.execute(
            f"UPDATE tenure_checkpoint SET {column} = ? WHERE position = {where}",
            (value,),
        )
    base.close()


@pytest.mark.parametrize("column", ["change", "standing"])
@pytest.mark.parametrize("value", [b"", b"\xc1", b"\x80", b"\x81\xa5state\x80"])
async def test_a_newest_checkpoint_that_cannot_be_read_is_an_error(
    sqlite: SqliteStore, column: str, value: bytes
) -> None:
    workflow, _ = drawn(sqlite)
    await workflow.run("a")
    newest = (await workflow.history())[0].checkpoint_id
    spoil(sqlite, column, "(SELECT max(position) FROM tenure_checkpoint)", value)
    for ask in (
        lambda other: other.resume(),
        lambda other: other.run("b"),
        lambda other: other.refresh(),
        lambda other: other.fork(None, "x"),
    ):
        with pytest.raises(CheckpointError, match=newest):
            await ask(drawn(sqlite)[0])
    # Nothing was made of it, and an older one can still be asked for by name.
    assert (await workflow.history())[0].checkpoint_id == newest
    older = (await workflow.history())[1].checkpoint_id
    assert (await drawn(sqlite)[0].run(checkpoint_id=older)).outputs


async def test_a_missing_newest_checkpoint_is_an_error_and_not_the_one_before(
    sqlite: SqliteStore,
) -> None:
    workflow, _ = drawn(sqlite)
    await workflow.run("a")
    base = sqlite3.connect(sqlite.path_of("press/default"))
    with base:
        base.execute("DELETE FROM tenure_checkpoint WHERE position = 13")
    base.close()
    for ask in (lambda one: one.resume(), lambda one: one.run("b")):
        with pytest.raises(CheckpointError, match="it is the newest"):
            await ask(drawn(sqlite)[0])


async def test_an_ancestor_that_cannot_be_read_is_an_error(
    sqlite: SqliteStore,
) -> None:
    workflow, _ = drawn(sqlite)
    await workflow.run("a")
    spoil(sqlite, "change", "3", b"\xc1")
    history = await workflow.history()
    with pytest.raises(CheckpointError, match="cannot be read"):
        await drawn(sqlite)[0].run(checkpoint_id=history[-4].checkpoint_id)


# What cannot be saved.


async def test_a_full_disk_fails_the_run_and_leaves_no_half(
    sqlite: SqliteStore,
) -> None:
    @executor
    async def grow(size: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.set_state("size", size)
        ctx.set_state("blob", b"x" * size)
        await ctx.send_message(size)

    @executor
    async def grow_more(size: int, ctx: WorkflowContext[int, str]) -> None:
        ctx.set_state("blob", b"y" * size * 1000)

    workflow = (
        WorkflowBuilder("press", start=grow, store=sqlite)
        .add_edge(grow, grow_more)
        .build()
    )
    await workflow.run(1)
    before = dict(workflow.state)

    def limit(base: sqlite3.Connection) -> Any:
        pages = base.execute("PRAGMA page_count").fetchone()[0]
        return base.execute(f"PRAGMA max_page_count = {pages + 10}").fetchone()

    await sqlite._ask("press/default", limit)
    with pytest.raises(CheckpointError, match="full"):
        await workflow.run(1000)
    half = dict(workflow.state)
    assert half == {"size": 1000, "blob": b"x" * 1000}, before
    other = (
        WorkflowBuilder("press", start=grow, store=sqlite)
        .add_edge(grow, grow_more)
        .build()
    )
    assert dict(await other.refresh()) == half
    await sqlite._ask(
        "press/default", lambda base: base.execute("PRAGMA max_page_count = 100000")
    )
    # What was left undone can be done once there is room.
    await other.resume()
    assert other.state["blob"] == b"y" * 10**6


@pytest.mark.parametrize("verb", ["claim", "commit"])
async def test_a_file_that_another_holds_locked_fails_the_run(
    sqlite: SqliteStore, verb: str
) -> None:
    entered, locked = asyncio.Event(), asyncio.Event()

    @executor
    async def wait(name: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("name", name)
        if name == "b":
            entered.set()
            await locked.wait()

    workflow = WorkflowBuilder("press", start=wait, store=sqlite).build()
    await workflow.run("a")
    base = sqlite3.connect(sqlite.path_of("press/default"), isolation_level=None)
    if verb == "claim":
        base.execute("BEGIN IMMEDIATE")
        running = asyncio.create_task(workflow.run("b"))
    else:
        running = asyncio.create_task(workflow.run("b"))
        await entered.wait()
        base.execute("BEGIN IMMEDIATE")
        locked.set()
    with pytest.raises(CheckpointError, match="locked"):
        await running
    base.close()
    assert dict(workflow.state) == {"name": "a"}
    locked.set()
    await workflow.run("c")
    assert dict(workflow.state) == {"name": "c"}


async def test_a_file_that_is_no_database_is_an_error(sqlite: SqliteStore) -> None:
    sqlite.path_of("press/default").write_bytes(b"what is this?" * 1000)
    workflow, _ = drawn(sqlite)
    with pytest.raises(CheckpointError, match="not a database"):
        await workflow.run("a")
    assert not workflow.instance("default").busy


class Failing(MemoryStore):
    """Fails the commits that it is told to, by their place."""

    def __init__(self, *places: int) -> None:
        super().__init__()
        self.places = set(places)
        self.count = 0

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Any:
        self.count += 1
        if self.count in self.places:
            raise CheckpointError("the disk", "full")
        return super().commit(instance, checkpoint, state, final=final)


@pytest.mark.parametrize("place", range(1, SUPERSTEPS + 2))
async def test_a_save_that_fails_may_be_made_up_for_by_the_next_one(
    place: int,
) -> None:
    outputs, state, _ = await told(None)
    store = Failing(place)
    workflow, _ = drawn(store, on_save_failure="warn")
    with pytest.warns(RuntimeWarning, match="goes on without a checkpoint: the disk"):
        result = await workflow.run("a")
    assert result.outputs == outputs
    assert dict(workflow.state) == state
    [failed] = [one for one in result.events if isinstance(one, CheckpointFailed)]
    assert failed.superstep == place - 1
    other, _ = drawn(store)
    await other.refresh()
    if place <= SUPERSTEPS:
        assert dict(other.state) == state
    else:
        # The last one has no next one, until there is another run.
        assert dict(other.state) != state
        await workflow.run("b")
        assert "left a" in (await drawn(store)[0].refresh())["seen"]
    line = await workflow.history()
    assert [one.parent_id for one in line[:-1]] == [
        one.checkpoint_id for one in line[1:]
    ]


async def test_looking_up_what_others_did_forgets_nothing_that_was_not_saved() -> None:
    store = Failing(SUPERSTEPS + 1)
    workflow, _ = drawn(store, on_save_failure="warn")
    with pytest.warns(RuntimeWarning, match="goes on without a checkpoint"):
        await workflow.run("a")
    unsaved = dict(workflow.state)
    assert dict(await drawn(store)[0].refresh()) != unsaved
    assert dict(await workflow.refresh()) == unsaved
    await workflow.run("b")
    assert dict(await drawn(store)[0].refresh()) == dict(workflow.state)
    assert "left a" in workflow.state["seen"]


async def test_a_save_that_fails_fails_the_run_unless_asked_otherwise() -> None:
    workflow, _ = drawn(Failing(3))
    with pytest.raises(CheckpointError, match="the disk: full"):
        await workflow.run("a")
    assert not workflow.instance("default").busy
    with pytest.raises(DefinitionError, match="on_save_failure"):
        drawn(None, on_save_failure="ignore")


# Another graph.


def chain(store: Store, *names: str) -> Workflow:
    def passing(name: str) -> Executor:
        @executor(id=name)
        async def work(message: str, ctx: WorkflowContext[str, str]) -> None:
            ctx.set_state(name, message)
            if message == f"stop at {name}":
                raise BrokenError
            if name != names[-1]:
                await ctx.send_message(message)

        return work

    builder = WorkflowBuilder("chain", start=(executors := [*map(passing, names)])[0])
    builder = WorkflowBuilder("chain", start=executors[0], store=store)
    return builder.add_chain(executors).build()


async def test_a_changed_graph_is_refused_what_was_left_undone_and_given_the_state(
    store: Store,
) -> None:
    old = chain(store, "a", "b", "c")
    with pytest.raises(ExecutorError):
        await old.run("stop at c")
    new = chain(store, "a", "c")
    with pytest.raises(CheckpointMismatchError) as caught:
        await new.resume()
    assert caught.value.checkpoint_id == (await old.history())[0].checkpoint_id
    with pytest.raises(CheckpointMismatchError):
        await new.fork(None, "x")
    assert dict((await old.fork(None, "x")).state) == dict(old.state)
    await new.run("hello")
    assert dict(new.state) == {"a": "hello", "b": "stop at c", "c": "hello"}
    # From here on it is the new graph's.
    assert (await new.resume()).outcome is Outcome.COMPLETED
    with pytest.raises(CheckpointMismatchError):
        await old.resume()


# Types.


class Odd:
    pass


def odd_workflow(store: Store, act: Callable[..., Any]) -> Workflow:
    @executor
    async def first(message: object, ctx: WorkflowContext[object, object]) -> None:
        act(ctx)

    @executor
    async def second(message: object, ctx: WorkflowContext[None, object]) -> None: ...

    return (
        WorkflowBuilder("w", start=first, store=store).add_edge(first, second).build()
    )


@pytest.mark.parametrize(
    ("act", "what"),
    [
        (lambda ctx: ctx.set_state("cart", Odd()), "state key 'cart'"),
        (lambda ctx: ctx.set_state("cart", {"a": [Odd()]}), "state key 'cart'"),
        (lambda ctx: ctx.set_state("cart", print), "state key 'cart'"),
        (lambda ctx: ctx.send_message((1, Odd())), "message of 'first'"),
    ],
)
async def test_a_type_that_is_not_registered_fails_the_executor_that_used_it(
    sqlite: SqliteStore, act: Callable[..., Any], what: str
) -> None:
    workflow = odd_workflow(sqlite, act)
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("x")
    cause = caught.value.__cause__
    assert isinstance(cause, StateTypeError)
    assert cause.what == what
    assert cause.value_type in ("Odd", "builtin_function_or_method")
    assert [one.kind for one in await workflow.history()] == ["entry"]


async def test_a_key_that_cannot_be_kept_fails_the_executor_that_used_it(
    sqlite: SqliteStore,
) -> None:
    @executor
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("ä", 1)
        ctx.set_state("\udcff" if message == "half" else message, 1)

    workflow = WorkflowBuilder("press", start=work, store=sqlite).build()
    with pytest.raises(ExecutorError, match=r"state key '\\udcff'"):
        await workflow.run("half")
    await workflow.run("ß")
    assert dict(workflow.state) == {"ä": 1, "ß": 1}


async def test_an_input_of_a_type_that_is_not_registered_is_refused_in_the_call(
    sqlite: SqliteStore,
) -> None:
    workflow = odd_workflow(sqlite, lambda ctx: None)
    for start in (workflow.run, workflow.stream):
        with pytest.raises(StateTypeError, match=r"input of a run.*Odd"):
            start({"x": Odd()})
    assert not workflow.instance("default").busy


async def test_what_a_reducer_makes_is_refused_by_its_key(sqlite: SqliteStore) -> None:
    key = StateKey[Any]("total", reduce=lambda so_far, staged: Odd())
    workflow = odd_workflow(sqlite, lambda ctx: ctx.set_state(key, 1))
    with pytest.raises(StateTypeError, match=r"state key 'total'.*Odd"):
        await workflow.run("x")
    assert dict(workflow.state) == {}


async def test_a_snapshot_that_cannot_be_kept_names_its_executor(
    sqlite: SqliteStore,
) -> None:
    class Holder(Executor):
        @handler
        async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None: ...

        def on_checkpoint_save(self) -> Any:
            return {"held": Odd()}

    workflow = WorkflowBuilder("w", start=Holder(), store=sqlite).build()
    with pytest.raises(ExecutorError, match=r"snapshot of executor 'Holder'.*Odd"):
        await workflow.run("x")


# What it costs.


class Watching(MemoryStore):
    """Counts how often the whole state is asked for."""

    asked = 0

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Any:
        watching = self

        class Watched(Mapping[str, Any]):
            def __getitem__(self, key: str) -> Any:
                return state[key]

            def __iter__(self) -> Any:
                watching.asked += 1
                return iter(state)

            def __len__(self) -> int:
                return len(state)

        return super().commit(instance, checkpoint, Watched(), final=final)


async def test_the_whole_state_is_put_together_once_in_fifty_commits() -> None:
    store = Watching(keep=None)
    workflow = chain(store, "a", "b", "c")
    for _ in range(50):
        await workflow.run("x")
    commits = len(await workflow.history())
    assert commits == 200
    assert store.asked == -(-commits // 51)


async def test_a_small_write_into_a_large_state_is_a_small_write(
    sqlite: SqliteStore,
) -> None:
    @executor
    async def put(size: int, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(f"k{size}", b"x" * size)

    workflow = WorkflowBuilder("press", start=put, store=sqlite).build()
    await workflow.run(10**6)
    for _ in range(10):
        await workflow.run(100)
    # Another process knows as well that nothing but the changes is due.
    for _ in range(3):
        other = SqliteStore(sqlite._directory)
        again = WorkflowBuilder("press", start=put, store=other).build()
        await again.run(101)
        await other.aclose()
    base = sqlite3.connect(sqlite.path_of("press/default"))
    sizes = [
        row[0]
        for row in base.execute(
            "SELECT length(change) FROM tenure_checkpoint ORDER BY position"
        )
    ]
    base.close()
    # The entry, the large change, and the whole state after it.
    assert max(sizes[3:]) < 1000
    assert dict(again.state).keys() == {"k1000000", "k100", "k101"}


async def test_many_large_changes_are_followed_by_a_whole_state_again(
    sqlite: SqliteStore,
) -> None:
    @executor
    async def put(number: int, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("k", [number] * 1000)

    workflow = WorkflowBuilder("press", start=put, store=sqlite).build()
    for number in range(20):
        await workflow.run(number)
    base = sqlite3.connect(sqlite.path_of("press/default"))
    full = base.execute("SELECT count(*) FROM tenure_checkpoint WHERE is_full")
    assert 5 < full.fetchone()[0] < 25
    base.close()
    other = WorkflowBuilder("press", start=put, store=sqlite).build()
    assert dict(await other.refresh()) == {"k": [19] * 1000}


# The key of a piece of work.


async def test_every_piece_of_work_has_a_key_of_its_own(store: Store) -> None:
    keys: list[str] = []

    @executor
    async def work(message: list[int], ctx: WorkflowContext[list[int], str]) -> None:
        keys.append(ctx.idempotency_key)
        assert ctx.idempotency_key == keys[-1]
        for _ in message[1:]:
            await ctx.send_message(message[1:])

    builder = WorkflowBuilder("w", start=work, store=store)
    workflow = builder.add_edge(work, work).build()
    await workflow.run([1, 2, 3])
    await workflow.run([1, 2, 3])
    await workflow.instance("other").run([1, 2, 3])
    first = (await workflow.history())[-1]
    await workflow.run(checkpoint_id=first.checkpoint_id)
    plain = WorkflowBuilder("w", start=work).add_edge(work, work).build()
    await plain.run([1, 2, 3])
    await plain.run([1, 2, 3])
    assert len(keys) == len(set(keys)) == 6 * (1 + 2 + 2)
