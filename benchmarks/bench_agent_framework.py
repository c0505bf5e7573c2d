"""agent-framework: an engine with the same superstep model, for comparison.

Its telemetry is off. It gets no checkpoint storage and no streaming, as the others.
"""

import asyncio
import importlib.util
import logging
import sys
from typing import Any

from harness import Peer, Prepared, Request, main, unsupported

NAME = "agent-framework"

if importlib.util.find_spec("agent_framework") is None:
    print(unsupported(NAME, "agent-framework-core is not installed"))
    sys.exit(0)

# Ahead of the import, which already logs.
logging.getLogger("agent_framework").setLevel(logging.ERROR)

from agent_framework import (  # noqa: E402
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)


class Increment(Executor):
    """Adds one and sends the number on, until it is the last."""

    def __init__(self, name: str, last: int) -> None:
        super().__init__(id=name)
        self.last = last

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        number += 1
        if number < self.last:
            await ctx.send_message(number)
        else:
            await ctx.yield_output(number)


def ping_pong(first: Executor, second: Executor, last: int) -> Workflow:
    """Let two executors send a number to and fro: the loop of a graph."""
    builder = WorkflowBuilder(
        start_executor=first, output_from="all", max_iterations=last + 10
    )
    return builder.add_edge(first, second).add_edge(second, first).build()


def chain(request: Request) -> Prepared:
    """Two executors that send a number to and fro."""
    last = request.n
    workflow = ping_pong(Increment("a", last), Increment("b", last), last)

    async def go() -> Any:
        return (await workflow.run(0)).get_outputs()[0]

    return Prepared(go=go, units=last, check=lambda got: got == last)


class Source(Executor):
    """Sends on what it gets."""

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)


class Worker(Executor):
    """Adds its place."""

    def __init__(self, place: int) -> None:
        super().__init__(id=f"w{place}")
        self.place = place

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number + self.place)


class Sum(Executor):
    """Adds up what all workers sent."""

    @handler
    async def run(self, numbers: list[int], ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(sum(numbers))


def fan(request: Request) -> Prepared:
    """One executor, many side by side, and one that takes all their answers."""
    width = request.workers
    source, total = Source(id="source"), Sum(id="sum")
    workers = [Worker(place) for place in range(width)]
    builder = WorkflowBuilder(start_executor=source, output_from="all")
    workflow = (
        builder
        .add_fan_out_edges(source, workers)
        .add_fan_in_edges(workers, total)
        .build()
    )

    async def go() -> list[int]:
        outputs: list[int] = []
        for _ in range(request.n):
            outputs = (await workflow.run(1)).get_outputs()
        return outputs

    right = [width + width * (width - 1) // 2]
    return Prepared(go=go, units=request.n, check=lambda got: got == right, unit="run")


class WriteAndRead(Executor):
    """Writes every key, reads it back, and sends the number on."""

    def __init__(self, name: str, last: int, keys: list[str]) -> None:
        super().__init__(id=name)
        self.last = last
        self.keys = keys

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        for key in self.keys:
            ctx.set_state(key, number)
        total = sum(ctx.get_state(key) for key in self.keys)
        if number + 1 < self.last:
            await ctx.send_message(number + 1)
        else:
            await ctx.yield_output(total)


def state(request: Request) -> Prepared:
    """Two executors that write and read the same keys in turn."""
    last = request.n
    keys = [f"k{number}" for number in range(request.keys)]
    first, second = (WriteAndRead(name, last, keys) for name in "ab")
    workflow = ping_pong(first, second, last)

    async def go() -> Any:
        return (await workflow.run(0)).get_outputs()[0]

    right = (last - 1) * len(keys)
    return Prepared(go=go, units=last, check=lambda got: got == right)


def straight(steps: int) -> Workflow:
    """Draw a chain of that many executors."""
    executors = [Increment(f"e{place}", steps) for place in range(steps)]
    builder = WorkflowBuilder(start_executor=executors[0], output_from="all")
    return builder.add_chain(executors).build() if steps > 1 else builder.build()


def runs(request: Request) -> Prepared:
    """Runs of one workflow, one after the other."""
    steps = request.steps
    workflow = straight(steps)

    async def go() -> bool:
        right = True
        for _ in range(request.n):
            right = (await workflow.run(0)).get_outputs() == [steps] and right
        return right

    return Prepared(go=go, units=request.n, check=bool, unit="run")


def concurrent(request: Request) -> Prepared:
    """Runs of as many workflows, all at once; making them is not in the time."""
    steps = request.steps
    workflows = [straight(steps) for _ in range(request.n)]

    async def one(workflow: Workflow) -> Any:
        return (await workflow.run(0)).get_outputs()[0]

    async def go() -> list[Any]:
        return await asyncio.gather(*map(one, workflows))

    return Prepared(
        go=go,
        units=request.n,
        check=lambda got: got == [steps] * request.n,
        unit="run",
        note="a workflow for each run, made before",
    )


PEER = Peer(
    NAME,
    "agent-framework-core",
    {
        "chain": chain,
        "fan": fan,
        "state": state,
        "runs": runs,
        "concurrent": concurrent,
    },
)

if __name__ == "__main__":
    sys.exit(main(PEER))
