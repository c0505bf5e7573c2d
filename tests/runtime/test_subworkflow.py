"""Workflows as executors of workflows."""

import asyncio
from typing import Any, Literal

import pytest

from tenure.detectors import Detector, Verdict
from tenure.runtime import (
    Executor,
    ExecutorError,
    ExecutorInvoked,
    Outcome,
    OutputYielded,
    OwnershipLostError,
    RequestRaised,
    ResponseTypeError,
    Retry,
    Store,
    SubworkflowEvent,
    UnknownRequestError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from tenure.runtime._types import accepts
from tenure.runtime.testing import HeldExecutor, turns


@pytest.fixture
def store(store_if_any: Store | None) -> Store | None:
    return store_if_any


@executor
async def shout(text: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.set_state("shouted", [*ctx.get_state("shouted", []), text])
    await ctx.yield_output(f"{text}!{ctx.kwargs.get('suffix', '')}")


@executor
async def collect(text: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.set_state("collected", text)
    if text.startswith("bad"):
        raise RuntimeError("refused on request")
    await ctx.yield_output(text)


def around(child: Workflow, store: Store | None = None, **options: Any) -> Workflow:
    inner = WorkflowExecutor(child, "inner", **options)
    return (
        WorkflowBuilder("outer", start=inner, store=store)
        .add_edge(inner, collect)
        .build()
    )


def shouting() -> Workflow:
    return WorkflowBuilder("shouting", start=shout).build()


async def test_outputs_of_a_sub_workflow_go_on_as_messages(detector: Detector) -> None:
    outer = around(shouting())
    result = await outer.run("hello", suffix="?")
    assert result.outputs == ("hello!?",)
    assert detector.verdict is Verdict.CLEAN
    assert detector.findings == ()


async def test_a_sub_workflow_keeps_its_state_between_runs_of_its_parent() -> None:
    outer = around(shouting())
    await outer.run("one")
    await outer.run("two")
    assert outer.state["workflow:inner"]["state"] == {"shouted": ["one", "two"]}
    await outer.instance("other").run("three")
    assert outer.instance("other").state["workflow:inner"]["state"] == {
        "shouted": ["three"]
    }


class Sibling(Executor):
    """Fails beside the sub-workflow, in the same superstep."""

    @handler
    async def work(self, text: str, ctx: WorkflowContext[None, str]) -> None:
        await turns(20)
        raise RuntimeError("the sibling fails")


async def test_a_failed_superstep_of_the_parent_takes_the_sub_workflows_commits_back(
    detector: Detector,
) -> None:
    @executor
    async def split(text: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(text)

    inner = WorkflowExecutor(shouting(), "inner")
    outer = (
        WorkflowBuilder("outer", start=split)
        .add_fan_out(split, [inner, Sibling("sibling")])
        .add_edge(inner, collect)
        .build()
    )
    with pytest.raises(ExecutorError, match="the sibling fails"):
        await outer.run("lost")
    assert dict(outer.state) == {}
    assert detector.verdict is Verdict.CLEAN


async def test_events_of_a_sub_workflow_reach_the_parents_consumer() -> None:
    middle = WorkflowBuilder(
        "middle", start=WorkflowExecutor(shouting(), "innermost")
    ).build()
    outer = around(middle)
    events = [event async for event in outer.stream("deep")]
    told = [
        (event.path, type(event.event))
        for event in events
        if isinstance(event, SubworkflowEvent)
    ]
    assert (("inner", "innermost"), OutputYielded) in told
    assert (("inner",), ExecutorInvoked) in told
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("outputs", [0, 5])
async def test_a_sub_workflow_waits_for_the_reader_of_its_parents_stream(
    depth: int, outputs: int
) -> None:
    invoked: list[int] = []

    @executor
    async def pump(left: int, ctx: WorkflowContext[int, int]) -> None:
        invoked.append(left)
        for at in range(outputs):
            await ctx.yield_output(at)
        if left:
            await ctx.send_message(left - 1)

    workflow = WorkflowBuilder("pump", start=pump).add_edge(pump, pump).build()
    for level in range(depth):
        inner = WorkflowExecutor(workflow)
        workflow = WorkflowBuilder(f"level {level}", start=inner).build()
    async with workflow.stream(50, buffer=4) as events:
        reader = aiter(events)
        told = [await anext(reader)]
        await turns(500)
        assert len(invoked) < 4
        while (event := await anext(reader, None)) is not None:
            told.append(event)
    assert len(invoked) == 51
    assert len(told) > 51 * (3 + outputs)
    assert events.result().outcome is Outcome.COMPLETED


async def test_a_sub_workflow_that_nobody_reads_stalls_and_may_be_superseded() -> None:
    @executor
    async def pump(left: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(left)
        if left:
            await ctx.send_message(left - 1)

    child = WorkflowBuilder("pump", start=pump).add_edge(pump, pump).build()
    outer = WorkflowBuilder("outer", start=WorkflowExecutor(child)).build()
    reader = aiter(outer.stream(50, buffer=2, stall_after=0.0))
    await anext(reader)
    await turns(50)
    assert (await outer.run(0)).outputs == (0,)
    with pytest.raises(OwnershipLostError):
        while await anext(reader, None) is not None:
            pass


async def test_cancelling_the_parent_cancels_the_sub_workflow() -> None:
    held = HeldExecutor(cleanup_turns=5)
    outer = around(WorkflowBuilder("holding", start=held).build())
    task = asyncio.create_task(outer.run("a"))
    await held.staged["a"].wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert held.ended["a"].is_set()
    held.released["b"].set()
    assert (await outer.run("b")).outputs == ("b",)


async def test_superseding_the_parent_leaves_nothing_of_the_sub_workflow(
    detector: Detector,
) -> None:
    held = HeldExecutor(cleanup_turns=5)
    outer = around(WorkflowBuilder("holding", start=held).build())
    first = asyncio.create_task(outer.run("a"))
    await held.staged["a"].wait()
    held.released["b"].set()
    await outer.run("b", on_conflict="supersede")
    await asyncio.gather(first, return_exceptions=True)
    assert outer.state["workflow:inner"]["state"] == {"b_key": "b"}
    assert detector.verdict is Verdict.CLEAN


class Asking(Executor):
    """Asks before it yields."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("asked", text)
        await ctx.request_info(f"publish {text}?", bool)

    @response_handler
    async def on_answer(
        self, question: str, answer: bool, ctx: WorkflowContext[None, str]
    ) -> None:
        await ctx.yield_output(f"{ctx.get_state('asked')}: {answer}")


def asking() -> Workflow:
    return WorkflowBuilder("asking", start=Asking("asking")).build()


async def test_a_request_of_a_sub_workflow_is_answered_through_its_parent(
    store: Store | None,
) -> None:
    outer = around(asking(), store)
    first = await outer.run("draft")
    assert first.outcome is Outcome.PENDING_REQUESTS
    [request] = first.pending_requests
    assert (request.executor_id, request.data) == ("inner", "publish draft?")
    if store is not None:
        outer = around(asking(), store)
    second = await outer.run(responses={request.request_id: True})
    assert (second.outcome, second.outputs) == (Outcome.COMPLETED, ("draft: True",))
    assert outer.pending_requests == ()


async def test_a_request_of_a_sub_workflow_may_be_answered_beside_it() -> None:
    asked: list[str] = []

    async def answer(question: str) -> bool | None:
        asked.append(question)
        return False

    outer = around(asking(), answer=answer)
    result = await outer.run("draft")
    assert result.outputs == ("draft: False",)
    assert result.outcome is Outcome.COMPLETED
    assert asked == ["publish draft?"]


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_withdrawn_request_of_a_sub_workflow_does_not_come_back(
    store: Store | None, depth: int
) -> None:
    child = asking()
    for level in range(1, depth):
        child = WorkflowBuilder(f"level {level}", start=WorkflowExecutor(child)).build()
    outer = around(child, store)
    [first] = (await outer.run("one")).pending_requests
    await outer.cancel_requests([first.request_id])
    result = await outer.run("two")
    assert [one.data for one in result.pending_requests] == ["publish two?"]
    with pytest.raises(UnknownRequestError):
        await outer.run(responses={first.request_id: True})


async def test_a_question_that_was_passed_on_is_not_put_to_the_answerer_again(
    store: Store | None,
) -> None:
    asked: list[str] = []

    def answer(question: str) -> bool | None:
        asked.append(question)
        return None if question == "publish one?" else True

    outer = around(asking(), store, answer=answer)
    [first] = (await outer.run("one")).pending_requests
    result = await outer.run("two")
    assert result.outputs == ("two: True",)
    assert result.pending_requests == (first,)
    result = await outer.run(responses={first.request_id: False})
    assert result.outputs == ("two: False",)
    assert asked == ["publish one?", "publish two?"]


async def test_an_answerer_is_asked_once_about_each_question_of_an_invocation() -> None:
    class Insisting(Asking):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[None, str]) -> None:
            await ctx.request_info("first", bool)
            await ctx.request_info("second", bool)

        @response_handler
        async def on_answer(
            self, question: str, answer: bool, ctx: WorkflowContext[None, str]
        ) -> None:
            await ctx.request_info("third", bool)

    asked: list[str] = []

    def answer(question: str) -> bool | None:
        asked.append(question)
        return True if question == "second" else None

    child = WorkflowBuilder("asking", start=Insisting("asking")).build()
    result = await around(child, answer=answer).run("a")
    assert asked == ["first", "second", "third"]
    assert [one.data for one in result.pending_requests] == ["first", "third"]


async def test_a_request_of_a_sub_workflow_that_is_invoked_twice_is_told_once(
    store: Store | None,
) -> None:
    @executor
    async def twice(text: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(f"{text} 1")
        await ctx.send_message(f"{text} 2")

    inner = WorkflowExecutor(asking(), "inner")
    outer = (
        WorkflowBuilder("outer", start=twice, store=store)
        .add_chain([twice, inner, collect])
        .build()
    )
    result = await outer.run("draft")
    told = [one.request for one in result.events if isinstance(one, RequestRaised)]
    assert tuple(told) == result.pending_requests
    assert [one.data for one in told] == ["publish draft 1?", "publish draft 2?"]
    answers = {one.request_id: True for one in told}
    assert (await outer.run(responses=answers)).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "kind", [list[str], str | None, Literal["a", "b"], dict[str, list[int | None]]]
)
async def test_a_sub_workflow_may_ask_for_whatever_a_workflow_may_ask_for(
    kind: Any,
) -> None:
    class Broad(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[None, Any]) -> None:
            await ctx.request_info(text, kind)

        @response_handler
        async def on_answer(
            self, question: str, answer: object, ctx: WorkflowContext[None, Any]
        ) -> None:
            await ctx.yield_output(answer)

    child = WorkflowBuilder("child", start=Broad("broad")).build()
    middle = WorkflowBuilder("middle", start=WorkflowExecutor(child)).build()
    outer = WorkflowBuilder("outer", start=WorkflowExecutor(middle)).build()
    [request] = (await outer.run("a")).pending_requests
    assert request.response_type == kind
    wrong = object()
    with pytest.raises(ResponseTypeError):
        await outer.run(responses={request.request_id: wrong})
    [answer] = [one for one in (["x"], "a", {"n": [1, None]}) if accepts(kind, one)]
    result = await outer.run(responses={request.request_id: answer})
    assert result.outputs == (answer,)


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_sub_workflow_is_tried_again_for_what_failed_deep_inside_it(
    depth: int,
) -> None:
    attempts: list[str] = []

    @executor
    async def flaky(text: str, ctx: WorkflowContext[None, str]) -> None:
        attempts.append(text)
        ctx.set_state("tries", ctx.get_state("tries", 0) + 1)
        await ctx.yield_output(text)
        if len(attempts) < 3:
            raise ConnectionError("not now")
        if text == "bad":
            raise ValueError("never")

    child = WorkflowBuilder("flaky", start=flaky).build()
    for level in range(1, depth):
        child = WorkflowBuilder(f"level {level}", start=WorkflowExecutor(child)).build()
    retry = Retry(attempts=5, wait=0, on=ConnectionError)
    inner = WorkflowExecutor(child, "inner", retry=retry)
    outer = WorkflowBuilder("outer", start=inner).build()
    result = await outer.run("a")
    assert (result.outputs, len(attempts)) == (("a",), 3)
    with pytest.raises(ExecutorError, match="never"):
        await outer.run("bad")
    assert len(attempts) == 4


async def test_a_sub_workflow_that_takes_too_long_ends_with_a_timeout() -> None:
    held = HeldExecutor()
    child = WorkflowBuilder("holding", start=held).build()
    inner = WorkflowExecutor(child, "inner", timeout=0.05, concurrency=1)
    outer = WorkflowBuilder("outer", start=inner).build()
    with pytest.raises(ExecutorError, match="TimeoutError"):
        await outer.run("a")
    assert held.ended["a"].is_set()
    held.released["b"].set()
    assert (await outer.run("b")).outputs == ("b",)


async def test_a_failure_inside_names_the_executor_of_the_sub_workflow() -> None:
    child = WorkflowBuilder("collecting", start=collect).build()
    outer = WorkflowBuilder("outer", start=WorkflowExecutor(child, "inner")).build()
    with pytest.raises(ExecutorError, match="'inner' failed") as caught:
        await outer.run("bad news")
    assert isinstance(caught.value.__cause__, ExecutorError)
    assert caught.value.__cause__.executor == "collect"
