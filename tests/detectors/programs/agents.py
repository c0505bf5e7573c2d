"""A program on agent-framework that loses what a run has written.

The tests of zero code and of the pytest plugin run it in processes of their own: it
imports the engine, as its users do, and nothing of tenure.
"""

import asyncio
import gc

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler


class Writer(Executor):
    """Stages `<message>_key`, and goes on when it is let."""

    def __init__(self) -> None:
        super().__init__(id="writer")
        self.staged, self.go = asyncio.Event(), asyncio.Event()

    @handler
    async def write(self, message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", message)
        if message == "b":
            self.staged.set()
        await self.go.wait()
        await context.yield_output(message)


async def abandon(workflow) -> None:
    """Start run `a`, and drop its stream at the first step of an executor."""
    stream = workflow.run("a", stream=True)
    async for event in stream:
        if event.type == "executor_invoked":
            break
    del stream, event
    gc.collect()


async def lost_write() -> None:
    """The abandoned run's finalizer throws away what its successor has staged."""
    writer = Writer()
    workflow = WorkflowBuilder(start_executor=writer).build()
    await abandon(workflow)
    successor = asyncio.ensure_future(workflow.run("b"))
    await writer.staged.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    writer.go.set()
    await successor


async def clean() -> None:
    """Two runs, one after the other."""
    writer = Writer()
    writer.go.set()
    workflow = WorkflowBuilder(start_executor=writer).build()
    await workflow.run("a")
    await workflow.run("b")


if __name__ == "__main__":
    asyncio.run(lost_write())
