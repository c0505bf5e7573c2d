"""Runs that fail, are cancelled or go in circles: what is left, and who is told?"""

import asyncio
from typing import Any

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation.operations import Operation, Outcome, Release
from tenure.runtime import (
    ConvergenceError,
    Executor,
    ExecutorError,
    RunEnded,
    RunFailed,
    Store,
    SuperstepCompleted,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from tenure.runtime.testing import FailingExecutor, HeldExecutor


async def test_the_write_of_a_failed_superstep_reaches_no_later_run(
    detector: Detector,
) -> None:
    """microsoft/agent-framework#7859: a failed superstep's write became state later.

    It stayed staged when the executor raised, and the next run's commit took it along.

    Right: it is gone with its superstep.
    """
    failing = FailingExecutor(fails_for=frozenset({"a"}))
    workflow = WorkflowBuilder("press", start=failing).build()
    with pytest.raises(ExecutorError, match="failed on request"):
        await workflow.run("a")
    assert dict(workflow.state) == {}
    await workflow.run("b")
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("ending", ["task", "timeout", "close", "block"])
async def test_the_write_of_a_cancelled_superstep_reaches_no_later_run(
    ending: str, detector: Detector
) -> None:
    """microsoft/agent-framework#7859: so did the write of a cancelled superstep.

    Right: however a superstep is ended, it leaves nothing.
    """
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()
    if ending == "task":
        task = asyncio.create_task(workflow.run("a"))
        await held.staged["a"].wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    elif ending == "timeout":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(workflow.run("a"), 0.01)
    else:
        stream = workflow.stream("a")
        await stream.__aenter__()
        await held.staged["a"].wait()
        await (
            stream.aclose() if ending == "close" else stream.__aexit__(None, None, None)
        )
    assert held.ended["a"].is_set()

    held.released["b"].set()
    await workflow.run("b")
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


async def test_a_loop_without_an_end_is_stopped_and_what_it_committed_stays() -> None:
    """microsoft/agent-framework#695: that a limit was reached had to be read from text.

    It was a `RuntimeError` like any other, and no event said so.

    Right: an error of its own, with the facts, raised and told; what was committed
    stays, and the instance goes on.
    """

    class Looper(Executor):
        @handler
        async def loop(self, message: str, ctx: WorkflowContext[str, Any]) -> None:
            ctx.set_state("count", ctx.get_state("count", 0) + 1)
            if message == "for ever":
                await ctx.send_message(message)

    looper = Looper("looper")
    workflow = (
        WorkflowBuilder("w", start=looper, max_supersteps=7)
        .add_edge(looper, looper)
        .build()
    )
    told: list[Any] = []
    with pytest.raises(ConvergenceError) as caught:
        async for event in workflow.stream("for ever"):
            told.append(event)  # noqa: PERF401 - the loop raises
    assert (caught.value.limit, caught.value.waiting) == (7, ("looper",))
    assert isinstance(told[-1], RunFailed)
    assert told[-1].error is caught.value
    assert workflow.state["count"] == 7
    await workflow.run("once")
    assert workflow.state["count"] == 8


class Step(Executor):
    """Stages its name, and then waits until it is released.

    Attributes:
        began: Set when it has staged.
        released: What it waits for.
        ended: How it ended: `done`, `cancelled`, or nothing yet.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.began, self.released = asyncio.Event(), asyncio.Event()
        self.ended = ""

    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state(self.id, message)
        self.began.set()
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        self.ended = "done"
        if ctx.leads_on:
            await ctx.send_message(message)
        else:
            await ctx.yield_output(message)


def chain(store: Store | None = None) -> tuple[Workflow, list[Step]]:
    steps = [Step("one"), Step("two"), Step("three")]
    builder = WorkflowBuilder("chain", start=steps[0], store=store)
    return builder.add_chain(steps).build(), steps


@pytest.mark.parametrize("at", [0, 1, 2], ids=["first", "second", "third"])
@pytest.mark.parametrize("how", ["task", "stream", "detached"])
async def test_cancelling_reaches_whichever_executor_is_at_work(
    how: str, at: int, detector: Detector
) -> None:
    """microsoft/agent-framework#3608: only the first executor could be cancelled.

    Later ones ran on to their end in a task that nobody waited for any more.

    Right: whoever is at work is cancelled and awaited, and nobody comes after.
    """
    workflow, steps = chain()
    for step in steps[:at]:
        step.released.set()
    if how == "task":
        running = asyncio.create_task(workflow.run("a"))
        await steps[at].began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    elif how == "stream":
        async with workflow.stream("a") as events:
            await steps[at].began.wait()
            await events.cancel()
    else:
        run_id = workflow.start("a")
        await steps[at].began.wait()
        await workflow.cancel(run_id)
    ended = [step.ended for step in steps]
    assert ended == ["done"] * at + ["cancelled"] + [""] * (2 - at)
    assert dict(workflow.state) == {step.id: "a" for step in steps[:at]}
    for step in steps:
        step.released.set()
    assert (await workflow.run("b")).outputs == ("b",)
    assert detector.verdict is Verdict.CLEAN


async def test_cancelling_reaches_all_executors_of_a_superstep() -> None:
    """microsoft/agent-framework#3663: nor were those cancelled that ran side by side.

    Right: all of them, and the run ends when the last one has cleaned up.
    """

    @executor
    async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(message)

    steps = [Step(f"s{number}") for number in range(5)]
    workflow = WorkflowBuilder("w", start=start).add_fan_out(start, steps).build()
    running = asyncio.create_task(workflow.run("a"))
    for step in steps:
        await step.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [step.ended for step in steps] == ["cancelled"] * 5
    assert dict(workflow.state) == {}


async def test_what_was_told_as_committed_outlives_the_cancellation(
    store: Store,
) -> None:
    """langchain-ai/langgraph#5672: what a user had seen was gone after a cancellation.

    State had been streamed, but it was to be saved at the end, which never came.

    Right: `SuperstepCompleted` comes after the commit. Whoever looks after that finds
    the state, in any process, and can go on from there.
    """
    workflow, steps = chain(store)
    steps[0].released.set()
    told: list[str] = []
    stream = workflow.stream("a")
    async for event in stream:
        if isinstance(event, SuperstepCompleted):
            told.extend(event.committed)
            break
    await stream.cancel()
    assert told == ["one"]
    assert steps[1].ended in ("cancelled", "")
    other, steps = chain(store)
    assert dict(await other.refresh()) == {"one": "a"}
    for step in steps:
        step.released.set()
    result = await other.resume()
    assert (result.outputs, result.supersteps) == (("a",), 2)
    assert steps[0].ended == "", "what was committed is not done again"


@pytest.mark.parametrize("how", ["task", "stream", "detached"])
async def test_a_cancellation_is_told_whatever_is_kept(
    store_if_any: Store | None, how: str, operations: list[Operation]
) -> None:
    """langchain-ai/langgraph#8634: that a run was cancelled was not recorded anywhere.

    It depended on how much was saved. A task that had been at work looked as if it had
    never been started.

    Right: the outcome is told on every way out, with a store and without one, and what
    was left undone is what is given out again.
    """
    workflow, steps = chain(store_if_any)
    ends: list[Outcome | str] = []
    if how == "task":
        running = asyncio.create_task(workflow.run("a"))
        await steps[0].began.wait()
        running.cancel()
        await asyncio.wait([running])
        ends.append("cancelled" if running.cancelled() else "done")
    elif how == "stream":
        async with workflow.stream("a") as events:
            await steps[0].began.wait()
            await events.cancel()
            told = [event async for event in events]
        assert isinstance(told[-1], RunEnded)
        ends += [told[-1].outcome, events.result().outcome]
    else:
        run_id = workflow.start("a")
        await steps[0].began.wait()
        await workflow.cancel(run_id)
        told = [event async for event in workflow.attach(run_id)]
        assert isinstance(told[-1], RunEnded)
        ends += [told[-1].outcome, (await workflow.attach(run_id).result()).outcome]
    assert set(ends) == {"cancelled"}
    [release] = [one for one in operations if isinstance(one, Release)]
    assert release.outcome is Outcome.CANCELLED
    if store_if_any is not None:
        checkpoint, _ = await store_if_any.load("chain/default")
        assert list(checkpoint.standing.messages) == [("one", "a", release.run.run_id)]
