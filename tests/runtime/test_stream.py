"""Streams: what they tell, in which order, to whom."""

import asyncio
import threading

import pytest

from tenure.instrumentation.operations import Outcome
from tenure.runtime import (
    EventLoopError,
    Executor,
    ExecutorError,
    ExecutorFailed,
    MemoryStore,
    MessageTypeError,
    OutputYielded,
    OwnershipLostError,
    RunEnded,
    RunFailed,
    StreamConsumedError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
)
from tenure.runtime.testing import FailingExecutor, HeldExecutor, turns


class Counter(Executor):
    """Sends itself the next number until the limit, yielding each."""

    def __init__(self, limit: int) -> None:
        super().__init__("counter")
        self.limit = limit

    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.set_state("number", number)
        await ctx.yield_output(number)
        if number < self.limit:
            await ctx.send_message(number + 1)


def counting(limit: int) -> Workflow:
    counter = Counter(limit)
    return (
        WorkflowBuilder("count", start=counter, max_supersteps=limit + 1)
        .add_edge(counter, counter)
        .build()
    )


async def test_events_name_their_run_and_are_numbered_without_gaps() -> None:
    stream = counting(3).stream(1)
    events = [event async for event in stream]
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert {(event.run_id, event.epoch) for event in events} == {
        (stream.run_id, stream.epoch)
    }
    assert [type(event).__name__ for event in events[:6]] == [
        "RunStarted",
        "SuperstepStarted",
        "ExecutorInvoked",
        "OutputYielded",
        "ExecutorCompleted",
        "SuperstepCompleted",
    ]
    assert isinstance(events[-1], RunEnded)
    assert events[-1].outcome is Outcome.COMPLETED


async def test_a_stream_tells_what_a_run_keeps() -> None:
    streamed = [type(event) async for event in counting(3).stream(1)]
    result = await counting(3).run(1)
    assert [type(event) for event in result.events] == streamed
    assert result.outputs == (1, 2, 3)


async def test_the_result_of_a_stream_is_that_of_its_run() -> None:
    async with counting(2).stream(1) as stream:
        with pytest.raises(EventLoopError, match="not ended"):
            stream.result()
        async for _ in stream:
            pass
    assert stream.result().outputs == (1, 2)


async def test_a_run_waits_for_its_reader_once_the_buffer_is_full() -> None:
    workflow = counting(1000)
    stream = workflow.stream(1, buffer=8)
    await anext(stream)
    await turns(200)
    committed = workflow.state["number"]
    assert committed < 10
    await turns(200)
    assert workflow.state["number"] == committed
    outputs = [event.data async for event in stream if isinstance(event, OutputYielded)]
    assert outputs == list(range(1, 1001))


@executor
def flood(count: int, ctx: WorkflowContext[None, int]) -> None:
    for number in range(count):
        ctx.yield_output(number)


async def most_waiting(workflow: Workflow, message: int) -> int:
    """Read a stream whose buffer has four places; return how many ever waited."""
    most = 0
    async with workflow.stream(message, buffer=4) as events:
        async for _ in events:
            most = max(most, len(events._buffer._entries))
    return most


async def test_a_thread_waits_for_the_reader_once_the_buffer_is_full() -> None:
    workflow = WorkflowBuilder("flood", start=flood).build()
    assert await most_waiting(workflow, 500) <= 4 + 3


async def test_a_sub_workflow_waits_for_its_parents_reader() -> None:
    for inner in (WorkflowBuilder("flood", start=flood).build(), counting(300)):
        sub = WorkflowExecutor(inner, "sub")
        workflow = WorkflowBuilder("parent", start=sub).build()
        # Inside it, a superstep tells five things besides its outputs.
        assert await most_waiting(workflow, 1 if inner.name == "count" else 300) <= 9


async def test_a_thread_that_waits_for_a_reader_ends_with_its_run() -> None:
    done = threading.Event()

    @executor
    def endless(name: str, ctx: WorkflowContext[None, str]) -> None:
        try:
            for _ in range(10**9):
                ctx.yield_output(name)
                if ctx.late:
                    break
        finally:
            done.set()

    workflow = WorkflowBuilder("endless", start=endless).build()
    async with workflow.stream("a", buffer=4) as events:
        async for event in events:
            if event.seq == 20:
                break
    await asyncio.to_thread(done.wait, 20)
    assert done.is_set()


async def test_a_run_without_a_stream_keeps_its_newest_thousand_events() -> None:
    result = await counting(500).run(1)
    assert len(result.outputs) == 500
    assert len(result.events) == 1000
    assert result.omitted_events == 500 * 5 + 2 - 1000
    assert isinstance(result.events[-1], RunEnded)


async def test_whoever_has_broken_out_of_a_stream_may_read_on() -> None:
    stream = counting(3).stream(1)
    told = [await anext(aiter(stream))]
    async for event in stream:
        told.append(event)
        break
    told += [event async for event in stream]
    assert [event.seq for event in told] == list(range(1, len(told) + 1))
    assert isinstance(told[-1], RunEnded)


