"""What executors do behind the engine's back: threads, left-over tasks, other runs."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tenure.instrumentation.operations import Late, Operation
from tenure.runtime import (
    ExecutorError,
    OutputYielded,
    OwnershipLostError,
    StateKey,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    append,
    executor,
)

LOG = StateKey[list[str]]("log", reduce=append)
Context = WorkflowContext[Any, Any]


def busy(workflow: Workflow) -> bool:
    return workflow.instance("default").busy


class Gate:
    """A worker thread waits here until the test opens it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.opened = threading.Event()
        self.passed = threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.opened.wait(20)

    async def wait_reached(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 20)

    async def wait_passed(self) -> None:
        assert await asyncio.to_thread(self.passed.wait, 20)


@pytest.fixture
async def gate() -> AsyncIterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


# Threads.


async def test_plain_functions_run_in_threads_and_do_all_that_a_coroutine_can() -> None:
    threads: list[threading.Thread] = []

    @executor
    def work(message: str, ctx: WorkflowContext[str, str]) -> None:
        threads.append(threading.current_thread())
        ctx.set_state("key", message)
        assert ctx.get_state("key") == message
        ctx.yield_output(f"yielded {message}")
        ctx.send_message(message.upper())

    @executor
    def after(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.yield_output(message)

    workflow = WorkflowBuilder("w", start=work).add_edge(work, after).build()
    result = await workflow.run("go")
    assert result.outputs == ("yielded go", "GO")
    assert dict(workflow.state) == {"key": "go"}
    assert threading.main_thread() not in threads


async def test_a_thread_wakes_the_reader_of_a_stream_while_it_goes_on(
    gate: Gate,
) -> None:
    @executor
    def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.yield_output("early")
        gate.pass_through()

    async with WorkflowBuilder("w", start=work).build().stream("go") as events:
        async for event in events:
            if isinstance(event, OutputYielded):
                assert not gate.opened.is_set()
                gate.opened.set()


async def test_a_coroutine_may_hand_its_context_to_a_thread(gate: Gate) -> None:
    def in_thread(ctx: Context) -> None:
        ctx.yield_output("early")
        ctx.set_state("key", 1)
        gate.pass_through()

    @executor
    async def work(message: str, ctx: Context) -> None:
        await asyncio.to_thread(in_thread, ctx)

    workflow = WorkflowBuilder("w", start=work).build()
    async with workflow.stream("go") as events:
        async for event in events:
            if isinstance(event, OutputYielded):
                gate.opened.set()
    assert dict(workflow.state) == {"key": 1}


async def test_many_threads_stage_side_by_side_and_are_joined_in_graph_order() -> None:
    size = 20
    meeting = threading.Barrier(size)

    @executor
    async def start(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message(message)

    def work(message: str, ctx: Context) -> None:
        meeting.wait(20)
        for at in range(20):
            ctx.set_state(LOG, [f"{ctx.executor_id} {at}"])
            ctx.yield_output(at)

    executors = [executor(id=f"e{at}")(work) for at in range(size)]
    workflow = WorkflowBuilder("w", start=start).add_fan_out(start, executors).build()
    result = await workflow.run("go")
    assert workflow.state["log"] == [
        f"e{at} {number}" for at in range(size) for number in range(20)
    ]
    assert result.outputs == tuple(range(20)) * size


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration()], ids=repr)
async def test_what_a_thread_raises_fails_its_executor(error: Exception) -> None:
    @executor
    def fails(message: str, ctx: Context) -> None:
        ctx.set_state("key", 1)
        raise error

    workflow = WorkflowBuilder("w", start=fails).build()
    with pytest.raises(ExecutorError, match="'fails' failed"):
        await workflow.run("go")
    assert dict(workflow.state) == {}


async def test_a_thread_that_outlives_its_run_reads_the_past_and_writes_into_nothing(
    gate: Gate, operations: list[Operation]
) -> None:
    seen: list[object] = []

    @executor
    def work(message: str, ctx: Context) -> None:
        if message != "slow":
            ctx.set_state("key", message)
            return
        gate.pass_through()
        seen.append(ctx.get_state("key"))
        ctx.set_state("key", "late")
        ctx.set_state(LOG, ["late"])
        ctx.delete_state("key")
        ctx.send_message("late")
        ctx.yield_output("late")
        gate.passed.set()

    workflow = WorkflowBuilder("w", start=work).build()
    await workflow.run("one")
    task = asyncio.create_task(workflow.run("slow"))
    await gate.wait_reached()
    task.cancel()
    await asyncio.wait([task])
    assert not busy(workflow)
    await workflow.run("two")
    gate.opened.set()
    await gate.wait_passed()
    assert seen == ["one"]
    assert dict(workflow.state) == {"key": "two"}
    late = [one for one in operations if isinstance(one, Late)]
    assert {one.run.epoch for one in late} == {2}
    assert len(late) == 5


