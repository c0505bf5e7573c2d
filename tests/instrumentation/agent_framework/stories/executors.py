"""Executors that do what a story says, and workflows that many stories share."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
    response_handler,
)

Act = Callable[[str, WorkflowContext[str, str]], Awaitable[None]]


class Does(Executor):
    """An executor that does what the story says."""

    def __init__(self, name: str, act: Act) -> None:
        super().__init__(id=name)
        self.act = act

    @handler
    async def handle(self, message: str, context: WorkflowContext[str, str]) -> None:
        await self.act(message, context)


class Joins(Executor):
    """A fan-in target that outputs all that it gets."""

    @handler
    async def join(
        self, messages: list[str], context: WorkflowContext[str, str]
    ) -> None:
        await context.yield_output(",".join(messages))


class Gates:
    """Named events: `passed` says that a point was reached, `open` lets it go on."""

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}

    def __getitem__(self, name: str) -> asyncio.Event:
        return self._events.setdefault(name, asyncio.Event())


class SameObjects(InMemoryCheckpointStorage):
    """A storage that hands out the very checkpoint that it was given."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self._checkpoints[checkpoint.checkpoint_id] = checkpoint
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return self._checkpoints[checkpoint_id]


class Asks(Executor):
    """An executor that asks a human and outputs the answer."""

    @handler
    async def ask(self, message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("asked", message)
        await context.request_info(message, str)

    @response_handler
    async def answered(
        self, original: str, answer: str, context: WorkflowContext[str, str]
    ) -> None:
        await context.yield_output(f"{original}:{answer}")


class AsksFirst(Executor):
    """An executor that asks a human and sends the answer on."""

    @handler
    async def ask(self, message: str, context: WorkflowContext[str]) -> None:
        await context.request_info(message, str)

    @response_handler
    async def answered(
        self, original: str, answer: str, context: WorkflowContext[str]
    ) -> None:
        await context.send_message(f"{self.id}:{answer}")


class Snapshots(Executor):
    """An executor whose snapshot names the run, and whose save can be held up."""

    def __init__(self, name: str, gates: Gates, act: Act) -> None:
        super().__init__(id=name)
        self.gates, self.act = gates, act
        self.run = ""
        self.held = self.broken = False

    @handler
    async def handle(self, message: str, context: WorkflowContext[str, str]) -> None:
        await self.act(message, context)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        if self.broken:
            raise LookupError(self.id)
        if self.held:
            self.gates["saving"].set()
            await self.gates["save"].wait()
        return {"run": self.run}


def one_executor(gates: Gates) -> Workflow:
    """An executor that stages `<run>_key` and waits to be let go."""

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", message)
        gates[f"{message} staged"].set()
        await gates[f"{message} go"].wait()
        await context.yield_output(message)

    return WorkflowBuilder(start_executor=Does("one", act)).build()


def routed(*targets: Executor) -> WorkflowBuilder:
    """Build a router that sends `a…` to the first target and `b…` to the second."""

    async def route(message: str, context: WorkflowContext[str, str]) -> None:
        target = targets[0] if message.startswith("a") else targets[1]
        await context.send_message(message, target_id=target.id)

    router = Does("r", route)
    return WorkflowBuilder(start_executor=router).add_fan_out_edges(
        router, list(targets)
    )
