"""Runs that end as they should, after which the engine refuses the next one."""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator
from typing import Any

from agent_framework import (
    Executor,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from agent_framework.exceptions import (
    AgentException,
    WorkflowException,
)

from .executors import Does, Gates, one_executor
from .playing import Told, committed, play, turns


async def closed_between_supersteps() -> Told:
    """S17: a stream is closed between two supersteps; no fresh run starts any more."""

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", message)
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(message)

    first, second = Does("x", forward), Does("y", last)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    async with workflow.run("a", stream=True) as stream:
        async for event in stream:
            if event.type == "superstep_completed":
                break
        await stream.close()
    return await _next(workflow)


async def agent_left() -> Told:
    """S18: an agent that is a workflow is cancelled once, and never runs again."""
    gates = Gates()

    class Answers(Executor):
        @handler
        async def answer(
            self, messages: list[Message], context: WorkflowContext[str, str]
        ) -> None:
            gates["runs"].set()
            if messages[-1].text == "a":
                await gates["never"].wait()
            await context.yield_output("answer")

    workflow = WorkflowBuilder(start_executor=Answers(id="one")).build()
    agent = workflow.as_agent("agent")
    run = asyncio.ensure_future(agent.run("a"))
    await gates["runs"].wait()
    run.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await run
    told = Told(committed(workflow))
    try:
        told.outputs = [(await agent.run("b")).text]
    except AgentException as error:
        told.notes.append(type(error).__name__)
    return told


async def generator_around() -> Told:
    """S19: a generator of the user's around a run is dropped; the next is refused."""
    gates = Gates()
    workflow = one_executor(gates)
    gates["b go"].set()

    async def served() -> AsyncIterator[Any]:
        stream = workflow.run("a", stream=True)
        async for event in stream:
            yield event

    client = served()
    async for event in client:
        if event.type == "started":
            break
    del client, event
    gc.collect()
    refused: list[Any] = []
    for _ in range(20):
        try:
            told = await play(workflow)
        except WorkflowException as error:
            refused.append(type(error).__name__)
            # Its traceback would keep the stream.
            error.__traceback__ = None
            await turns(1)
        else:
            told.notes = refused
            return told
    return Told(committed(workflow), notes=refused)


async def _next(workflow: Workflow) -> Told:
    try:
        return await play(workflow)
    except RuntimeError as error:
        return Told(committed(workflow), notes=[type(error).__name__])
