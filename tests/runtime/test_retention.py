"""Old checkpoints go, or all that an instance holds: asked of the engine."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation.operations import Commit, CommitCause, Operation
from tenure.runtime import (
    CheckpointError,
    CheckpointNotFoundError,
    Epoch,
    Executor,
    MemoryStore,
    Outcome,
    OwnershipLostError,
    RunId,
    SqliteStore,
    Store,
    UnknownRequestError,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)
from tenure.runtime.testing import HeldExecutor, turns

STORES = ["memory", "sqlite", "blocking"]


def made(kind: str, directory: Path, **how: Any) -> Store:
    if kind == "memory":
        return MemoryStore(**how)
    return SqliteStore(directory, blocking=kind == "blocking", **how)


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    found = made(request.param, tmp_path / "runs")
    yield found
    if isinstance(found, SqliteStore):
        await found.aclose()


@executor
async def count(left: int, ctx: WorkflowContext[int, int]) -> None:
    ctx.set_state("counted", ctx.get_state("counted", 0) + 1)
    ctx.set_state(f"left {left % 3}", left)
    if left > 1:
        await ctx.send_message(left - 1)
    else:
        await ctx.yield_output(ctx.get_state("counted"))


def counting(store: Store | None, **how: Any) -> Workflow:
    builder = WorkflowBuilder(
        "press", start=count, store=store, max_supersteps=5000, **how
    )
    return builder.add_edge(count, count).build()


class Asking(Executor):
    @handler
    async def ask(self, question: str, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state("asked", question)
        await ctx.request_info(question, str)

    @response_handler
    async def take(
        self, question: str, answer: str, ctx: WorkflowContext[None, None]
    ) -> None:
        ctx.set_state("asked", answer)


def asking(store: Store | None) -> Workflow:
    return WorkflowBuilder("press", start=Asking("asking"), store=store).build()


def holding(store: Store | None, held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held, store=store).build()


# Pruned.


async def test_pruning_leaves_the_newest_checkpoints_and_what_they_bring_back(
    store: Store,
) -> None:
    workflow = counting(store)
    await workflow.run(70)
    before = await workflow.history()
    assert await workflow.prune(keep=5) == 66
    assert await workflow.instance("default").prune(keep=5) == 0
    assert await workflow.history() == before[:5]
    # The oldest that is left was taken with four supersteps to go.
    other = counting(store)
    result = await other.run(checkpoint_id=before[4].checkpoint_id)
    assert (result.supersteps, result.outputs) == (4, (70,))
    gone = before[5].checkpoint_id
    with pytest.raises(CheckpointNotFoundError, match="may have been pruned") as caught:
        await counting(store).run(checkpoint_id=gone)
    assert caught.value.checkpoint_id == gone
    with pytest.raises(CheckpointNotFoundError, match="may have been pruned"):
        await workflow.fork(gone, "new")


async def test_a_run_that_is_under_way_goes_on_whoever_prunes(
    store: Store, detector: Detector
) -> None:
    held = HeldExecutor()
    workflow, other = holding(store, held), holding(store, held)
    held.released["a"].set()
    for _ in range(5):
        await workflow.run("a")
    run = asyncio.create_task(workflow.run("b"))
    await held.staged["b"].wait()
    assert await other.prune(keep=1) == 10
    assert await workflow.prune(keep=1) == 0
    held.released["b"].set()
    assert (await run).outputs == ("b",)
    assert dict(await other.refresh()) == {"a_key": "a", "b_key": "b"}
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("keep", [0, -3])
async def test_nobody_can_ask_to_keep_nothing(store: Store, keep: int) -> None:
    workflow = counting(store)
    await workflow.run(1)
    with pytest.raises(ValueError, match="always kept"):
        await workflow.prune(keep=keep)
    assert len(await workflow.history()) == 2


async def test_without_a_store_pruning_says_how_to_get_one() -> None:
    with pytest.raises(CheckpointError, match="prune needs a store"):
        await counting(None).prune(keep=1)


async def test_a_memory_store_stays_small_however_long_an_instance_lives() -> None:
    store = MemoryStore()
    workflow = counting(store)
    for _ in range(4):
        await workflow.run(500)
        assert 100 <= len(await workflow.history()) < 150
    assert (await workflow.run(1)).outputs == (2001,)
    everything = MemoryStore(keep=None)
    await counting(everything).run(500)
    assert len(await counting(everything).history()) == 501


@pytest.mark.parametrize("kind", STORES)
async def test_a_store_that_is_to_keep_few_checkpoints_loses_nothing_else(
    kind: str, tmp_path: Path
) -> None:
    store = made(kind, tmp_path, keep=3)
    workflow = counting(store)
    assert (await workflow.run(400)).outputs == (400,)
    assert 3 <= len(await workflow.history()) <= 105
    newest = (await workflow.history())[2].checkpoint_id
    result = await counting(store).run(checkpoint_id=newest)
    assert (result.supersteps, result.outputs) == (2, (400,))
    if isinstance(store, SqliteStore):
        await store.aclose()


class Late:
    """A store that answers what it is asked to load only when the test says so."""

    def __init__(self, inner: Store) -> None:
        self.inner, self.asked, self.go = inner, asyncio.Event(), asyncio.Event()
        self.id, self.lease = inner.id, inner.lease
        self.claim, self.commit, self.extend = inner.claim, inner.commit, inner.extend
        self.history, self.check = inner.history, inner.check
        self.prune, self.erase = inner.prune, inner.erase

    async def load(self, instance: str, checkpoint_id: str | None = None) -> Any:
        self.asked.set()
        await self.go.wait()
        return await self.inner.load(instance, checkpoint_id)


async def test_a_run_whose_checkpoint_was_pruned_by_its_successor_is_lost(
    store: Store,
) -> None:
    await counting(store).run(3)
    late = Late(store)
    run = asyncio.create_task(counting(late).run(3))
    await late.asked.wait()
    other = counting(store)
    assert (await other.run(3, on_conflict="supersede")).outputs == (6,)
    await other.prune(keep=1)
    late.go.set()
    with pytest.raises(OwnershipLostError):
        await run


# Erased.


async def test_what_was_erased_is_nowhere_and_the_instance_begins_anew(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    workflow = asking(store)
    await workflow.run("who?")
    [request] = workflow.pending_requests
    result = await workflow.erase()
    assert (result.outcome, result.epoch) == (Outcome.COMPLETED, 2)
    assert (result.supersteps, result.pending_requests) == (0, ())
    assert dict(workflow.state) == {}
    assert workflow.pending_requests == ()
    assert await workflow.history() == []
    with pytest.raises(UnknownRequestError):
        await workflow.run(responses={request.request_id: "me"})
    with pytest.raises(CheckpointNotFoundError, match="have been erased"):
        await workflow.resume()
    assert (await workflow.run("who?")).epoch == 5
    assert dict(workflow.state) == {"asked": "who?"}
    assert [one.position for one in await workflow.history()] == [4, 3]
    [told] = [
        one
        for one in operations
        if isinstance(one, Commit) and one.cause is CommitCause.RUN_ENTRY
    ]
    assert told.writes is not None
    assert told.writes.pairs == (("asked", 2),)
    assert detector.verdict is Verdict.CLEAN


async def test_another_process_learns_that_an_instance_was_erased(store: Store) -> None:
    one, other = asking(store), asking(store)
    await one.run("who?")
    await other.refresh()
    assert other.pending_requests
    await one.erase()
    assert dict(await other.refresh()) == {}
    assert other.pending_requests == ()
    await one.run("who?")
    await other.refresh()
    await one.erase()
    # A run finds out by itself as well.
    await counting(store).run(1)
    assert dict(await other.refresh()) == {"counted": 1, "left 1": 1}


async def test_erasing_what_was_never_used_is_no_error(store: Store) -> None:
    workflow = counting(store)
    assert (await workflow.erase()).outcome is Outcome.COMPLETED
    assert (await workflow.erase()).epoch == 2
    assert (await workflow.run(1)).outputs == (1,)


async def test_without_a_store_state_and_requests_are_erased_from_memory() -> None:
    workflow = asking(None)
    await workflow.run("who?")
    before = workflow.state
    assert (await workflow.erase()).outcome is Outcome.COMPLETED
    assert dict(workflow.state) == {}
    assert workflow.pending_requests == ()
    assert dict(before) == {"asked": "who?"}, "a snapshot is whoever's that took it"


@pytest.mark.parametrize("where", ["here", "another process"])
async def test_a_live_owner_is_not_robbed(store: Store, where: str) -> None:
    held = HeldExecutor()
    workflow = holding(store, held)
    other = workflow if where == "here" else holding(store, held)
    run = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    with pytest.raises(WorkflowBusyError):
        await other.erase()
    waiting = asyncio.create_task(other.erase(on_conflict="wait"))
    await turns(20)
    assert not waiting.done()
    held.released["a"].set()
    assert (await run).outputs == ("a",)
    await waiting
    assert dict(await other.refresh()) == {}
    assert await workflow.history() == []


@pytest.mark.parametrize("where", ["here", "another process"])
async def test_an_owner_that_is_superseded_by_an_erasure_commits_nothing(
    store: Store, detector: Detector, where: str
) -> None:
    held = HeldExecutor()
    workflow = holding(store, held)
    other = workflow if where == "here" else holding(store, held)
    run = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    await other.erase(on_conflict="supersede")
    held.released["a"].set()
    with pytest.raises(OwnershipLostError):
        await run
    assert await workflow.history() == []
    assert dict(await workflow.refresh()) == {}
    assert detector.verdict is not Verdict.VIOLATED


async def test_an_erasure_that_is_superseded_while_it_waits_removes_nothing(
    store: Store,
) -> None:
    held = HeldExecutor()
    workflow = holding(store, held)
    held.released["c"].set()
    await workflow.run("c")
    erasing = asyncio.create_task(workflow.erase())
    later = asyncio.create_task(workflow.run("c", on_conflict="supersede"))
    with pytest.raises(OwnershipLostError):
        await erasing
    await later
    assert dict(workflow.state) == {"c_key": "c"}


async def test_a_fork_has_a_copy_of_its_own(store: Store) -> None:
    workflow = counting(store)
    await workflow.run(3)
    fork = await workflow.fork(None, "fork")
    await workflow.erase()
    await workflow.prune(keep=1)
    assert dict(fork.state)["counted"] == 3
    assert (await fork.run(1)).outputs == (4,)


async def test_what_this_graph_cannot_read_it_can_erase(store: Store) -> None:
    await asking(store).run("who?")
    workflow = counting(store)
    with pytest.raises(CheckpointError):
        await workflow.resume()
    await workflow.erase()
    assert (await workflow.run(1)).outputs == (1,)


async def test_a_store_that_fails_to_erase_leaves_all_as_it_was(store: Store) -> None:
    def broken(instance: str, run_id: RunId, epoch: Epoch) -> Any:
        raise CheckpointError("the store", "out of reach")

    unreliable = Late(store)
    unreliable.erase = broken
    workflow = counting(unreliable)
    await workflow.run(2)
    with pytest.raises(CheckpointError, match="out of reach"):
        await workflow.erase()
    assert workflow.state["counted"] == 2
    assert len(await workflow.history()) == 3
    # It was given back: whoever is polite may have it.
    assert (await counting(store).run(1)).outputs == (3,)


async def test_a_caller_who_is_cancelled_while_it_is_erased_sees_that_and_so_do_all(
    store: Store,
) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slowly(instance: str, run_id: RunId, epoch: Epoch) -> None:
        await store.erase(instance, run_id, epoch)
        asked.set()
        await go.wait()

    slow = Late(store)
    slow.erase = slowly
    workflow = counting(slow)
    await workflow.run(2)
    erasing = asyncio.create_task(workflow.erase())
    await asked.wait()
    erasing.cancel()
    await turns(5)
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await erasing
    assert dict(workflow.state) == {}
    assert await workflow.history() == []
    assert not workflow.instance("default").busy