def test_runs_from_many_threads_and_loops_take_turns_and_lose_no_write() -> None:
    @executor
    async def count(message: str, ctx: Context) -> None:
        number = ctx.get_state("count", 0)
        await asyncio.sleep(0)
        ctx.set_state("count", number + 1)

    workflow = WorkflowBuilder("w", start=count).build()
    size, each = 8, 10
    meeting = threading.Barrier(size)
    failures: list[BaseException] = []

    async def several() -> None:
        for _ in range(each):
            await workflow.run("go", on_conflict="wait")

    def in_thread() -> None:
        try:
            meeting.wait(20)
            asyncio.run(several())
        except BaseException as exc:  # noqa: BLE001 - reported by the test
            failures.append(exc)

    threads = [threading.Thread(target=in_thread, daemon=True) for _ in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads), (
        "a waiting run was forgotten"
    )
    assert failures == []
    assert workflow.state["count"] == size * each


# Tasks that an executor leaves behind.


async def test_what_a_left_over_task_writes_reaches_neither_its_run_nor_the_next(
    operations: list[Operation],
) -> None:
    go = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def later(ctx: Context) -> None:
        await go.wait()
        ctx.set_state("key", "late")
        ctx.set_state(LOG, ["late"])
        await ctx.send_message("late")
        await ctx.yield_output("late")

    @executor
    async def leaves(message: str, ctx: WorkflowContext[str, Any]) -> None:
        tasks.append(asyncio.create_task(later(ctx)))
        await ctx.send_message(message)

    @executor
    async def after(message: str, ctx: WorkflowContext[str, Any]) -> None:
        # The run goes on in its second superstep while the first one's task wakes up.
        go.set()
        await asyncio.gather(*tasks)
        await ctx.yield_output(message)

    workflow = WorkflowBuilder("w", start=leaves).add_edge(leaves, after).build()
    result = await workflow.run("go")
    assert result.outputs == ("go",)
    assert result.supersteps == 2
    assert dict(workflow.state) == {}
    late = [one for one in operations if isinstance(one, Late)]
    assert len(late) == 4


async def test_a_context_ends_with_its_message_although_the_executor_goes_on() -> None:
    contexts: list[Context] = []

    @executor
    async def many(message: str, ctx: WorkflowContext[int, Any]) -> None:
        await ctx.send_message(1)
        await ctx.send_message(2)

    @executor
    async def one(number: int, ctx: Context) -> None:
        contexts.append(ctx)
        contexts[0].set_state(f"through the first context {number}", number)

    workflow = WorkflowBuilder("w", start=many).add_edge(many, one).build()
    await workflow.run("go")
    assert dict(workflow.state) == {"through the first context 1": 1}


# Runs inside runs.


async def test_an_executor_may_run_another_instance_and_another_workflow() -> None:
    @executor
    async def inner(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("message", message)
        await ctx.yield_output(f"{ctx.instance_key}: {message}")

    other = WorkflowBuilder("other", start=inner).build()

    @executor
    async def outer(message: str, ctx: WorkflowContext[None, Any]) -> None:
        ctx.set_state("message", f"outer {message}")
        if message == "nested":
            return
        here = await workflow.instance("nested").run("nested")
        there = await asyncio.gather(*(other.instance(key).run("x") for key in "ab"))
        await ctx.yield_output([here.supersteps, *(one.outputs for one in there)])

    workflow = WorkflowBuilder("w", start=outer).build()
    result = await workflow.run("top")
    assert result.outputs == ([1, ("a: x",), ("b: x",)],)
    assert workflow.state["message"] == "outer top"
    assert workflow.instance("nested").state["message"] == "outer nested"
    assert other.instance("a").state["message"] == "x"
    assert dict(other.state) == {}


async def test_a_run_of_the_same_instance_inside_its_own_run_is_refused_not_stuck():
    @executor
    async def nests(message: str, ctx: Context) -> None:
        ctx.set_state("key", message)
        await workflow.run("again")

    workflow = WorkflowBuilder("w", start=nests).build()
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("go")
    assert isinstance(caught.value.__cause__, WorkflowBusyError)
    assert dict(workflow.state) == {}
    assert not busy(workflow)


async def test_a_run_that_supersedes_itself_from_within_leaves_the_instance_usable():
    @executor
    async def nests(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state(message, 1)
        if message == "outer":
            await workflow.run("inner", on_conflict="supersede")

    workflow = WorkflowBuilder("w", start=nests).build()
    with pytest.raises(OwnershipLostError):
        await workflow.run("outer")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not busy(workflow)
    assert "outer" not in workflow.state
    await workflow.run("after")
    assert workflow.state["after"] == 1


async def test_a_run_may_be_queued_behind_the_run_that_queues_it() -> None:
    queued: list[asyncio.Task[Any]] = []

    @executor
    async def queues(message: str, ctx: Context) -> None:
        ctx.set_state(LOG, [message])
        if message == "first":
            handle = workflow.run("second", on_conflict="wait")
            queued.append(asyncio.create_task(handle))

    workflow = WorkflowBuilder("w", start=queues).build()
    await workflow.run("first")
    await asyncio.gather(*queued)
    assert workflow.state["log"] == ["first", "second"]


async def test_the_context_variables_of_a_run_are_those_of_its_caller() -> None:
    user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

    @executor
    async def reads(message: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(user.get())
        user.set("changed by the executor")

    workflow = WorkflowBuilder("w", start=reads).build()
    handle = workflow.instance("early").run("go")
    user.set("ann")
    late = workflow.instance("late").run("go")
    assert (await handle).outputs == ("nobody",)
    assert (await late).outputs == ("ann",)
    assert user.get() == "ann"
