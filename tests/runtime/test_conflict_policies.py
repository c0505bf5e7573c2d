"""What a run does that finds its instance owned."""

import asyncio

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation.operations import Claim, Operation, Outcome
from tenure.runtime import (
    OutputYielded,
    OwnershipLostError,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
)
from tenure.runtime.testing import HeldExecutor, turns


@pytest.fixture
def held() -> HeldExecutor:
    return HeldExecutor()


@pytest.fixture
def workflow(held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held).build()


async def start(workflow: Workflow, held: HeldExecutor, message: str) -> asyncio.Task:  # type: ignore[type-arg]
    task = asyncio.create_task(workflow.run(message))
    await held.staged[message].wait()
    return task


async def test_the_claim_has_happened_when_run_returns(workflow: Workflow) -> None:
    handle = workflow.run("a")
    assert handle.epoch == 1
    assert workflow.instance("default").owner.run_id == handle.run_id
    handle.close()


async def test_reject_names_the_owner_and_the_ways_out(
    workflow: Workflow, held: HeldExecutor
) -> None:
    first = await start(workflow, held, "a")
    with pytest.raises(WorkflowBusyError) as caught:
        workflow.run("b")
    owner = workflow.instance("default").owner
    assert (caught.value.owner, caught.value.epoch) == (owner.run_id, 1)
    assert 'on_conflict="wait" or on_conflict="supersede"' in str(caught.value)
    held.released["a"].set()
    await first
    assert dict(workflow.state) == {"a_key": "a"}


async def test_waiting_runs_follow_each_other_in_the_order_of_their_calls(
    workflow: Workflow, held: HeldExecutor, detector: Detector
) -> None:
    first = await start(workflow, held, "a")
    for message in "abc":
        held.released[message].set()
    second = workflow.run("b", on_conflict="wait")
    third = workflow.run("c", on_conflict="wait")
    assert (second.epoch, third.epoch) == (0, 0)
    results = await asyncio.gather(third, second, first)
    assert [result.epoch for result in results] == [3, 2, 1]
    assert detector.verdict is Verdict.CLEAN
    assert detector.findings == ()


async def test_the_instance_passes_to_the_next_in_the_queue_and_to_nobody_between(
    workflow: Workflow, held: HeldExecutor
) -> None:
    first = await start(workflow, held, "a")
    second = asyncio.create_task(workflow.run("b", on_conflict="wait"))
    await turns(1)
    held.released["a"].set()
    await first
    with pytest.raises(WorkflowBusyError, match="epoch 2"):
        workflow.run("c")
    held.released["b"].set()
    await second


async def test_a_waiting_run_that_is_cancelled_leaves_the_queue(
    workflow: Workflow, held: HeldExecutor
) -> None:
    first = await start(workflow, held, "a")
    second = asyncio.create_task(workflow.run("b", on_conflict="wait"))
    third = asyncio.create_task(workflow.run("c", on_conflict="wait"))
    await turns(2)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    held.released["a"].set()
    held.released["c"].set()
    await first
    assert (await third).epoch == 2
    assert dict(workflow.state) == {"a_key": "a", "c_key": "c"}


async def test_superseding_fences_at_once_and_tells_the_old_caller(
    workflow: Workflow,
    held: HeldExecutor,
    operations: list[Operation],
    detector: Detector,
) -> None:
    first = await start(workflow, held, "a")
    held.released["b"].set()
    second = workflow.run("b", on_conflict="supersede")
    assert second.epoch == 2
    held.released["a"].set()
    with pytest.raises(OwnershipLostError, match=r"epoch 1.*epoch 2"):
        await first
    result = await second
    assert result.outcome is Outcome.COMPLETED
    assert dict(workflow.state) == {"b_key": "b"}
    claims = [one for one in operations if isinstance(one, Claim)]
    assert [claim.superseded for claim in claims] == [None, 1]
    assert detector.verdict is Verdict.CLEAN


async def test_a_superseded_stream_raises_to_its_reader(
    workflow: Workflow, held: HeldExecutor
) -> None:
    stream = workflow.stream("a")
    await anext(stream)
    await held.staged["a"].wait()
    held.released["b"].set()
    await workflow.run("b", on_conflict="supersede")
    with pytest.raises(OwnershipLostError):
        async for _ in stream:
            pass
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_superseding_a_handle_that_was_not_awaited_yet_refuses_it_later(
    workflow: Workflow, held: HeldExecutor
) -> None:
    first = workflow.run("a")
    held.released["b"].set()
    await workflow.run("b", on_conflict="supersede")
    with pytest.raises(OwnershipLostError):
        await first
    assert dict(workflow.state) == {"b_key": "b"}


async def test_a_stalled_stream_may_be_superseded_under_any_policy(
    held: HeldExecutor, workflow: Workflow, detector: Detector
) -> None:
    stream = workflow.stream("a", buffer=1, stall_after=0.0)
    await anext(stream)
    await turns(5)
    held.released["b"].set()
    result = await workflow.run("b")
    assert result.epoch == 2
    with pytest.raises(OwnershipLostError):
        async for _ in stream:
            pass
    assert detector.verdict is Verdict.CLEAN


async def test_a_stream_whose_reader_keeps_reading_is_not_stalled(
    held: HeldExecutor, workflow: Workflow
) -> None:
    stream = workflow.stream("a", buffer=1)
    await anext(stream)
    await turns(5)
    with pytest.raises(WorkflowBusyError):
        workflow.run("b")
    held.released["a"].set()
    outputs = [event.data async for event in stream if isinstance(event, OutputYielded)]
    assert outputs == ["a"]


async def test_instances_have_their_own_owner_and_their_own_state(
    workflow: Workflow, held: HeldExecutor
) -> None:
    first = asyncio.create_task(workflow.instance("one").run("a"))
    second = asyncio.create_task(workflow.instance("two").run("b"))
    await held.staged["a"].wait()
    await held.staged["b"].wait()
    held.released["a"].set()
    held.released["b"].set()
    await asyncio.gather(first, second)
    assert workflow.instance("one") is workflow.instance("one")
    assert dict(workflow.instance("one").state) == {"a_key": "a"}
    assert dict(workflow.instance("two").state) == {"b_key": "b"}
    assert dict(workflow.state) == {}


async def test_a_forgotten_instance_is_gone_unless_a_run_owns_it(
    workflow: Workflow, held: HeldExecutor
) -> None:
    task = asyncio.create_task(workflow.instance("one").run("a"))
    await held.staged["a"].wait()
    assert not workflow.forget("one")
    held.released["a"].set()
    await task
    assert workflow.forget("one")
    assert dict(workflow.instance("one").state) == {}
    assert not workflow.forget("default")


async def test_an_unknown_policy_is_refused_before_anything_is_claimed(
    workflow: Workflow,
) -> None:
    with pytest.raises(ValueError, match=r"reject.*wait.*supersede"):
        workflow.run("a", on_conflict="overwrite")  # type: ignore[arg-type]
    assert not workflow.instance("default").busy
