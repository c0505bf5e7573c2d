"""A process that runs a workflow on a directory of instances, as it is told.

    worker.py DIRECTORY

Each line of its input is a command, and each line of its output a JSON object. Commands
are carried out side by side; `run` and `resume` take a policy for conflicts last.

    run MESSAGE POLICY       what `Desk` does for the message; says how it ended
    answer REQUEST POLICY    answers a request with yes
    withdraw REQUEST POLICY
    resume POLICY
    die                      runs `hold`, and is killed when that has started
    count TIMES POLICY       runs `count` so often, one after the other
    release                  lets those who hold go on
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from tenure.runtime import (
    Executor,
    RunResult,
    RunStarted,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowError,
    executor,
    handler,
    response_handler,
)


def say(**facts: Any) -> None:
    sys.stdout.write(f"{json.dumps(facts)}\n")
    sys.stdout.flush()


class Desk(Executor):
    """Counts what it does, and has it published."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.released = asyncio.Event()

    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        count = ctx.get_state("count", 0)
        if message == "ask":
            await ctx.request_info("may I?", bool)
            return
        if message == "hold":
            say(said="holding", epoch=int(ctx.epoch))
            await self.released.wait()
        ctx.set_state("count", count + 1)
        await ctx.send_message(message)

    @response_handler
    async def answered(
        self, question: str, answer: bool, ctx: WorkflowContext[str, str]
    ) -> None:
        ctx.set_state("count", ctx.get_state("count", 0) + 1)
        await ctx.send_message("answered")


def publisher(directory: Path) -> Executor:
    @executor
    async def publish(message: str, ctx: WorkflowContext[None, str]) -> None:
        with (directory / "published").open("a") as file:
            file.write(f"{message} {ctx.idempotency_key}\n")
        await ctx.yield_output(message)

    return publish


def drawn(directory: Path, store: SqliteStore, desk: Executor) -> Workflow:
    builder = WorkflowBuilder("office", start=desk, store=store)
    return builder.add_edge(desk, publisher(directory)).build()


async def ended(handle: Awaitable[RunResult]) -> None:
    try:
        result = await handle
    except WorkflowError as error:
        say(refused=type(error).__name__)
    else:
        requests = [one.request_id for one in result.pending_requests]
        say(done=list(result.outputs), epoch=int(result.epoch), requests=requests)


async def die_once_started(workflow: Workflow) -> None:
    """Be killed when a run is said to have started, in its first superstep."""
    async for event in workflow.stream("hold"):
        if isinstance(event, RunStarted):
            os.kill(os.getpid(), signal.SIGKILL)


async def carry_out(workflow: Workflow, words: list[str]) -> None:
    policy: Any = words[-1]
    match words:
        case ["die"]:
            await die_once_started(workflow)
        case ["run", message, _]:
            await ended(workflow.run(message, on_conflict=policy))
        case ["answer", request, _]:
            await ended(workflow.run(responses={request: True}, on_conflict=policy))
        case ["withdraw", request, _]:
            await ended(workflow.cancel_requests([request], on_conflict=policy))
        case ["resume", _]:
            await ended(workflow.resume(on_conflict=policy))
        case ["count", times, _]:
            for _ in range(int(times)):
                await workflow.run("count", on_conflict=policy)
            say(counted=int(times))


async def main(directory: Path) -> None:
    desk = Desk()
    async with SqliteStore(directory) as store, asyncio.TaskGroup() as group:
        workflow = drawn(directory, store, desk)
        say(said="ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            if line.strip() == "release":
                desk.released.set()
            else:
                group.create_task(carry_out(workflow, line.split()))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
