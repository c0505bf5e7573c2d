"""Two words of ownership: this process's, and the store's. They never part for long."""

import asyncio
import gc
import sys
import warnings
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tenure.detectors import Certainty, Detector, Severity, Verdict
from tenure.instrumentation.operations import (
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Operation,
    Outcome,
    Owner,
    Release,
)
from tenure.runtime import (
    Checkpoint,
    CheckpointError,
    Claimed,
    DeadlineError,
    Epoch,
    Held,
    MemoryStore,
    OwnershipLostError,
    RunId,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    executor,
)
from tenure.runtime.testing import HeldExecutor, turns


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


class Gated:
    """A store whose answers can be held back, each kind by a gate.

    Attributes:
        asked: For each kind, an event that is set when the next question has come.
        answered: For each kind, an event that is set when the inner store has answered.
    """

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.id, self.lease = inner.id, inner.lease
        self.check = inner.check
        self.load, self.history = inner.load, inner.history
        self.before: dict[str, asyncio.Event] = {}
        self.after: dict[str, asyncio.Event] = {}
        self.asked: dict[str, asyncio.Event] = {}
        self.answered: dict[str, asyncio.Event] = {}
        self.fails: set[str] = set()

    def hold(self, kind: str, when: str = "after") -> asyncio.Event:
        """Hold back the next answer of a kind; return what lets it through."""
        gate = asyncio.Event()
        (self.before if when == "before" else self.after)[kind] = gate
        self.asked[kind], self.answered[kind] = asyncio.Event(), asyncio.Event()
        return gate

    async def _pass(self, kind: str, question: Callable[[], Awaitable[Any]]) -> Any:
        before, after = self.before.pop(kind, None), self.after.pop(kind, None)
        asked, answered = self.asked.pop(kind, None), self.answered.pop(kind, None)
        if asked is not None and answered is not None:
            self.asked[f"{kind} now"], self.answered[f"{kind} now"] = asked, answered
            asked.set()
        if before is not None:
            await before.wait()
        if kind in self.fails:
            raise CheckpointError("the store", "out of reach")
        try:
            return await question()
        finally:
            if answered is not None:
                answered.set()
            if after is not None:
                await after.wait()

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
        return self._pass(
            "claim",
            lambda: self.inner.claim(
                instance,
                run_id,
                holder=holder,
                rank=rank,
                takeover=takeover,
                expected=expected,
            ),
        )

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner | None]:
        return self._pass(
            checkpoint.kind,
            lambda: self.inner.commit(instance, checkpoint, state, final=final),
        )

    def extend(
        self, instance: str, run_id: RunId, epoch: Epoch, *, final: bool = False
    ) -> Awaitable[bool]:
        return self._pass(
            "extend",
            lambda: self.inner.extend(instance, run_id, epoch, final=final),
        )


class Silent(Gated):
    """A store that was written before stores said who owns an instance."""

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[None]:
        async def keep() -> None:
            await self.inner.commit(instance, checkpoint, state, final=final)

        return keep()


class Unfenced(Gated):
    """A store that calls everything kept, and says who owned the instance."""

    def commit(
        self,
        instance: str,
        checkpoint: Checkpoint,
        state: Mapping[str, Any],
        *,
        final: bool = False,
    ) -> Awaitable[Owner | None]:
        async def keep() -> Owner | None:
            try:
                return await self.inner.commit(instance, checkpoint, state, final=final)
            except OwnershipLostError as refused:
                return Owner(refused.owner)

        return keep()


