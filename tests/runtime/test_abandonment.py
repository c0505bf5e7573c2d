"""However a consumer leaves, its run ends, and the instance is free for the next."""

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncIterator

import pytest

from tenure.detectors import Detector, Verdict
from tenure.instrumentation.operations import (
    Discard,
    Operation,
    Outcome,
    Release,
    Trigger,
)
from tenure.runtime import (
    ExecutorInvoked,
    RunStream,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    WorkflowEvent,
    executor,
)
from tenure.runtime.testing import HeldExecutor, turns


@pytest.fixture
def held() -> HeldExecutor:
    return HeldExecutor()


@pytest.fixture
def workflow(held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held).build()


async def read_until_staged(stream: RunStream, held: HeldExecutor) -> None:
    async for event in stream:
        if isinstance(event, ExecutorInvoked):
            break
    await held.staged["a"].wait()


async def next_run_succeeds(workflow: Workflow, held: HeldExecutor) -> None:
    held.released["b"].set()
    result = await workflow.run("b")
    assert result.outcome is Outcome.COMPLETED
    assert dict(workflow.state) == {"b_key": "b"}


async def test_a_stream_that_is_broken_out_of_and_dropped_ends_its_run(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    del stream
    await held.ended["a"].wait()
    await turns(3)
    discard = next(one for one in operations if isinstance(one, Discard))
    assert discard.writes is not None
    assert (discard.fenced, discard.writes.keys) == (False, ("a_key",))
    assert discard.trigger is Trigger.REFCOUNT
    await next_run_succeeds(workflow, held)


async def test_a_stream_that_is_kept_after_a_break_goes_on(
    workflow: Workflow, held: HeldExecutor
) -> None:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    with pytest.raises(WorkflowBusyError, match="epoch 1"):
        workflow.run("b")
    held.released["a"].set()
    rest = [event async for event in _rest_of(stream)]
    assert rest[-1].seq > 3
    assert dict(workflow.state) == {"a_key": "a"}


async def _rest_of(stream: RunStream) -> AsyncIterator[WorkflowEvent]:
    while True:
        try:
            yield await anext(stream)
        except StopAsyncIteration:
            return


async def test_closing_a_stream_waits_for_the_clean_up_of_its_run(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    await stream.aclose()
    assert held.ended["a"].is_set()
    assert not workflow.instance("default").busy
    assert stream.result().outcome is Outcome.ABANDONED
    triggers = [one.trigger for one in operations if isinstance(one, Discard)]
    assert triggers == [Trigger.CLOSE]
    await stream.aclose()
    await next_run_succeeds(workflow, held)


async def test_leaving_the_block_by_an_exception_ends_the_run(
    workflow: Workflow, held: HeldExecutor
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with workflow.stream("a") as events:
            async for event in events:
                if isinstance(event, ExecutorInvoked):
                    raise ZeroDivisionError
    await next_run_succeeds(workflow, held)


async def test_a_stream_collected_in_a_cycle_by_another_thread_ends_its_run(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    gc.collect()
    gc.disable()
    try:
        stream = workflow.stream("a")
        await read_until_staged(stream, held)
        knot: list[object] = [stream]
        knot.append(knot)
        del stream, knot
        collector = threading.Thread(target=gc.collect)
        collector.start()
        collector.join()
        await held.ended["a"].wait()
        await turns(3)
    finally:
        gc.enable()
    [trigger] = [one.trigger for one in operations if isinstance(one, Discard)]
    assert trigger is Trigger.GC
    await next_run_succeeds(workflow, held)


async def test_a_stream_whose_last_reference_dies_in_another_thread_ends_its_run(
    workflow: Workflow, held: HeldExecutor
) -> None:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    box = [stream]
    del stream
    dropper = threading.Thread(target=box.clear)
    dropper.start()
    dropper.join()
    await held.ended["a"].wait()
    await next_run_succeeds(workflow, held)


async def test_a_generator_around_a_stream_ends_the_run_when_it_is_closed(
    workflow: Workflow, held: HeldExecutor
) -> None:
    async def server_sent_events() -> AsyncIterator[str]:
        async for event in workflow.stream("a"):
            yield f"data: {type(event).__name__}\n\n"

    body = server_sent_events()
    async for chunk in body:
        if "ExecutorInvoked" in chunk:
            break
    await held.staged["a"].wait()
    await body.aclose()
    await next_run_succeeds(workflow, held)


async def test_a_generator_around_a_stream_ends_the_run_once_the_loop_finalizes_it(
    workflow: Workflow, held: HeldExecutor, detector: Detector
) -> None:
    async def server_sent_events() -> AsyncIterator[str]:
        async for event in workflow.stream("a"):
            yield f"data: {type(event).__name__}\n\n"

    body = server_sent_events()
    async for chunk in body:
        if "ExecutorInvoked" in chunk:
            break
    await held.staged["a"].wait()
    del body
    second = asyncio.create_task(workflow.run("b", on_conflict="wait"))
    held.released["b"].set()
    await second
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.verdict is Verdict.CLEAN


async def test_a_cancelled_reader_ends_the_run_of_the_stream_that_it_held(
    workflow: Workflow, held: HeldExecutor
) -> None:
    async def read() -> None:
        async for _ in workflow.stream("a"):
            pass

    reader = asyncio.create_task(read())
    await held.staged["a"].wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    del reader
    await held.ended["a"].wait()
    await next_run_succeeds(workflow, held)


async def test_cancelling_the_caller_waits_for_the_clean_up_of_the_run(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    caller = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert held.ended["a"].is_set()
    outcomes = [one.outcome for one in operations if isinstance(one, Release)]
    assert outcomes == [Outcome.CANCELLED]
    await next_run_succeeds(workflow, held)


async def test_a_timed_out_run_leaves_the_instance_free(
    workflow: Workflow, held: HeldExecutor
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await workflow.run("a")
    assert held.ended["a"].is_set()
    await next_run_succeeds(workflow, held)


async def test_a_stream_that_is_never_iterated_gives_its_claim_back(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    stream = workflow.stream("a")
    assert stream.epoch == 1
    del stream
    await next_run_succeeds(workflow, held)
    assert operations[0].run.epoch == 1
    assert [one.outcome for one in operations if isinstance(one, Release)] == [
        Outcome.SUPERSEDED,
        Outcome.COMPLETED,
    ]


async def test_a_stream_that_is_never_iterated_is_released_without_a_successor(
    workflow: Workflow, operations: list[Operation]
) -> None:
    stream = workflow.stream("a")
    del stream
    await turns(2)
    assert not workflow.instance("default").busy
    assert [one.outcome for one in operations if isinstance(one, Release)] == [
        Outcome.ABANDONED
    ]


async def test_a_run_that_is_never_awaited_gives_its_claim_back_with_a_warning(
    workflow: Workflow, held: HeldExecutor
) -> None:
    handle = workflow.run("a")
    assert workflow.instance("default").busy
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del handle
    assert "never awaited" in str(caught[0].message)
    await next_run_succeeds(workflow, held)


async def test_a_handle_that_is_closed_unawaited_gives_its_claim_back_in_silence(
    workflow: Workflow, held: HeldExecutor
) -> None:
    handle = workflow.run("a")
    handle.close()
    assert not workflow.instance("default").busy
    del handle
    await next_run_succeeds(workflow, held)


def test_a_run_left_behind_by_a_closed_loop_does_not_brick_the_instance(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    loop = asyncio.new_event_loop()
    stream = loop.run_until_complete(_stream_in(workflow, held))
    loop.close()

    fresh = HeldExecutor()
    fresh.released["b"].set()
    held.staged.clear()
    held.released.clear()
    held.released.update(fresh.released)
    result = asyncio.run(workflow.run("b"))

    assert result.epoch == 2
    assert dict(workflow.state) == {"b_key": "b"}
    assert [one.outcome for one in operations if isinstance(one, Release)] == [
        Outcome.SUPERSEDED,
        Outcome.COMPLETED,
    ]
    del stream


async def _stream_in(workflow: Workflow, held: HeldExecutor) -> RunStream:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    return stream


async def test_an_executor_that_swallows_cancellation_cannot_commit_for_a_dropped_run(
    operations: list[Operation], detector: Detector
) -> None:
    staged = asyncio.Event()
    finished = asyncio.Event()

    @executor
    async def stubborn(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(f"{message}_key", message)
        if message == "b":
            return
        staged.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await turns(5)
        ctx.set_state("stubborn", message)
        finished.set()

    workflow = WorkflowBuilder("press", start=stubborn).build()
    stream = workflow.stream("a")
    async for event in stream:
        if isinstance(event, ExecutorInvoked):
            break
    await staged.wait()
    del stream
    await finished.wait()
    await turns(5)
    assert dict(workflow.state) == {}
    await workflow.run("b")
    assert dict(workflow.state) == {"b_key": "b"}
    assert detector.verdict is Verdict.CLEAN


async def test_a_thread_that_outlives_its_timed_out_run_writes_into_nothing(
    operations: list[Operation], detector: Detector
) -> None:
    entered = threading.Event()
    release = threading.Event()
    written = asyncio.Event()
    loop = asyncio.get_running_loop()

    @executor
    def blocking(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(f"{message}_key", message)
        if message == "b":
            return
        entered.set()
        release.wait(10)
        ctx.set_state("a_thread", message)
        loop.call_soon_threadsafe(written.set)

    workflow = WorkflowBuilder("press", start=blocking).build()
    first = asyncio.create_task(workflow.run("a"))
    await asyncio.to_thread(entered.wait, 10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await workflow.run("b")
    release.set()
    await written.wait()
    await workflow.run("b")
    assert dict(workflow.state) == {"b_key": "b"}
    assert [one.name for one in operations].count("late") == 1
    assert detector.verdict is Verdict.CLEAN


async def test_a_background_task_of_a_finished_run_writes_into_nothing(
    operations: list[Operation], detector: Detector
) -> None:
    tasks: list[asyncio.Task[None]] = []

    @executor
    async def leaving(message: str, ctx: WorkflowContext[None, str]) -> None:
        async def later() -> None:
            await turns(30)
            ctx.set_state(f"{message}_background", message)

        ctx.set_state(f"{message}_key", message)
        if message == "a":
            tasks.append(asyncio.create_task(later()))

    workflow = WorkflowBuilder("press", start=leaving).build()
    await workflow.run("a")
    await tasks[0]
    await workflow.run("b")
    assert dict(workflow.state) == {"a_key": "a", "b_key": "b"}
    assert [one.name for one in operations].count("late") == 1
    assert detector.verdict is Verdict.CLEAN


async def test_a_run_that_is_cancelled_before_its_first_step_gives_its_claim_back(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    caller = asyncio.create_task(workflow.run("a"))
    await turns(1)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not held.staged["a"].is_set()
    outcomes = [one.outcome for one in operations if isinstance(one, Release)]
    assert outcomes == [Outcome.CANCELLED]
    await next_run_succeeds(workflow, held)


async def test_a_traceback_that_is_kept_does_not_keep_a_cancelled_readers_run_alive(
    workflow: Workflow, held: HeldExecutor, operations: list[Operation]
) -> None:
    kept: list[BaseException] = []

    async def read() -> None:
        try:
            async for _ in workflow.stream("a"):
                pass
        except asyncio.CancelledError as error:
            kept.append(error)

    gc.disable()
    try:
        reader = asyncio.create_task(read())
        await held.staged["a"].wait()
        reader.cancel()
        await reader
        # As a task group does: it keeps the exception, not the frames of the reader.
        kept[0].__traceback__ = kept[0].__traceback__.tb_next  # type: ignore[union-attr]
        await held.ended["a"].wait()
    finally:
        gc.enable()
    await turns(3)
    [trigger] = [one.trigger for one in operations if isinstance(one, Discard)]
    assert trigger is Trigger.REFCOUNT
