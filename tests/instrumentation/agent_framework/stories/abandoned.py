"""Runs that are abandoned, and what they do to their successors."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

from agent_framework import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from agent_framework.exceptions import WorkflowException

from .executors import (
    Does,
    Gates,
    Snapshots,
    one_executor,
    routed,
)
from .playing import Told, abandon, forever, play, turns


async def lost_write(later: int = 0) -> Told:
    """S1: the abandoned run's finalizer throws away what its successor has staged."""
    gates = Gates()
    workflow = one_executor(gates)
    await abandon(workflow)
    await turns(later)
    successor = asyncio.create_task(play(workflow))
    await gates["b staged"].wait()
    await turns(20)
    gates["b go"].set()
    return await successor


async def lost_write_while_the_successor_drops() -> Told:
    """S1 again, but what drops the last reference runs inside the successor."""
    gates, held = Gates(), []

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("a_key", message)
        gates["a staged"].set()
        await forever()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("b_key", message)
        held.clear()
        await turns(20)
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    stream = workflow.run("a", stream=True)
    async for event in stream:
        if event.type == "executor_invoked" and event.executor_id == "wa":
            break
    await gates["a staged"].wait()
    # Whatever holds the iterator and not the stream passes the engine's guard: a
    # debugger, a traceback, a wrapper around the stream.
    held.append(stream._iterator)
    del stream, event
    return await play(workflow)


