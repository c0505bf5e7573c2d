"""Runs that nobody abandons, and that meet all the same."""

import asyncio
import contextlib
import threading

from agent_framework import (
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)

from .executors import (
    Does,
    Gates,
    Joins,
    Snapshots,
    routed,
)
from .playing import Told, committed, play, tell, turns


async def fan_in_carry_over() -> Told:
    """S12: a fan-in keeps half of a finished run for the next one."""

    async def send(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(message)

    async def first(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(f"p1:{message}")

    async def second(message: str, context: WorkflowContext[str, str]) -> None:
        if message == "b":
            await context.send_message(f"p2:{message}")

    router, halves = Does("r", send), [Does("p1", first), Does("p2", second)]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, halves)
        .add_fan_in_edges(halves, Joins(id="j"))
        .build()
    )
    await workflow.run("a")
    return await play(workflow)


async def second_driver() -> Told:
    """S13: cancelling requests drives the workflow while a run does."""
    gates = Gates()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("half", message)
        gates["staged"].set()
        await gates["go"].wait()
        raise LookupError(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    run = asyncio.ensure_future(workflow.run("b"))
    await gates["staged"].wait()
    result = await workflow.cancel_pending_requests(["nope"])
    told = tell(workflow, result)
    gates["go"].set()
    with contextlib.suppress(LookupError):
        await run
    told.state = committed(workflow)
    return told


async def thread_write(*, before: bool = False) -> Told:
    """S14: a thread outlives its run and stages, before or while the next one runs."""
    gates, thread_go, thread_done = Gates(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    @executor(id="left")
    def left(message: str, context: WorkflowContext[str, str]) -> None:
        loop.call_soon_threadsafe(gates["thread runs"].set)
        thread_go.wait(20)
        context.set_state("a_thread", message)
        thread_done.set()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        thread_go.set()
        await asyncio.to_thread(thread_done.wait, 20)
        await context.yield_output(message)

    workflow = routed(left, Does("right", right)).build()
    run = asyncio.ensure_future(workflow.run("a"))
    await gates["thread runs"].wait()
    run.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await run
    if before:
        thread_go.set()
        await asyncio.to_thread(thread_done.wait, 20)
    return await play(workflow)


async def background_write() -> Told:
    """S15: a task that a finished run has left stages, and the next run commits it."""
    tasks: list[asyncio.Task[None]] = []

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        async def later() -> None:
            await turns(30)
            context.set_state("a_background", message)

        if message == "a":
            tasks.append(asyncio.create_task(later()))
        await context.yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await workflow.run("a")
    await turns(60)
    return await play(workflow)


async def failed_snapshot() -> Told:
    """S16: a snapshot fails, which is only a warning, and the others stay staged."""
    gates = Gates()

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        second.broken = message == "a"
        await context.yield_output(message)

    first, second = Snapshots("first", gates, forward), Snapshots("second", gates, last)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    await workflow.run("a", checkpoint_storage=InMemoryCheckpointStorage())
    return await play(workflow)
