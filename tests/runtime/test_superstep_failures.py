"""Supersteps that fail or are cancelled leave nothing behind, and nobody running."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tenure.runtime import (
    ExecutorError,
    ExecutorFailed,
    RunFailed,
    StateKey,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    append,
    executor,
)

LOG = StateKey[list[str]]("log", reduce=append)
Context = WorkflowContext[Any, Any]
Body = Callable[[str, Context], Any]


@executor
async def start(message: str, ctx: WorkflowContext[str, Any]) -> None:
    await ctx.send_message(message)


def annotated(body: Body) -> Body:
    """Give a body the annotations that the engine reads."""

    async def handle(message: str, ctx: Context) -> None:
        await body(message, ctx)

    return handle


def siblings(*bodies: Body) -> Workflow:
    """A fan-out to executors `e0`, `e1`, … that do this side by side."""
    executors = [
        executor(id=f"e{at}")(annotated(body)) for at, body in enumerate(bodies)
    ]
    return WorkflowBuilder("w", start=start).add_fan_out(start, executors).build()


def alone(body: Body) -> Workflow:
    return WorkflowBuilder("w", start=executor(id="only")(annotated(body))).build()


def busy(workflow: Workflow) -> bool:
    return workflow.instance("default").busy


async def test_the_first_failure_cancels_the_siblings_and_waits_for_their_clean_up():
    waiting, clean = asyncio.Event(), asyncio.Event()
    cleaning = asyncio.Event()

    async def waits(message: str, ctx: Context) -> None:
        ctx.set_state("staged", 1)
        try:
            waiting.set()
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await clean.wait()
            ctx.set_state("clean-up", 1)

    async def fails(message: str, ctx: Context) -> None:
        await waiting.wait()
        raise ValueError("no")

    workflow = siblings(waits, fails)
    task = asyncio.create_task(workflow.run("go"))
    await cleaning.wait()
    assert busy(workflow), "the run still owns what its executors clean up"
    clean.set()
    with pytest.raises(ExecutorError, match="'e1' failed in superstep 2: ValueError"):
        await task
    assert dict(workflow.state) == {}
    assert not busy(workflow)


async def test_earlier_supersteps_of_a_failed_run_stay_committed() -> None:
    @executor
    async def first(message: str, ctx: WorkflowContext[str, Any]) -> None:
        ctx.set_state("first", message)
        await ctx.send_message(message)

    @executor
    async def second(message: str, ctx: Context) -> None:
        ctx.set_state("second", message)
        if message == "bad":
            raise ValueError("no")

    workflow = WorkflowBuilder("w", start=first).add_edge(first, second).build()
    with pytest.raises(ExecutorError):
        await workflow.run("bad")
    assert dict(workflow.state) == {"first": "bad"}
    await workflow.run("good")
    assert dict(workflow.state) == {"first": "good", "second": "good"}


async def test_everything_is_discarded_before_the_consumer_hears_of_the_failure() -> (
    None
):
    heard: list[tuple[type, bool, dict[str, Any]]] = []

    async def fails(message: str, ctx: Context) -> None:
        ctx.set_state("key", message)
        if message == "bad":
            raise ValueError("no")

    workflow = alone(fails)
    with pytest.raises(ExecutorError):
        async for event in workflow.stream("bad"):
            if isinstance(event, ExecutorFailed | RunFailed):
                heard.append((type(event), busy(workflow), dict(workflow.state)))
                # The instance is ready for the next run at this very moment.
                await workflow.run("good")
    assert heard == [
        (ExecutorFailed, False, {}),
        (RunFailed, False, {"key": "good"}),
    ]


async def test_what_an_executor_raised_reaches_the_caller_as_the_cause() -> None:
    error = ValueError("no")

    async def fails(message: str, ctx: Context) -> None:
        raise error

    with pytest.raises(ExecutorError) as caught:
        await alone(fails).run("go")
    assert caught.value.__cause__ is error
    assert (caught.value.executor, caught.value.superstep) == ("only", 1)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "error",
    [StopIteration("stop"), StopAsyncIteration(), TimeoutError(), RecursionError()],
    ids=lambda error: type(error).__name__,
)
async def test_exceptions_that_python_treats_oddly_are_failures_like_any_other(
    error: Exception, count: int
) -> None:
    async def fails(message: str, ctx: Context) -> None:
        raise error

    workflow = siblings(*[fails] * count)
    with pytest.raises(ExecutorError, match="'e0' failed"):
        await workflow.run("go")
    assert not busy(workflow)


@pytest.mark.parametrize("count", [1, 2])
async def test_awaiting_what_was_cancelled_elsewhere_is_a_failure_not_a_cancellation(
    count: int,
) -> None:
    async def fails(message: str, ctx: Context) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    workflow = siblings(*[fails] * count)
    with pytest.raises(ExecutorError, match="CancelledError"):
        await workflow.run("go")
    assert not busy(workflow)


class AbortError(BaseException):
    """What is no `Exception`, as `trio.Cancelled` or a debugger's way to quit."""