async def stock_executors(gap: float = 0) -> Told:
    """S2b: nothing but functions, real time, and a cleanup that takes 80 ms."""
    gates = Gates()

    @executor(id="source")
    async def source(message: str, context: WorkflowContext[str]) -> None:
        await context.send_message(message, target_id=message)

    @executor(id="a")
    async def slow(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("a_key", message)
        await context.yield_output("progress-a")
        try:
            await forever()
        finally:
            await asyncio.shield(asyncio.sleep(0.08))
            gates["a cleaned"].set()

    @executor(id="b")
    async def next_one(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("b_key", message)
        await context.yield_output("progress-b")
        await gates["a cleaned"].wait()
        await turns(20)

    workflow = (
        WorkflowBuilder(start_executor=source)
        .add_fan_out_edges(source, [slow, next_one])
        .build()
    )
    await abandon(workflow, at="output")
    await asyncio.sleep(gap)
    return await play(workflow)


async def failed_superstep(ending: str = "raises", *, stages: bool = True) -> Told:
    """S3: a superstep that fails, times out or is closed leaves nothing."""
    gates = Gates()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        if stages or message == "b":
            context.set_state(f"{message}_key", message)
        if message == "b":
            await context.yield_output(message)
            return
        gates["a staged"].set()
        if ending == "raises":
            raise LookupError(message)
        await forever()

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    note = await _end(workflow, gates, ending)
    told = await play(workflow)
    told.notes.append(note)
    return told


async def _end(workflow: Workflow, gates: Gates, ending: str) -> str:
    if ending == "raises":
        try:
            await workflow.run("a")
        except LookupError as error:
            return f"{type(error).__name__}: {error}"
    if ending == "times out":
        try:
            await asyncio.wait_for(workflow.run("a"), 0.05)
        except TimeoutError as error:
            return type(error).__name__
    async with workflow.run("a", stream=True) as stream:
        async for event in stream:
            if event.type == "executor_invoked":
                break
        await gates["a staged"].wait()
        if ending == "closes":
            await stream.close()
    return ending


async def torn_checkpoint(*, with_storage: bool = True) -> Told:
    """S4: the finalizer throws away half of the successor's entry checkpoint."""
    gates, storage = Gates(), InMemoryCheckpointStorage()

    async def start(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", message)
        gates[f"{message} staged"].set()
        if message == "a":
            await forever()
        await context.send_message(message)

    async def stop(message: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(message)

    first, second = Snapshots("first", gates, start), Snapshots("second", gates, stop)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    first.run = second.run = "a"
    how = {"checkpoint_storage": InMemoryCheckpointStorage()} if with_storage else {}
    await abandon(workflow, **how)
    first.run = second.run = "b"
    second.held = True
    successor = asyncio.create_task(play(workflow, checkpoint_storage=storage))
    await gates["saving"].wait()
    await turns(20)
    gates["save"].set()
    told = await successor
    kept = await storage.list_checkpoints(workflow_name=workflow.name)
    kept.sort(key=lambda checkpoint: checkpoint.iteration_count)
    told.checkpoints = [checkpoint.state["_executor_state"] for checkpoint in kept]
    return told


async def late_cleanup(after: int = 0) -> Told:
    """S5: the abandoned run's cleanup stages while the successor runs."""
    gates = Gates()

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("a_key", message)
        gates["a staged"].set()
        try:
            await forever()
        finally:
            await turns(after)
            context.set_state("a_cleanup", message)

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("b_key", message)
        await turns(200)
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    await abandon(workflow, by="wa")
    return await play(workflow)


async def left_at_a_failure() -> Told:
    """S6: the consumer leaves at `executor_failed`; a sibling's cleanup is slow."""

    async def bad(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("secret", message)
        await turns(1)
        if message == "a":
            raise LookupError(message)

    async def slow(message: str, context: WorkflowContext[str, str]) -> None:
        if message == "a":
            try:
                await forever()
            finally:
                await turns(20)
        await context.yield_output(message)

    async def both(message: str, context: WorkflowContext[str, str]) -> None:
        if message == "a":
            await context.send_message(message)
        else:
            await context.send_message(message, target_id="slow")

    router, targets = Does("r", both), [Does("bad", bad), Does("slow", slow)]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, targets)
        .build()
    )
    await abandon(workflow, at="executor_failed")
    return await play(workflow)


async def closed_outer_generator() -> Told:
    """S7: a server closes its own generator around the stream, as for a lost client."""
    gates = Gates()
    workflow = one_executor(gates)

    async def served() -> AsyncIterator[Any]:
        async for event in workflow.run("a", stream=True):
            yield event

    client = served()
    async for event in client:
        if event.type == "executor_invoked":
            break
    await gates["a staged"].wait()
    del event
    await client.aclose()
    successor = asyncio.create_task(play(workflow))
    await gates["b staged"].wait()
    await turns(40)
    gates["b go"].set()
    return await successor


async def cycle() -> Told:
    """S8: the stream sits in a reference cycle, and the collector finds it."""
    gates = Gates()
    workflow = one_executor(gates)
    told = Told({})

    async def lose() -> None:
        holder: dict[str, Any] = {}
        holder["self"] = holder
        holder["stream"] = workflow.run("a", stream=True)
        async for event in holder["stream"]:
            if event.type == "executor_invoked":
                break
        await gates["a staged"].wait()

    gc.disable()
    try:
        await lose()
        try:
            await workflow.run("b")
        except WorkflowException as error:
            told.notes.append(type(error).__name__)
            # Its traceback would hold the frames that the collector is to find.
            error.__traceback__ = None
        gc.collect()
        successor = asyncio.create_task(play(workflow))
        await gates["b staged"].wait()
        await turns(20)
    finally:
        gc.enable()
    gates["b go"].set()
    found = await successor
    found.notes = told.notes
    return found


async def slow_cleanup() -> Told:
    """S9: a cleanup of 150 ms eats the second superstep of the successor."""
    gates = Gates()

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        gates["a staged"].set()
        try:
            await forever()
        finally:
            await asyncio.sleep(0.15)
            gates["a cleaned"].set()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("b2_key", message)
        await gates["a cleaned"].wait()
        await turns(20)
        await context.yield_output(message)

    target = Does("l", last)
    middle = Does("wb", right)
    workflow = routed(Does("wa", left), middle).add_edge(middle, target).build()
    await abandon(workflow, by="wa")
    await gates["a staged"].wait()
    return await play(workflow)


async def foreign_output() -> Told:
    """S10: the abandoned run's cleanup outputs into the successor's stream."""

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        try:
            await forever()
        finally:
            await context.yield_output("late-a")

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        await turns(40)
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    await abandon(workflow, by="wa")
    return await play(workflow)


async def foreign_message() -> Told:
    """S11: the abandoned run's cleanup sends a message that the successor delivers."""
    received: list[str] = []

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        try:
            await forever()
        finally:
            await context.send_message("from-a-cleanup")

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        await turns(40)
        await context.send_message("from-b")

    async def sink(message: str, context: WorkflowContext[str, str]) -> None:
        received.append(message)

    wa, wb, target = Does("wa", left), Does("wb", right), Does("s", sink)
    workflow = routed(wa, wb).add_edge(wa, target).add_edge(wb, target).build()
    await abandon(workflow, by="wa")
    told = await play(workflow)
    told.notes = received
    return told


async def late_fan_in() -> Told:
    """The abandoned run goes on and fills half a fan-in of its successor."""
    gates = Gates()

    class JoinsOnce(Executor):
        """Holds up the run that is left, and does not heed its cancellation."""

        @handler
        async def join(
            self, messages: list[str], context: WorkflowContext[str, str]
        ) -> None:
            if not gates["a joins"].is_set():
                gates["a joins"].set()
                with contextlib.suppress(asyncio.CancelledError):
                    await forever()
                await gates["b runs"].wait()
                return
            await context.yield_output(",".join(messages))

    async def route(message: str, context: WorkflowContext[str, str]) -> None:
        if message == "b":
            gates["b runs"].set()
            await turns(20)
        await context.send_message(message)

    async def twice(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(f"{context._executor_id}:{message}1")
        if message == "a":
            await context.send_message(f"{context._executor_id}:{message}2")

    router, halves = Does("r", route), [Does("p1", twice), Does("p2", twice)]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, halves)
        .add_fan_in_edges(halves, JoinsOnce(id="j"))
        .build()
    )
    await abandon(workflow, by="j")
    await gates["a joins"].wait()
    return await play(workflow)


async def dirty_read() -> Told:
    """The successor reads what the abandoned run's cleanup has staged."""
    gates, seen = Gates(), []

    async def left(message: str, context: WorkflowContext[str, str]) -> None:
        try:
            await forever()
        finally:
            await gates["b runs"].wait()
            context.set_state("a_cleanup", message)
            gates["a cleaned"].set()
            await gates["b has read"].wait()

    async def right(message: str, context: WorkflowContext[str, str]) -> None:
        gates["b runs"].set()
        await gates["a cleaned"].wait()
        seen.append(context.get_state("a_cleanup", "nothing"))
        gates["b has read"].set()
        await turns(20)
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    await abandon(workflow, by="wa")
    told = await play(workflow)
    told.notes = seen
    return told
