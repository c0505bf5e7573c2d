"""agent-framework: an engine with the same superstep model, for comparison.

Its telemetry is off. It gets no checkpoint storage and no streaming, as the others.
Any case can be measured under tenure's instrumentor, with and without a detector.
"""

import asyncio
import importlib.util
import logging
import sys
from collections.abc import Callable
from typing import Any

from harness import (
    Case,
    Peer,
    Prepared,
    Request,
    UnsupportedError,
    main,
    unsupported,
)

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


def watched(case: Case) -> Case:
    """Let a case be measured under the instrumentor too."""

    def prepare(request: Request) -> Prepared:
        listening = request.number("listen", 0)
        if not (listening or request.number("instrumented", 0)):
            return case(request)
        stop = instrument()
        prepared = case(request)
        if not listening:
            prepared.close = stop
            prepared.note = "instrumented, nobody listens"
            return prepared
        return listened(prepared, stop)

    return prepare


def instrument() -> Callable[[], object]:
    """Put the instrumentor in; return what takes it away."""
    try:
        from tenure.instrumentation.agent_framework import (
            AgentFrameworkInstrumentor,
        )
    except ImportError as exc:
        raise UnsupportedError(f"the instrumentor cannot be loaded: {exc}") from None
    instrumentor = AgentFrameworkInstrumentor()
    instrumentor.instrument()
    return instrumentor.uninstrument


def listened(prepared: Prepared, stop: Callable[[], object]) -> Prepared:
    """Let a detector listen, and hold it to its verdict."""
    from tenure.detectors import Detector, Verdict

    detector = Detector(announce=()).listen()
    check = prepared.check

    def close() -> None:
        detector.close()
        stop()

    prepared.check = lambda got: check(got) and detector.verdict is Verdict.CLEAN
    prepared.close = close
    prepared.note = "instrumented, a detector listens, no SDK"
    return prepared


PEER = Peer(
    NAME,
    "agent-framework-core",
    {
        "chain": watched(chain),
        "fan": watched(fan),
        "state": watched(state),
        "runs": watched(runs),
        "concurrent": watched(concurrent),
    },
    {
        "instrumented": "1 puts tenure's instrumentor in, while nobody listens",
        "listen": "1 puts it in and lets a detector listen, without an SDK",
    },
)

if __name__ == "__main__":
    sys.exit(main(PEER))
