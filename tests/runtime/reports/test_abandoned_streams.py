"""Streams that are left in the middle: whose guard is it, and whose writes?"""

import asyncio

import pytest

from tenure.detectors import Detector, Severity, Verdict
from tenure.runtime import (
    ExecutorFailed,
    RunFailed,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    WorkflowEvent,
    executor,
)
from tenure.runtime.testing import FailingExecutor, HeldExecutor, turns


async def read_until(workflow: Workflow, message: str, kind: type[WorkflowEvent]):
    """Read a stream up to an event of that kind, and drop it there."""
    async for event in workflow.stream(message):
        if isinstance(event, kind):
            return


@pytest.mark.parametrize("cleanup_turns", [0, 1, 13, 40])
async def test_a_late_finalizer_does_not_let_a_third_run_in_beside_the_second(
    cleanup_turns: int, detector: Detector
) -> None:
    """microsoft/agent-framework#6407: a third run was let in beside the second.

    The first run's stream had been dropped. Its clean-up came when the second run was
    at work, and cleared the guard without looking whose it was.

    Right: a run gives back its own claim, and nobody else's.
    """
    held = HeldExecutor(cleanup_turns=cleanup_turns)
    workflow = WorkflowBuilder("press", start=held).build()
    stream = workflow.stream("a")
    await anext(stream)
    await held.staged["a"].wait()
    del stream
    second = asyncio.create_task(workflow.run("b"))
    await held.staged["b"].wait()
    await held.ended["a"].wait()
    await turns(5)

    owner = workflow.instance("default").owner
    with pytest.raises(WorkflowBusyError) as caught:
        workflow.run("c")
    assert (caught.value.owner, caught.value.epoch) == (owner.run_id, 2)
    held.released["b"].set()
    assert (await second).run_id == owner.run_id
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.verdict is Verdict.CLEAN
    held.released["c"].set()
    assert (await workflow.run("c")).epoch == 3


@pytest.mark.parametrize("kind", [ExecutorFailed, RunFailed])
async def test_whoever_leaves_at_the_event_of_a_failure_leaves_nothing_behind(
    kind: type[WorkflowEvent], detector: Detector
) -> None:
    """microsoft/agent-framework#7880: leaving at a failure's event skipped the discard.

    The staged writes were thrown away only after the events had been handed out, and a
    consumer that leaves never comes back for what follows.

    Right: everything is discarded, and the instance is free, before anybody is told.
    """
    failing = FailingExecutor(fails_for=frozenset({"a"}))
    workflow = WorkflowBuilder("press", start=failing).build()
    stream = workflow.stream("a")
    async for event in stream:
        if isinstance(event, kind):
            break
    assert not workflow.instance("default").busy
    del stream
    result = await workflow.run("b")
    assert result.outputs == ("b",)
    assert dict(workflow.state) == {"b_key": "b"}
    assert event.error is not None
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("cleanup_turns", [0, 1, 20])
async def test_a_failure_is_told_once_the_slowest_sibling_has_cleaned_up(
    cleanup_turns: int, detector: Detector
) -> None:
    """microsoft/agent-framework#8306: a failed run's write was committed by the next.

    The failure's event came while a sibling was still cleaning up. Who dropped the
    stream there and ran again at once was first at the commit.

    Right: the event comes when all executors have ended and all is discarded.
    """
    slow = HeldExecutor("slow", cleanup_turns=cleanup_turns)

    @executor
    async def route(message: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(message)

    @executor
    async def bad(message: str, ctx: WorkflowContext[None, str]) -> None:
        if message == "a":
            ctx.set_state("secret", "stale")
            await slow.staged["a"].wait()
            raise RuntimeError("no")

    workflow = (
        WorkflowBuilder("press", start=route).add_fan_out(route, [bad, slow]).build()
    )
    slow.released["b"].set()
    await read_until(workflow, "a", ExecutorFailed)
    assert slow.ended["a"].is_set()
    result = await workflow.run("b")
    assert result.outputs == ("b",)
    assert dict(workflow.state) == {"b_key": "b"}
    # The sibling's clean-up wrote into a ledger that was its own, and is gone.
    assert {one.severity for one in detector.findings} <= {Severity.AVERTED}
    assert detector.verdict is Verdict.CLEAN
