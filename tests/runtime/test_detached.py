"""Runs that go on by themselves; clients that leave and come back."""

import asyncio

import pytest

from tenure.runtime import (
    EventLoopError,
    EventsMissedError,
    Executor,
    ExecutorInvoked,
    Outcome,
    OutputYielded,
    RunEnded,
    RunNotFoundError,
    StreamConsumedError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from tenure.runtime.testing import HeldExecutor, turns


class Counter(Executor):
    @handler
    async def count(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(number)
        if number < 100:
            await ctx.send_message(number + 1)


def counting() -> Workflow:
    counter = Counter("counter")
    return WorkflowBuilder("count", start=counter).add_edge(counter, counter).build()


@pytest.fixture
def held() -> HeldExecutor:
    return HeldExecutor()


@pytest.fixture
def workflow(held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held).build()


async def test_a_client_may_leave_and_read_on_where_it_stopped(
    workflow: Workflow, held: HeldExecutor
) -> None:
    run_id = workflow.start("a")
    first = workflow.attach(run_id)
    async for event in first:
        if isinstance(event, ExecutorInvoked):
            break
    seen = first.seq
    del first
    await held.staged["a"].wait()
    held.released["a"].set()
    again = workflow.attach(run_id, after=seen)
    rest = [event async for event in again]
    assert rest[0].seq == seen + 1
    assert isinstance(rest[-1], RunEnded)
    assert (await again.result()).outputs == ("a",)
    assert dict(workflow.state) == {"a_key": "a"}


async def test_a_run_goes_on_without_any_reader(
    workflow: Workflow, held: HeldExecutor
) -> None:
    run_id = workflow.start("a")
    held.released["a"].set()
    await held.ended["a"].wait()
    await turns(5)
    assert dict(workflow.state) == {"a_key": "a"}
    events = [event async for event in workflow.attach(run_id)]
    assert isinstance(events[-1], RunEnded)


async def test_two_readers_see_the_same_events() -> None:
    workflow = counting()
    run_id = workflow.start(1)

    async def outputs() -> list[int]:
        return [
            event.data
            async for event in workflow.attach(run_id)
            if isinstance(event, OutputYielded)
        ]

    one, other = await asyncio.gather(outputs(), outputs())
    assert one == other == list(range(1, 101))


async def test_a_reader_that_is_too_far_behind_is_told_where_to_go_on() -> None:
    workflow = counting()
    run_id = workflow.start(1, keep_events=10)
    await workflow.attach(run_id, after=10_000).result()
    late = workflow.attach(run_id)
    with pytest.raises(EventsMissedError, match="Attach after=") as caught:
        await anext(late)
    kept = [e async for e in workflow.attach(run_id, after=caught.value.first - 1)]
    assert len(kept) == 10


async def test_cancelling_a_detached_run_waits_for_its_clean_up(
    workflow: Workflow, held: HeldExecutor
) -> None:
    run_id = workflow.start("a")
    await held.staged["a"].wait()
    await workflow.cancel(run_id)
    assert held.ended["a"].is_set()
    result = await workflow.attach(run_id).result()
    assert result.outcome is Outcome.CANCELLED
    assert dict(workflow.state) == {}


async def test_cancelling_a_stream_ends_it_with_the_outcome_cancelled(
    workflow: Workflow, held: HeldExecutor
) -> None:
    async with workflow.stream("a") as events:
        await held.staged["a"].wait()
        await events.cancel()
        told = [event async for event in events]
    assert isinstance(told[-1], RunEnded)
    assert told[-1].outcome is Outcome.CANCELLED


async def test_an_unknown_run_is_refused_and_so_is_a_stream_at_its_end() -> None:
    workflow = counting()
    with pytest.raises(RunNotFoundError, match=r"workflow\.start"):
        workflow.attach("nothing")
    stream = workflow.attach(workflow.start(1))
    await anext(aiter(stream))
    async for _ in stream:
        pass
    with pytest.raises(StreamConsumedError):
        aiter(stream)


async def test_events_count_from_one(workflow: Workflow, held: HeldExecutor) -> None:
    run_id = workflow.start("a")
    with pytest.raises(ValueError, match="after=-1"):
        workflow.attach(run_id, after=-1)
    await workflow.cancel(run_id)


def test_who_reads_a_live_run_in_another_loop_is_refused_and_may_come_after_it(
    workflow: Workflow, held: HeldExecutor
) -> None:
    async def start() -> str:
        run_id = workflow.start("a")
        await held.staged["a"].wait()
        return run_id

    async def read(run_id: str) -> list[object]:
        return [event async for event in workflow.attach(run_id)]

    async def bring(run_id: str) -> object:
        return (await workflow.attach(run_id).result()).outcome

    driving = asyncio.new_event_loop()
    run_id = driving.run_until_complete(start())
    for ask in (read, bring, workflow.cancel):
        with pytest.raises(EventLoopError, match="another one"):
            asyncio.run(ask(run_id))
    driving.run_until_complete(workflow.cancel(run_id))
    driving.close()
    assert asyncio.run(bring(run_id)) is Outcome.CANCELLED
    assert isinstance(asyncio.run(read(run_id))[-1], RunEnded)
    asyncio.run(workflow.cancel(run_id))


async def test_who_reads_a_run_whose_loop_is_closed_is_not_left_waiting() -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("press", start=held).build()

    async def start() -> str:
        run_id = workflow.start("a")
        await held.staged["a"].wait()
        return run_id

    def drive() -> str:
        driving = asyncio.new_event_loop()
        run_id = driving.run_until_complete(start())
        driving.close()
        return run_id

    stream = workflow.attach(await asyncio.to_thread(drive))
    with pytest.raises(EventLoopError, match="closed"):
        await anext(stream)
    with pytest.raises(EventLoopError, match="closed"):
        await stream.result()