@executor
async def note(name: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.set_state(name, ctx.epoch)
    await ctx.yield_output(name)


def noting(store: Store, **how: Any) -> Workflow:
    return WorkflowBuilder("press", start=note, store=store, **how).build()


def holding(store: Store, held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held, store=store).build()


def claims(operations: list[Operation]) -> list[int]:
    return [one.run.epoch for one in operations if isinstance(one, Claim)]


def releases(operations: list[Operation]) -> dict[int, Outcome]:
    return {
        one.run.epoch: one.outcome for one in operations if isinstance(one, Release)
    }


# Numbers.


async def test_a_run_that_was_dropped_leaves_no_gap_between_the_epochs(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    workflow = noting(store)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        workflow.run("dropped")
        gc.collect()
        workflow.stream("dropped too")
        gc.collect()
    await turns(3)
    result = await workflow.run("a")
    assert result.epoch == 1
    assert dict(workflow.state) == {"a": 1}
    assert claims(operations) == [1]
    assert detector.verdict is Verdict.CLEAN


async def test_an_epoch_is_known_once_the_store_has_answered(store: Store) -> None:
    gated = Gated(store)
    gate = gated.hold("claim", "before")
    workflow = noting(gated)
    handle = workflow.run("a")
    instance = workflow.instance("default")
    assert instance.busy
    assert (handle.epoch, instance.owner.epoch) == (0, 0)
    with pytest.raises(WorkflowBusyError, match="no epoch from the store") as caught:
        workflow.run("b")
    assert caught.value.owner == handle.run_id
    assert caught.value.epoch == 0
    gate.set()
    assert (await handle).epoch == 1
    assert instance.owner.epoch == 1


async def test_epochs_of_two_processes_grow_together(
    store: Store, detector: Detector
) -> None:
    one, other = noting(store), noting(store)
    found = [
        (await workflow.run(f"k{number}")).epoch
        for number, workflow in enumerate([one, other, other, one, one, other])
    ]
    assert found == [1, 2, 3, 4, 5, 6]
    assert dict(one.state) == {f"k{number}": number + 1 for number in range(5)}
    assert dict(await one.refresh()) == dict(other.state)
    assert detector.verdict is Verdict.CLEAN


# A successor in this process, while the store is asked.


@pytest.mark.parametrize("answer", ["early", "late"])
async def test_a_commit_that_the_store_has_accepted_stands_whoever_came_meanwhile(
    store: Store, answer: str, operations: list[Operation], detector: Detector
) -> None:
    gated = Gated(store)
    held = HeldExecutor()
    workflow = holding(gated, held)
    gate = gated.hold("superstep")
    answered = gated.answered["superstep"]
    held.released["a"].set()
    first = asyncio.create_task(workflow.run("a"))
    await answered.wait()
    second = asyncio.create_task(workflow.run("b", on_conflict="supersede"))
    if answer == "late":
        # The successor has its epoch, and has read the commit from the store, before
        # the one who made it learns of it.
        await held.staged["b"].wait()
        assert workflow.state["a_key"] == "a"
    else:
        await turns(1)
    gate.set()
    with pytest.raises(OwnershipLostError):
        await first
    await held.staged["b"].wait()
    held.released["b"].set()
    await second
    assert dict(workflow.state) == {"a_key": "a", "b_key": "b"}
    other = holding(store, held)
    assert dict(await other.refresh()) == dict(workflow.state)
    assert [one.epoch for one in await workflow.history()] == [2, 2, 1, 1]
    assert claims(operations) == [1, 2]
    assert releases(operations)[1] is Outcome.SUPERSEDED
    assert detector.verdict is Verdict.CLEAN


async def test_a_commit_that_comes_after_a_claim_is_refused_and_shows_nowhere(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    gated = Gated(store)
    held = HeldExecutor()
    workflow = holding(gated, held)
    gate = gated.hold("superstep", "before")
    asked = gated.asked["superstep"]
    held.released["a"].set()
    first = asyncio.create_task(workflow.run("a"))
    await asked.wait()
    second = asyncio.create_task(workflow.run("b", on_conflict="supersede"))
    await held.staged["b"].wait()
    gate.set()
    with pytest.raises(OwnershipLostError):
        await first
    held.released["b"].set()
    await second
    assert dict(workflow.state) == {"b_key": "b"}
    assert [one.epoch for one in await workflow.history()] == [2, 2, 1]
    assert not [
        one for one in operations if isinstance(one, Commit) and one.run.epoch == 1
    ]
    assert detector.verdict is Verdict.CLEAN


async def test_runs_that_are_superseded_before_the_store_answers_end_as_such(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    gated = Gated(store)
    held = HeldExecutor()
    workflow = holding(gated, held)
    first = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    gate = gated.hold("claim", "before")
    asked = gated.asked["claim"]
    second = asyncio.create_task(workflow.run("b", on_conflict="supersede"))
    await asked.wait()
    third = asyncio.create_task(workflow.run("c", on_conflict="supersede"))
    await turns(3)
    fourth = asyncio.create_task(workflow.run("d", on_conflict="supersede"))
    await turns(3)
    gate.set()
    held.released["d"].set()
    assert (await fourth).outputs == ("d",)
    for superseded in (first, second, third):
        with pytest.raises(OwnershipLostError):
            await superseded
    assert dict(workflow.state) == {"d_key": "d"}
    # Every epoch that the store has issued was told, and has ended.
    assert sorted(releases(operations)) == claims(operations)
    assert claims(operations) == sorted(claims(operations))
    assert detector.verdict is Verdict.CLEAN
    swept = [one for one in operations if isinstance(one, Discard) and one.writes]
    keys = [key for one in swept if one.writes for key in one.writes.keys]
    assert keys == ["a_key"], "what was swept was told once"


async def test_a_claim_that_the_store_cannot_answer_ends_both_runs_and_nothing_else(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    gated = Gated(store)
    held = HeldExecutor()
    workflow = holding(gated, held)
    first = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    gated.fails.add("claim")
    with pytest.raises(CheckpointError, match="out of reach"):
        await workflow.run("b", on_conflict="supersede")
    with pytest.raises(OwnershipLostError):
        await first
    assert releases(operations) == {1: Outcome.SUPERSEDED}
    gated.fails.clear()
    held.released["c"].set()
    await workflow.run("c")
    assert dict(workflow.state) == {"c_key": "c"}
    assert detector.verdict is Verdict.CLEAN


# A successor in another process.


async def test_a_run_that_another_process_took_over_is_refused_and_lost(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    held.released["b"].set()
    await other.run("b", on_conflict="supersede")
    held.released["a"].set()
    with pytest.raises(OwnershipLostError) as caught:
        await first
    assert (caught.value.epoch, caught.value.owner) == (1, 2)
    assert dict(one.state) == {}
    assert dict(other.state) == {"b_key": "b"}
    [refused] = [
        one for one in operations if isinstance(one, Discard) and one.run.epoch == 1
    ]
    assert refused.writes is not None
    assert refused.writes.keys == ("a_key",)
    # Its process knows of no successor: the store has said who owns the instance.
    assert refused.owner is not None
    assert refused.owner.epoch == 2
    assert releases(operations) == {2: Outcome.COMPLETED, 1: Outcome.LOST}
    [averted] = detector.findings
    assert (averted.anomaly, averted.severity) == ("stale-discard", Severity.AVERTED)
    assert (averted.culprit_epoch, averted.owner_epoch) == (1, 2)
    # Its process goes on from what the other one did.
    held.released["c"].set()
    await one.run("c")
    assert dict(one.state) == {"b_key": "b", "c_key": "c"}
    assert detector.verdict is Verdict.CLEAN


async def test_a_commit_names_the_owner_that_the_store_saw_when_it_kept_it(
    store: Store, operations: list[Operation]
) -> None:
    result = await noting(store).run("a")
    told = [one for one in operations if isinstance(one, (Commit, CheckpointSave))]
    assert {type(one) for one in told} == {Commit, CheckpointSave}
    assert {one.owner for one in told} == {Owner(1, result.run_id)}


async def test_a_store_that_calls_a_stale_commit_kept_is_found_out(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    held = HeldExecutor()
    one, other = holding(Unfenced(store), held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    held.released["b"].set()
    await other.run("b", on_conflict="supersede")
    held.released["a"].set()
    await first
    assert detector.verdict is Verdict.VIOLATED
    [violation] = [one for one in detector.findings if one.anomaly == "stale-commit"]
    assert violation.certainty is Certainty.CERTAIN
    assert (violation.culprit_epoch, violation.owner_epoch) == (1, 2)
    assert violation.keys == ("a_key",)


async def test_a_store_that_does_not_say_who_owns_the_instance_is_believed(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    result = await noting(Silent(store)).run("a")
    [commit] = [one for one in operations if isinstance(one, Commit)]
    assert commit.owner == Owner(1, result.run_id)
    assert detector.verdict is Verdict.CLEAN


async def test_a_lost_run_tells_its_stream(store: Store) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    stream = one.stream("a")
    events: list[Any] = []

    async def read() -> None:
        async for event in stream:
            events.append(event)  # noqa: PERF401 - they count though it raises

    reading = asyncio.create_task(read())
    await held.staged["a"].wait()
    held.released["b"].set()
    await other.run("b", on_conflict="supersede")
    held.released["a"].set()
    with pytest.raises(OwnershipLostError):
        await reading
    assert events[-1].outcome is Outcome.LOST


async def test_who_finds_a_live_run_of_another_process_is_refused_by_its_name(
    store: Store, operations: list[Operation]
) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    with pytest.raises(WorkflowBusyError) as caught:
        await other.run("b")
    assert caught.value.epoch == 1
    assert caught.value.owner in {run.run.run_id for run in operations}
    assert not other.instance("default").busy
    held.released["a"].set()
    assert (await first).outputs == ("a",)
    held.released["b"].set()
    assert (await other.run("b")).epoch == 2


async def test_who_waits_for_a_run_of_another_process_comes_after_it(
    store: Store, detector: Detector
) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    second = asyncio.create_task(other.run("b", on_conflict="wait"))
    await turns(20)
    assert not second.done()
    held.released["a"].set()
    held.released["b"].set()
    await first
    assert (await second).epoch == 2
    assert dict(other.state) == {"a_key": "a", "b_key": "b"}
    assert detector.verdict is Verdict.CLEAN


async def test_who_is_cancelled_while_it_waits_has_claimed_nothing(
    store: Store,
) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    second = asyncio.create_task(other.run("b", on_conflict="wait"))
    await turns(20)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    held.released["a"].set()
    assert (await first).epoch == 1


@pytest.mark.parametrize("how", ["fails", "is cancelled", "has nothing to do"])
async def test_a_run_that_ends_early_gives_the_instance_back(
    store: Store, how: str
) -> None:
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    held.released["z"].set()
    await one.run("z")
    if how == "has nothing to do":
        await one.resume()
    else:
        running = asyncio.create_task(one.run("a", deadline=5))
        await held.staged["a"].wait()
        if how == "fails":
            held.released["a"].set()
            await running
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
    held.released["b"].set()
    await other.run("b")
    assert "b_key" in other.state


async def test_the_run_of_a_process_that_has_died_stands_in_nobodys_way(
    tmp_path: Path,
) -> None:
    """dbos-inc/dbos-transact-py#453: what a crashed node had begun stayed pending.

    The other node of the cluster did not take it over.

    Right: any process may go on with it, and at once where it can see the death.
    """
    code = f"""
import asyncio, os
from tenure.runtime import SqliteStore, WorkflowBuilder, WorkflowContext, executor
@executor
async def note(name: str, ctx: WorkflowContext[None, str]) -> None:
    os.kill(os.getpid(), 9)
asyncio.run(WorkflowBuilder("press", start=note, store=SqliteStore({str(tmp_path)!r}))
            .build().run("a"))
"""
    dying = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await dying.wait() == -9
    async with SqliteStore(tmp_path) as store:
        workflow = noting(store)
        result = await workflow.resume()
        assert (result.epoch, result.outputs) == (2, ("a",))


# A heartbeat.


async def test_a_long_superstep_of_a_live_run_is_not_taken_for_a_dead_one(
    tmp_path: Path,
) -> None:
    async with SqliteStore(tmp_path, lease=0.3) as store:
        held = HeldExecutor()
        one, other = holding(store, held), holding(store, held)
        first = asyncio.create_task(one.run("a"))
        await held.staged["a"].wait()
        await asyncio.sleep(0.9)
        with pytest.raises(WorkflowBusyError):
            await other.run("b")
        held.released["a"].set()
        await first


async def test_heartbeats_leave_time_for_the_run_however_short_the_lease() -> None:
    gated = Gated(MemoryStore(lease=0.0))
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held, store=gated).build()
    running = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    # A store that is slow is not asked again before it has answered.
    gate = gated.hold("extend")
    await gated.asked["extend"].wait()
    gated.hold("extend").set()
    waiting = gated.asked["extend"]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(waiting.wait(), 0.1)
    gate.set()
    await waiting.wait()
    held.released["a"].set()
    await running
    assert dict(workflow.state) == {"a_key": "a"}


# Cancellation while the store is asked.


@pytest.mark.parametrize("kind", ["claim", "entry", "superstep"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_caller_who_cancels_while_the_store_is_asked_sees_it_and_all_agree(
    store: Store, kind: str, when: str, times: int, detector: Detector
) -> None:
    gated = Gated(store)
    workflow = noting(gated)
    gate = gated.hold(kind, when)
    event = gated.asked[kind] if when == "before" else gated.answered[kind]
    running = asyncio.create_task(workflow.run("a"))
    await event.wait()
    for _ in range(times):
        running.cancel()
        await turns(2)
        assert not running.done(), "the answer is waited for"
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not workflow.instance("default").busy
    other = noting(store)
    kept = {"a": 1} if kind == "superstep" else {}
    assert dict(workflow.state) == kept
    assert len(await other.history()) == {"claim": 0, "entry": 1, "superstep": 2}[kind]
    if kind != "claim":
        assert dict(await other.refresh()) == kept
    assert (await other.run("b")).epoch == 2
    assert (await workflow.run("c")).epoch == 3
    assert dict(workflow.state) == {**kept, "b": 2, "c": 3}
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("kind", ["entry", "superstep"])
async def test_a_timeout_around_a_run_is_one_even_in_its_last_commit(
    store: Store, kind: str
) -> None:
    gated = Gated(store)
    workflow = noting(gated)
    gate = gated.hold(kind)
    answered = gated.answered[kind]

    async def let_pass(limit: asyncio.Timeout) -> None:
        await answered.wait()
        limit.reschedule(0)
        await turns(5)
        gate.set()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as limit:
            letting = asyncio.create_task(let_pass(limit))
            await workflow.run("a")
    await letting
    assert (await workflow.run("b")).epoch == 2


@pytest.mark.parametrize("kind", ["entry", "superstep"])
async def test_a_deadline_that_passes_while_the_store_is_asked_is_one(
    store: Store, kind: str
) -> None:
    gated = Gated(store)
    workflow = noting(gated)
    gate = gated.hold(kind)
    # Whatever the run has come to by then, it is not let go on before its deadline.
    asyncio.get_running_loop().call_later(0.3, gate.set)
    with pytest.raises(DeadlineError):
        await workflow.run("a", deadline=0.2)
    assert dict(await noting(store).refresh()) == dict(workflow.state)


@pytest.mark.parametrize("kind", ["claim", "entry", "superstep"])
async def test_a_stream_that_is_left_while_the_store_is_asked_ends_its_run(
    store: Store, kind: str, detector: Detector
) -> None:
    gated = Gated(store)
    workflow = noting(gated)
    gate = gated.hold(kind)
    answered = gated.answered[kind]
    stream = workflow.stream("a")
    reading = asyncio.create_task(anext(aiter(stream)))
    await answered.wait()
    closing = asyncio.create_task(stream.aclose())
    await turns(5)
    assert not closing.done()
    gate.set()
    await closing
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    await workflow.run("b")
    kept = {"a": 1} if kind == "superstep" else {}
    assert dict(workflow.state) == {**kept, "b": 2}
    assert detector.verdict is Verdict.CLEAN


async def test_a_cancellation_beats_what_the_store_failed_with(store: Store) -> None:
    gated = Gated(store)
    workflow = noting(gated)
    gate = gated.hold("superstep", "before")
    asked = gated.asked["superstep"]
    running = asyncio.create_task(workflow.run("a"))
    await asked.wait()
    running.cancel()
    await turns(2)
    gated.fails.add("superstep")
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert dict(workflow.state) == {}


# Many at once.


async def test_a_hundred_runs_of_four_processes_leave_what_the_store_has(
    store: Store, operations: list[Operation], detector: Detector
) -> None:
    processes = [noting(store) for _ in range(4)]

    async def one(number: int) -> str | None:
        workflow = processes[number % 4]
        try:
            await workflow.run(f"k{number}", on_conflict="supersede")
        except OwnershipLostError:
            return None
        return f"k{number}"

    done = await asyncio.gather(*map(one, range(100)))
    state = await processes[0].refresh()
    assert {name for name in done if name} <= set(state)
    history = await processes[0].history()
    assert [item.position for item in history] == list(range(len(history), 0, -1))
    assert {item.parent_id for item in history[:-1]} == {
        item.checkpoint_id for item in history[1:]
    }
    assert claims(operations) == sorted(set(claims(operations)))
    assert {one.severity for one in detector.findings} <= {Severity.AVERTED}
    assert detector.verdict is Verdict.CLEAN


async def test_two_threads_share_a_store_and_an_instance(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    workflow = noting(store, on_conflict="wait")

    def work(name: str) -> None:
        async def go() -> None:
            for number in range(20):
                await workflow.run(f"{name}{number}")

        asyncio.run(go())

    await asyncio.gather(asyncio.to_thread(work, "a"), asyncio.to_thread(work, "b"))
    assert len(workflow.state) == 40
    assert dict(await noting(store).refresh()) == dict(workflow.state)
    await store.aclose()


def emptied(directory: Path) -> None:
    for file in directory.glob("*.sqlite3*"):
        file.unlink()


async def test_a_store_that_was_emptied_is_a_new_beginning(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path) as store:
        workflow = noting(store)
        for name in "abc":
            await workflow.run(name)
        emptied(tmp_path)
        result = await workflow.run("d")
        assert result.epoch == 1
        assert dict(workflow.state) == {"d": 1}
        async with SqliteStore(tmp_path) as again:
            assert dict(await noting(again).refresh()) == {"d": 1}


async def test_a_store_that_was_put_back_to_yesterday_goes_on_from_there(
    tmp_path: Path,
) -> None:
    async with SqliteStore(tmp_path) as store:
        workflow = noting(store)
        await workflow.run("a")
        await store.aclose()
        file = store.path_of("press/default")
        backup = file.read_bytes()
        for name in "bcd":
            await workflow.run(name)
        await store.aclose()
        emptied(tmp_path)
        file.write_bytes(backup)
        result = await workflow.run("e")
        assert result.epoch == 2
        assert dict(workflow.state) == {"a": 1, "e": 2}


async def test_a_fork_of_the_process_opens_its_own_files(tmp_path: Path) -> None:
    code = f"""
import asyncio, os
from tenure.runtime import SqliteStore, WorkflowBuilder, WorkflowContext, executor
@executor
async def note(name: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.set_state(name, os.getpid())
store = SqliteStore({str(tmp_path)!r})
workflow = WorkflowBuilder("press", start=note, store=store).build()
asyncio.run(workflow.run("parent"))
children = []
for number in range(3):
    pid = os.fork()
    if not pid:
        asyncio.run(workflow.run(f"child {{number}}", on_conflict="wait"))
        os._exit(0)
    children.append(pid)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
asyncio.run(workflow.run("parent again"))
assert len(workflow.state) == 5, workflow.state
assert len(set(workflow.state.values())) == 4
"""
    done = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await asyncio.wait_for(done.wait(), 40) == 0