async def test_a_stream_that_was_read_to_its_end_is_not_iterated_again() -> None:
    stream = counting(1).stream(1)
    async for _ in stream:
        pass
    with pytest.raises(StreamConsumedError, match="read to its end"):
        async for _ in stream:
            pass


async def test_a_failed_stream_tells_its_failure_and_then_raises_it() -> None:
    failing = FailingExecutor(fails_for=frozenset({"a"}))
    workflow = WorkflowBuilder("press", start=failing).build()
    kinds: list[type] = []
    with pytest.raises(
        ExecutorError, match="'failing' failed in superstep 1"
    ) as caught:
        async for event in workflow.stream("a"):
            kinds.append(type(event))  # noqa: PERF401 - the loop raises
    assert kinds[-2:] == [ExecutorFailed, RunFailed]
    assert caught.value.__cause__ is failing.error


async def test_leaving_at_the_last_event_leaves_the_instance_free() -> None:
    workflow = counting(2)
    async for event in workflow.stream(1):
        if isinstance(event, RunEnded):
            break
    assert (await workflow.run(1)).epoch == 2


async def test_bad_input_is_refused_before_the_instance_is_claimed() -> None:
    workflow = counting(2)
    for start in (workflow.run, workflow.stream):
        with pytest.raises(MessageTypeError, match=r"type str.*'counter' takes int"):
            start("text")
    with pytest.raises(ValueError, match="buffer=0"):
        workflow.stream(1, buffer=0)
    assert not workflow.instance("default").busy
    assert workflow.instance("default").owner.epoch == 0


@pytest.mark.parametrize("store", [None, MemoryStore()])
async def test_a_stream_that_was_superseded_before_it_was_read_says_so(
    store: MemoryStore | None,
) -> None:
    counter = Counter(1)
    workflow = WorkflowBuilder("count", start=counter, store=store).build()
    stream = workflow.stream(1)
    await workflow.run(1, on_conflict="supersede")
    told: list[object] = []
    with pytest.raises(OwnershipLostError, match="start refused"):
        async for event in stream:
            told.append(event)  # noqa: PERF401 - the loop raises
    [ended] = told
    assert isinstance(ended, RunEnded)
    assert ended.outcome is Outcome.SUPERSEDED


async def test_a_stream_that_was_closed_before_it_was_read_has_an_end() -> None:
    stream = counting(1).stream(1)
    await stream.aclose()
    [ended] = [event async for event in stream]
    assert isinstance(ended, RunEnded)
    assert ended.outcome is Outcome.ABANDONED


def test_a_stream_needs_a_running_loop_when_it_is_read() -> None:
    stream = counting(2).stream(1)
    with pytest.raises(EventLoopError, match="no asyncio event loop"):
        stream.__anext__()


def test_a_stream_cannot_go_on_in_another_loop() -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()

    async def begin() -> object:
        stream = workflow.stream("a")
        await anext(stream)
        return stream

    loop = asyncio.new_event_loop()
    stream = loop.run_until_complete(begin())
    loop.close()

    async def go_on() -> None:
        await anext(stream)  # type: ignore[call-overload]

    with pytest.raises(EventLoopError, match="the loop that drives it is closed"):
        asyncio.run(go_on())


async def test_a_handle_is_awaited_once() -> None:
    handle = counting(1).run(1)
    await handle
    with pytest.raises(RuntimeError, match="awaited already"):
        await handle


async def test_a_handle_goes_wherever_a_coroutine_goes() -> None:
    workflow = counting(1)
    assert (await asyncio.create_task(workflow.run(1))).epoch == 1
    assert (await asyncio.wait_for(workflow.run(1), 5)).epoch == 2
    async with asyncio.TaskGroup() as group:
        task = group.create_task(workflow.run(1))
    assert task.result().epoch == 3
    [result] = await asyncio.gather(workflow.run(1))
    assert result.epoch == 4


def test_a_handle_made_outside_a_loop_runs_in_asyncio_run() -> None:
    assert asyncio.run(counting(2).run(1)).outputs == (1, 2)


async def test_a_long_run_gives_other_tasks_their_turns() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticker = asyncio.create_task(tick())
    await counting(800).run(1)
    ticker.cancel()
    assert ticks >= 100


async def test_a_long_run_that_never_waits_can_be_cancelled() -> None:
    workflow = counting(1_000_000)
    task = asyncio.create_task(workflow.run(1))
    await turns(20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert 0 < workflow.state["number"] < 1_000_000


async def test_kwargs_of_a_run_are_read_in_the_context_and_only_read() -> None:
    @executor
    async def look(message: str, ctx: WorkflowContext[None, object]) -> None:
        with pytest.raises(TypeError):
            ctx.kwargs["tenant"] = "other"  # type: ignore[index]
        await ctx.yield_output(dict(ctx.kwargs))

    workflow = WorkflowBuilder("look", start=look).build()
    assert (await workflow.run("x", tenant="acme")).outputs == ({"tenant": "acme"},)
    assert (await workflow.run("x")).outputs == ({},)
