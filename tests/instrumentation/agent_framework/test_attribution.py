"""On whose behalf a call acts: not a question that a context variable answers alone."""

import asyncio
import contextlib
import gc
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from agent_framework import WorkflowBuilder, WorkflowContext
from agent_framework._workflows._state import State
from agent_framework._workflows._workflow import Workflow

from tenure.instrumentation.operations import (
    Commit,
    Discard,
    Late,
    Operation,
    Outcome,
    Release,
    Trigger,
)

from . import stories
from .stories import Does, Gates, abandon, play, routed, settled, turns
from .test_operations import needs_discards, only, owners

pytestmark = pytest.mark.usefixtures("instrumented")

naive: ContextVar[int] = ContextVar("naive")


@pytest.fixture
def naively(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Attribute discards by a variable that is set where the run starts.

    Gives the acting epoch and the owner's at each discard, as that would tell them.
    """
    discards: list[tuple[int, int]] = []
    claims: list[int] = []
    run, discard = Workflow.run, State.discard

    def claim(self: Workflow, *args: Any, **kwargs: Any) -> Any:
        started = run(self, *args, **kwargs)
        claims.append(len(claims) + 1)
        naive.set(claims[-1])
        return started

    def observe(self: State) -> None:
        discards.append((naive.get(), claims[-1]))
        discard(self)

    monkeypatch.setattr(Workflow, "run", claim)
    monkeypatch.setattr(State, "discard", observe)
    return discards


@needs_discards
async def test_a_context_variable_alone_misses_a_drop_inside_the_successor(
    heard: list[Operation], naively: list[tuple[int, int]]
) -> None:
    await settled(stories.lost_write_while_the_successor_drops())
    assert naively == [(2, 2)]
    (discard,) = only(Discard, heard)
    assert owners(discard) == (1, 2)
    assert discard.writes is not None
    assert discard.writes.pairs == (("b_key", 2),)


@needs_discards
async def test_both_agree_where_the_consumer_of_the_run_drops_it(
    heard: list[Operation], naively: list[tuple[int, int]]
) -> None:
    await settled(stories.lost_write())
    assert naively == [(1, 2)]
    assert owners(only(Discard, heard)[0]) == (1, 2)


def generator_of(name: str) -> Any:
    """Return the one generator of the engine that the loop knows by this name."""
    (found,) = [
        generator
        for generator in asyncio.get_running_loop()._asyncgens
        if generator.__name__ == name and generator.ag_frame is not None
    ]
    return found


@needs_discards
async def test_the_superstep_loop_acts_for_its_run_even_when_it_is_closed_alone(
    heard: list[Operation],
) -> None:
    """The collector finds all generators of a run, and the loop closes each of them."""
    gates, inner, held = Gates(), [], []

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("a_key", message)
        gates["a staged"].set()
        await stories.forever()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("b_key", message)
        await inner.pop().aclose()
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    stream = workflow.run("a", stream=True)
    async for event in stream:
        if event.type == "executor_invoked" and event.executor_id == "wa":
            break
    await gates["a staged"].wait()
    inner.append(generator_of("run_until_convergence"))
    held.append(stream._iterator)
    del stream, event
    told = await play(workflow)
    assert told.state == {"a_key": "a"}
    (discard,) = only(Discard, heard)
    assert owners(discard) == (1, 2)
    held.clear()
    await turns(40)
    assert len(only(Discard, heard)) == 1


@needs_discards
async def test_a_run_ends_when_its_inner_generator_is_being_closed_already(
    heard: list[Operation], caplog: pytest.LogCaptureFixture
) -> None:
    gates = Gates()
    workflow = stories.one_executor(gates)
    stream = workflow.run("a", stream=True)
    async for event in stream:
        if event.type == "executor_invoked":
            break
    await gates["a staged"].wait()
    closing = asyncio.ensure_future(generator_of("_run_workflow_with_tracing").aclose())
    await turns(1)
    del stream, event
    await closing
    await turns(20)
    gc.collect()
    assert "already running" in caplog.text
    ended = [operation.name for operation in heard][-3:]
    assert ended == ["discard", "superstep end", "release"]


async def leave_a_stream(gates: Gates, kept: list[Any]) -> Workflow:
    """Leave a run in the middle of its superstep, with its stream in `kept`."""
    workflow = stories.one_executor(gates)
    kept.append(workflow.run("a", stream=True))
    async for event in kept[0]:
        if event.type == "executor_invoked":
            break
    await gates["a staged"].wait()
    return workflow


@needs_discards
def test_a_loop_that_shuts_down_is_named_as_what_ended_the_run(
    heard: list[Operation],
) -> None:
    kept: list[Any] = []
    asyncio.run(leave_a_stream(Gates(), kept))
    (discard,) = only(Discard, heard)
    assert discard.trigger is Trigger.SHUTDOWN
    (release,) = only(Release, heard)
    assert release.outcome is Outcome.ABANDONED


def outlive_a_loop() -> None:
    """Leave a run, close its loop, and start the next one on another."""
    kept: list[Any] = []
    loop = asyncio.new_event_loop()
    workflow = loop.run_until_complete(leave_a_stream(Gates(), kept))
    loop.close()
    kept.clear()

    async def next_run() -> None:
        run = asyncio.ensure_future(workflow.run("b"))
        await turns(10)
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run

    asyncio.run(next_run())


def test_a_run_whose_loop_is_gone_is_released_before_the_next_claim(
    heard: list[Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a closed loop leaves pending complains when it is collected, with and without
    # the instrumentor: here, and not in the test that comes next.
    complaints: list[str] = []
    monkeypatch.setattr(
        sys, "unraisablehook", lambda args: complaints.append(str(args.exc_value))
    )
    outlive_a_loop()
    gc.collect()
    assert set(complaints) <= {
        "Event loop is closed",
        "coroutine ignored GeneratorExit",
    }
    names = [told.name for told in heard if told.name in {"claim", "release"}]
    assert names == ["claim", "release", "claim", "release"]
    assert only(Release, heard, 1)[0].outcome is Outcome.ABANDONED


async def thread_of_an_earlier_run(start: Callable[[Callable[[], None]], None]) -> None:
    """Run a thread that outlives run `a` and stages while run `b` is at work."""
    go, done = threading.Event(), threading.Event()

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        def work() -> None:
            go.wait(20)
            context.set_state("a_thread", message)
            done.set()

        start(work)
        await context.yield_output(message)

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        go.set()
        await asyncio.to_thread(done.wait, 20)
        await context.yield_output(message)

    workflow = routed(Does("left", left), Does("right", right)).build()
    await play(workflow, "a")
    await play(workflow)


async def test_a_thread_that_inherits_no_context_acts_for_the_run_it_got_it_from(
    heard: list[Operation],
) -> None:
    await thread_of_an_earlier_run(lambda work: threading.Thread(target=work).start())
    (late,) = only(Late, heard)
    assert owners(late) == (1, 2)
    assert late.writes is not None
    assert late.writes.pairs == (("a_thread", 1),)


async def test_a_thread_of_the_loops_pool_does_too(heard: list[Operation]) -> None:
    loop = asyncio.get_running_loop()
    await thread_of_an_earlier_run(
        lambda work: [loop.run_in_executor(None, work)].clear()
    )
    assert [owners(late) for late in only(Late, heard)] == [(1, 2)]


async def test_a_worker_of_an_earlier_run_that_serves_this_one_is_not_late(
    heard: list[Operation],
) -> None:
    jobs: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
    workers: list[asyncio.Task[None]] = []

    async def work() -> None:
        while True:
            (await jobs.get())()
            jobs.task_done()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        if not workers:
            workers.append(asyncio.create_task(work()))
        jobs.put_nowait(lambda: context.set_state(f"{message}_key", message))
        await jobs.join()
        await context.yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await play(workflow, "a")
    told = await play(workflow)
    workers[0].cancel()
    assert told.state == {"a_key": "a", "b_key": "b"}
    assert only(Late, heard) == []


async def test_a_context_object_that_is_kept_for_a_later_run_is_not_late(
    heard: list[Operation],
) -> None:
    kept: list[WorkflowContext[str, str]] = []

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        kept.append(context)
        kept[0].set_state(f"{message}_key", message)
        await kept[0].yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await play(workflow, "a")
    await play(workflow)
    assert only(Late, heard) == []


async def test_a_coroutine_that_is_closed_by_a_finalizer_is_told_of_afterwards(
    heard: list[Operation],
) -> None:
    """Exporters hold locks that the code which a finalizer interrupts may own."""
    kept: list[Any] = []

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        async def later() -> None:
            try:
                await stories.forever()
            finally:
                context.set_state("a_late", message)

        if message == "a":
            coroutine = later()
            coroutine.send(None)
            kept.append(coroutine)
            await context.yield_output(message)
            return
        before = len(heard)
        kept.clear()
        assert [type(told) for told in heard[before:]] == []
        await turns(2)
        assert [type(told) for told in heard[before:]] == [Late]

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await play(workflow, "a")
    await play(workflow)
    (late,) = only(Late, heard)
    assert owners(late)[1] == 2


async def test_who_staged_before_any_run_is_not_known_and_nobody_is_blamed(
    heard: list[Operation],
) -> None:
    gates = Gates()
    workflow = stories.one_executor(gates)
    gates["b go"].set()
    workflow._runner.state.set("early", 1)
    told = await play(workflow)
    assert told.state == {"early": 1, "b_key": "b"}
    for commit in only(Commit, heard):
        assert commit.writes is not None
        assert set(commit.writes.epochs) <= {1}


class Uncopyable:
    def __deepcopy__(self, memo: dict[int, object]) -> "Uncopyable":
        raise LookupError("no copies")


async def test_a_stage_that_the_engine_refuses_leaves_the_earlier_writer(
    heard: list[Operation],
) -> None:
    gates = Gates()

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        try:
            await stories.forever()
        finally:
            await gates["b runs"].wait()
            context.set_state("shared", message)
            gates["a cleaned"].set()
            await gates["b committed"].wait()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        gates["b runs"].set()
        await gates["a cleaned"].wait()
        with pytest.raises(LookupError):
            context.set_state("shared", Uncopyable())
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    await abandon(workflow, by="wa")
    told = await play(workflow)
    gates["b committed"].set()
    await turns(40)
    assert told.state == {"shared": "a"}
    leaks = [commit.writes for commit in only(Commit, heard, 2) if commit.writes]
    assert [writes.foreign_to(2) for writes in leaks if writes.foreign_to(2)] == [
        (("shared", 1),)
    ]


@needs_discards
async def test_two_workflows_at_once_do_not_act_for_each_other(
    heard: list[Operation],
) -> None:
    first, second = Gates(), Gates()
    one, other = stories.one_executor(first), stories.one_executor(second)
    await abandon(one)
    runs = [asyncio.ensure_future(play(workflow)) for workflow in (one, other)]
    await first["b staged"].wait()
    await second["b staged"].wait()
    await turns(20)
    first["b go"].set()
    second["b go"].set()
    told = [await run for run in runs]
    assert [story.state for story in told] == [{"a_key": "a"}, {"b_key": "b"}]
    (discard,) = only(Discard, heard)
    assert owners(discard) == (1, 2)
    instance = discard.run.instance
    others = [told for told in heard if told.run.instance != instance]
    assert {told.run.epoch for told in others} == {1}


async def test_a_run_that_is_driven_inside_another_acts_for_itself(
    heard: list[Operation],
) -> None:
    gates = Gates()
    inner = stories.one_executor(gates)
    gates["b go"].set()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("before", message)
        await inner.run("b")
        context.set_state("after", message)

    outer = WorkflowBuilder(start_executor=Does("outer", act), name="outer").build()
    await play(outer)
    executed = {
        (operation.executor, operation.writes.keys if operation.writes else ())
        for operation in heard
        if operation.name == "execute"
    }
    assert executed == {("one", ("b_key",)), ("outer", ("before", "after"))}
