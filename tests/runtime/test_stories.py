"""The stories of the original reports, told to this engine.

In each, a run leaves in the middle of a superstep and the next one starts at once. On
an engine whose runs share one map of staged writes they lose and leak writes unseen.
"""

import asyncio
import gc
from typing import Any

import pytest

from tenure.detectors import Detector, Severity, Verdict
from tenure.instrumentation.operations import (
    Commit,
    Discard,
    DiscardCause,
    Late,
    LateKind,
    Operation,
)
from tenure.runtime import (
    Executor,
    ExecutorInvoked,
    RunStream,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from tenure.runtime.testing import HeldExecutor, turns


async def abandon_in_superstep(
    workflow: Workflow, held: HeldExecutor, message: str
) -> None:
    """Read a stream up to the executor's invocation, and drop it once it has staged."""
    stream = workflow.stream(message)
    async for event in stream:
        if isinstance(event, ExecutorInvoked) and event.executor_id == held.id:
            break
    await held.staged[message].wait()
    del stream, event


def committed_by(operations: list[Operation], epoch: int) -> set[str]:
    return {
        key
        for operation in operations
        if isinstance(operation, Commit) and operation.run.epoch == epoch
        for key in (operation.writes.keys if operation.writes else ())
    }


@pytest.mark.parametrize("gap", [0, 1, 2, 5, 12, 40])
async def test_a_late_finalizer_leaves_the_staged_writes_of_the_successor_alone(
    gap: int, operations: list[Operation], detector: Detector
) -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()
    await abandon_in_superstep(workflow, held, "a")
    await turns(gap)
    second = asyncio.create_task(workflow.run("b"))
    await held.staged["b"].wait()
    await held.ended["a"].wait()
    await turns(20)
    held.released["b"].set()
    result = await second

    assert result.outputs == ("b",)
    assert dict(workflow.state) == {"b_key": "b"}
    assert committed_by(operations, 1) == set()
    assert detector.verdict is Verdict.CLEAN


async def test_the_finalizer_of_a_dropped_run_is_fenced_and_recorded_as_averted(
    operations: list[Operation], detector: Detector
) -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()
    await abandon_in_superstep(workflow, held, "a")
    second = asyncio.create_task(workflow.run("b"))
    await held.staged["b"].wait()
    await turns(20)
    held.released["b"].set()
    await second

    sweep, fenced = (one for one in operations if isinstance(one, Discard))
    assert (sweep.run.epoch, sweep.cause) == (2, DiscardCause.SWEEP)
    assert sweep.writes is not None
    assert sweep.writes.pairs == (("a_key", 1),)
    assert (fenced.run.epoch, fenced.fenced, fenced.cause) == (
        1,
        True,
        DiscardCause.ABANDONED,
    )
    assert fenced.owner is not None
    assert fenced.owner.epoch == 2
    assert [
        (one.anomaly, one.severity, one.culprit_epoch, one.owner_epoch)
        for one in detector.findings
    ] == [("stale-discard", Severity.AVERTED, 1, 2)]


class Reader(Executor):
    """Reports which keys it can see, then lets the run go on."""

    @handler
    async def read(
        self, message: str, ctx: WorkflowContext[None, dict[str, Any]]
    ) -> None:
        if message == "a":
            ctx.set_state("half", "finished")
            self.staged.set()
            await asyncio.Event().wait()
        await ctx.yield_output({"half": ctx.get_state("half")})

    def __init__(self) -> None:
        super().__init__("reader")
        self.staged = asyncio.Event()


async def test_a_half_finished_write_is_neither_read_nor_committed_by_the_successor(
    operations: list[Operation], detector: Detector
) -> None:
    reader = Reader()
    workflow = WorkflowBuilder("press", start=reader).build()
    stream = workflow.stream("a")
    async for event in stream:
        if isinstance(event, ExecutorInvoked):
            break
    await reader.staged.wait()
    del stream, event
    result = await workflow.run("b")

    assert result.outputs == ({"half": None},)
    assert dict(workflow.state) == {}
    await turns(20)
    assert dict(workflow.state) == {}
    assert detector.verdict is Verdict.CLEAN


class Preparing(Executor):
    """Reads what its run starts on, after as many turns as a slow preparation takes."""

    def __init__(self, held: HeldExecutor) -> None:
        super().__init__("preparing")
        self.held = held

    @handler
    async def prepare(
        self, message: str, ctx: WorkflowContext[str, dict[str, Any]]
    ) -> None:
        if message == "b":
            ctx.set_state("entry", "of b")
            await self.held.ended["a"].wait()
            await turns(20)
            seen = {key: ctx.get_state(key) for key in ("seed", "entry", "a_key")}
            await ctx.yield_output(seen)
        await ctx.send_message(message)


async def test_the_successors_entry_state_is_intact_while_the_old_finalizer_runs(
    detector: Detector,
) -> None:
    held = HeldExecutor(cleanup_turns=10)
    preparing = Preparing(held)
    workflow = (
        WorkflowBuilder("press", start=preparing).add_edge(preparing, held).build()
    )
    held.released["seed"].set()
    await workflow.run("seed")
    await abandon_in_superstep(workflow, held, "a")
    held.released["b"].set()
    result = await workflow.run("b")

    assert result.outputs[0] == {"seed": None, "entry": "of b", "a_key": None}
    assert dict(workflow.state) == {"seed_key": "seed", "entry": "of b", "b_key": "b"}
    assert all(one.severity is Severity.AVERTED for one in detector.findings)


@pytest.mark.parametrize("cleanup_turns", [0, 1, 3, 10, 50])
async def test_a_late_cleanup_write_reaches_no_commit_and_is_recorded_as_late(
    cleanup_turns: int, operations: list[Operation], detector: Detector
) -> None:
    held = HeldExecutor(cleanup_turns=cleanup_turns)
    workflow = WorkflowBuilder("press", start=held).build()
    await abandon_in_superstep(workflow, held, "a")
    second = asyncio.create_task(workflow.run("b"))
    await held.staged["b"].wait()
    await held.ended["a"].wait()
    held.released["b"].set()
    await second

    assert dict(workflow.state) == {"b_key": "b"}
    [late] = [one for one in operations if isinstance(one, Late)]
    assert (late.kind, late.run.epoch) == (LateKind.STAGE, 1)
    assert late.owner is not None
    assert late.owner.epoch == 2
    assert late.writes is not None
    assert late.writes.keys == ("a_cleanup",)
    assert ("late-write", Severity.AVERTED) in {
        (one.anomaly, one.severity) for one in detector.findings
    }
    assert detector.verdict is Verdict.CLEAN


class SlowCleanup(Executor):
    """Cleans up for 150 ms of real time, and writes at the end of it."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.staged = asyncio.Event()
        self.cleaned = asyncio.Event()

    @handler
    async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(f"{message}_key", message)
        if message == "b":
            return
        self.staged.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.15)
            ctx.set_state("a_cleanup", "late")
            self.cleaned.set()


async def test_a_cleanup_of_150_ms_writes_late_and_into_nothing(
    operations: list[Operation], detector: Detector
) -> None:
    slow = SlowCleanup()
    workflow = WorkflowBuilder("press", start=slow).build()
    stream = workflow.stream("a")
    async for event in stream:
        if isinstance(event, ExecutorInvoked):
            break
    await slow.staged.wait()
    del stream, event
    await workflow.run("b")
    assert dict(workflow.state) == {"b_key": "b"}
    await slow.cleaned.wait()
    await turns(20)

    assert dict(workflow.state) == {"b_key": "b"}
    assert [one.kind for one in operations if isinstance(one, Late)] == [LateKind.STAGE]
    assert detector.verdict is Verdict.CLEAN


async def test_a_run_dropped_inside_a_reference_cycle_harms_nobody_when_it_is_collected(
    detector: Detector,
) -> None:
    class Knot:
        stream: RunStream
        itself: "Knot"

    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()
    gc.collect()
    gc.disable()
    try:
        knot = Knot()
        knot.itself = knot
        knot.stream = workflow.stream("a")
        async for event in knot.stream:
            if isinstance(event, ExecutorInvoked):
                break
        await held.staged["a"].wait()
        del knot, event
        second = asyncio.create_task(workflow.run("b", on_conflict="wait"))
        await turns(5)
        assert not held.staged["b"].is_set()
        gc.collect()
        await held.staged["b"].wait()
        await held.ended["a"].wait()
        held.released["b"].set()
        await second
    finally:
        gc.enable()
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.verdict is Verdict.CLEAN
