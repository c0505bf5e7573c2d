"""What the engine tells so that a detector can judge supersteps and messages."""

from collections.abc import Iterator

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation import Detail, Recorder
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.operations import Execute, Operation, Receive, Send
from tenure.runtime import (
    StateKey,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)
from tenure.runtime.errors import WriteConflictError

TOTAL = StateKey[int]("total", reduce=lambda so_far, new: (so_far or 0) + new)


@executor
async def source(message: str, ctx: WorkflowContext[str, None]) -> None:
    await ctx.send_message(message)


@executor
async def left(message: str, ctx: WorkflowContext[str, None]) -> None:
    ctx.get_state("of-right")
    ctx.set_state("of-left", message)
    ctx.set_state(TOTAL, 1)
    await ctx.send_message(message)


@executor
async def right(message: str, ctx: WorkflowContext[str, None]) -> None:
    ctx.get_state("of-left")
    ctx.set_state("of-right", message)
    ctx.set_state(TOTAL, 2)
    await ctx.send_message(message)


@executor
async def join(messages: list[str], ctx: WorkflowContext[None, int]) -> None:
    await ctx.yield_output(len(messages))


def fan(detail: Detail) -> Workflow:
    return (
        WorkflowBuilder(
            "fan", start=source, recorder=Recorder("tenure/test", detail=detail)
        )
        .add_fan_out(source, [left, right])
        .add_fan_in([left, right], join)
        .build()
    )


@pytest.fixture
def told() -> Iterator[list[Operation]]:
    heard: list[Operation] = []
    add_listener(heard.append)
    yield heard
    remove_listener(heard.append)


@pytest.fixture
def detector() -> Iterator[Detector]:
    with Detector(announce=()).listen() as listening:
        yield listening


async def test_an_invocation_names_the_keys_that_a_reducer_joins(
    told: list[Operation],
) -> None:
    await fan(Detail.EXECUTORS).run("x")
    reduced = {one.executor: one.reduced for one in told if isinstance(one, Execute)}

    assert reduced == {
        "source": (),
        "left": ("total",),
        "right": ("total",),
        "join": (),
    }
    assert all(one.isolated for one in told if isinstance(one, Execute))


async def test_siblings_that_join_writes_and_read_each_others_keys_are_clean(
    detector: Detector,
) -> None:
    workflow = fan(Detail.EXECUTORS)
    await workflow.run("x")

    assert workflow.state["total"] == 3
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


async def test_a_conflict_that_the_engine_refuses_is_no_finding(
    detector: Detector,
) -> None:
    @executor
    async def rival(message: str, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state("of-left", message)

    workflow = (
        WorkflowBuilder("rivals", start=source)
        .add_fan_out(source, [left, rival])
        .add_edge(left, join_one)
        .build()
    )
    with pytest.raises(WriteConflictError):
        await workflow.run("x")

    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


@executor
async def join_one(message: str, ctx: WorkflowContext[None, None]) -> None:
    ctx.set_state("joined", message)


async def test_every_message_is_told_once_on_either_side(
    told: list[Operation], detector: Detector
) -> None:
    await fan(Detail.MESSAGES).run("x")
    sent = [(one.executor, one.target) for one in told if isinstance(one, Send)]
    received = [one.executor for one in told if isinstance(one, Receive)]

    # A fan-in's list is one message: it is sent when it is whole.
    assert sent == [("source", "left"), ("source", "right"), ("right", "join")]
    assert received == ["left", "right", "join"]
    assert {one.message for one in told if isinstance(one, Send)} == {
        one.message for one in told if isinstance(one, Receive)
    }
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


async def test_messages_are_not_told_by_default(told: list[Operation]) -> None:
    await fan(Detail.EXECUTORS).run("x")

    assert not any(isinstance(one, Send | Receive) for one in told)
