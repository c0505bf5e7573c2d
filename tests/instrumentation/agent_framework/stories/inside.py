"""Executors of one superstep that meet: the engine has one staging map for them all."""

from typing import Any

from agent_framework import (
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

from .executors import Act, Does, Gates
from .playing import Told, play, tell, turns


async def lost_update() -> Told:
    """S20: two executors increment one key, and one increment is lost."""

    async def increment(message: str, context: WorkflowContext[str, str]) -> None:
        count = context.get_state("count", 0)
        await turns(2)
        context.set_state("count", count + 1)

    return await _side_by_side(increment, increment)


async def last_write_wins() -> Told:
    """Two executors set one key, which neither has read."""

    def sets(name: str) -> Act:
        async def act(message: str, context: WorkflowContext[str, str]) -> None:
            context.set_state("winner", name)

        return act

    return await _side_by_side(sets("p1"), sets("p2"))


async def sibling_read() -> Told:
    """S21: an executor reads what its sibling has staged and may never commit."""
    gates, seen = Gates(), list[Any]()

    async def writes(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("draft", message)
        gates["staged"].set()

    async def reads(message: str, context: WorkflowContext[str, str]) -> None:
        await gates["staged"].wait()
        seen.append(context.get_state("draft", "nothing"))

    told = await _side_by_side(writes, reads)
    told.notes = seen
    return told


async def apart() -> Told:
    """Two executors side by side, each with keys of its own and one that both read."""

    def counts(name: str) -> Act:
        async def act(message: str, context: WorkflowContext[str, str]) -> None:
            total = context.get_state("committed", 1) + context.get_state(name, 0)
            await turns(2)
            context.set_state(name, total)
            context.set_state(name, context.get_state(name) + 1)

        return act

    return await _side_by_side(counts("p1"), counts("p2"))


async def shared_message() -> Told:
    """S22: the targets of a fan-out get one mutable message, and one changes it."""
    gates, seen = Gates(), list[Any]()

    class Takes(Executor):
        @handler
        async def take(
            self, message: list[str], context: WorkflowContext[str, str]
        ) -> None:
            if self.id == "p1":
                message.append("p1")
                gates["changed"].set()
                return
            await gates["changed"].wait()
            seen.extend(message)

    class Sends(Executor):
        @handler
        async def send(self, message: str, context: WorkflowContext[list[str]]) -> None:
            await context.send_message([message])

    router, targets = Sends(id="r"), [Takes(id="p1"), Takes(id="p2")]
    workflow = WorkflowBuilder(start_executor=router).add_fan_out_edges(router, targets)
    told = await play(workflow.build())
    told.notes = seen
    return told


async def raw_state() -> Told:
    """S23: an executor commits the state object itself, then its superstep fails."""

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        if message == "a":
            context.set_state("half", message)
            context.state.commit()
            raise LookupError(message)
        await context.yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    try:
        await workflow.run("a")
    except LookupError as error:
        failed = type(error).__name__
    told = await play(workflow)
    told.notes.append(failed)
    return told


async def _side_by_side(first: Act, second: Act) -> Told:
    """Play two runs in which two executors work in one superstep."""

    async def send(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(message)

    router, targets = Does("r", send), [Does("p1", first), Does("p2", second)]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, targets)
        .build()
    )
    return tell(workflow, await workflow.run("a"))