@pytest.mark.parametrize("count", [1, 2])
async def test_what_is_no_exception_ends_the_run_and_reaches_the_caller_as_it_is(
    count: int,
) -> None:
    async def aborts(message: str, ctx: Context) -> None:
        ctx.set_state(f"key {ctx.executor_id}", 1)
        raise AbortError

    workflow = siblings(*[aborts] * count)
    with pytest.raises(AbortError):
        await workflow.run("go")
    assert dict(workflow.state) == {}
    assert not busy(workflow)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_an_executor_that_ends_the_process_leaves_the_instance_usable(
    error: type[BaseException], count: int
) -> None:
    async def exits(message: str, ctx: Context) -> None:
        ctx.set_state(f"key {ctx.executor_id}", 1)
        if message == "exit":
            raise error

    workflow = siblings(*[exits] * count)
    with pytest.raises(error):
        asyncio.run(workflow.run("exit"))
    assert dict(workflow.state) == {}
    assert not busy(workflow)
    asyncio.run(workflow.run("go"))
    assert len(workflow.state) == count


# Cancellation.


@pytest.mark.parametrize("turns", range(12))
async def test_cancelled_at_any_moment_a_run_commits_whole_supersteps_and_releases(
    turns: int,
) -> None:
    async def work(message: str, ctx: Context) -> None:
        ctx.set_state(LOG, [ctx.executor_id])
        await asyncio.sleep(0)
        ctx.set_state(LOG, [ctx.executor_id])

    workflow = siblings(work, work)
    task = asyncio.create_task(workflow.run("go"))
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    whole = {"log": ["e0", "e0", "e1", "e1"]}
    assert dict(workflow.state) in ({}, whole)
    assert task.cancelled() or dict(workflow.state) == whole
    assert not busy(workflow)
    await workflow.run("go")
    assert len(workflow.state["log"]) in {4, 8}


@pytest.mark.parametrize("count", [1, 2])
async def test_an_executor_that_swallows_cancellation_does_not_hang_the_run(
    count: int,
) -> None:
    began = asyncio.Event()

    async def stubborn(message: str, ctx: Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ctx.set_state(f"swallowed {ctx.executor_id}", 1)

    workflow = siblings(*[stubborn] * count)
    task = asyncio.create_task(workflow.run("go"))
    await began.wait()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert not busy(workflow)
    # All or nothing: what swallowed the cancellation is committed whole or not at all.
    assert len(workflow.state) in {0, count}
    assert task.cancelled() == (len(workflow.state) == 0)


async def test_an_executor_that_cancels_its_own_task_cancels_the_run() -> None:
    async def quits(message: str, ctx: Context) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        ctx.set_state("key", 1)
        await asyncio.sleep(0)

    workflow = alone(quits)
    with pytest.raises(asyncio.CancelledError):
        await workflow.run("go")
    assert dict(workflow.state) == {}
    assert not busy(workflow)


async def test_a_timeout_inside_an_executor_is_its_own_affair() -> None:
    async def patient(message: str, ctx: Context) -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            ctx.set_state("timed out", True)

    workflow = siblings(patient, lambda message, ctx: asyncio.sleep(0))
    await workflow.run("go")
    assert workflow.state["timed out"] is True
