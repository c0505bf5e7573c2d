"""tenure: what ownership, isolation and telemetry cost on top of bare asyncio."""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import Any

from harness import PAD, MemoryProbe, Peer, Prepared, Request, disk, main
from tracing import Tracing

from tenure.detectors import Detector, OwnershipSpanProcessor, Verdict
from tenure.instrumentation import Detail, Recorder
from tenure.runtime import (
    Executor,
    MemoryStore,
    OutputYielded,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

SAMPLES = 20
"""How often a case looks at its memory."""

FILL = -1
"""The message that has the state of an instance filled before it is measured."""


class Increment(Executor):
    """Adds one and sends the number on, until it is the last."""

    def __init__(self, name: str, last: int) -> None:
        super().__init__(name)
        self.last = last

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        number += 1
        if number < self.last:
            await ctx.send_message(number)
        else:
            await ctx.yield_output(number)


class ProbedIncrement(Increment):
    """The same, and takes note of the process's memory now and then."""

    def __init__(self, name: str, last: int, probe: MemoryProbe) -> None:
        super().__init__(name, last)
        self.probe = probe
        self.pace = max(last // SAMPLES, 1)

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number % self.pace == 0:
            self.probe.mark()
        await super().run(number, ctx)


def ping_pong(
    first: Executor, second: Executor, last: int, recorder: Recorder | None = None
) -> Workflow:
    """Let two executors send a number to and fro: the loop of a graph."""
    builder = WorkflowBuilder(
        "chain", start=first, max_supersteps=last + 10, recorder=recorder
    )
    return builder.add_edge(first, second).add_edge(second, first).build()


def straight(steps: int) -> Workflow:
    """Draw a chain of that many executors."""
    executors = [Increment(f"e{place}", steps) for place in range(steps)]
    builder = WorkflowBuilder("runs", start=executors[0])
    return builder.add_chain(executors).build() if steps > 1 else builder.build()


def chain(request: Request) -> Prepared:
    """Two executors that send a number to and fro."""
    last = request.n
    probe = MemoryProbe() if request.number("memory", 0) else None
    if probe is None:
        workflow = ping_pong(Increment("a", last), Increment("b", last), last)
    else:
        first, second = (ProbedIncrement(name, last, probe) for name in "ab")
        workflow = ping_pong(first, second, last)
    prepared = Prepared(
        go=_streamed(workflow) if request.number("stream", 0) else _awaited(workflow),
        units=last,
        check=lambda got: got == last,
        probe=probe,
    )
    return _listened(prepared) if request.number("listen", 0) else prepared


def _awaited(workflow: Workflow) -> Callable[[], Awaitable[Any]]:
    async def go() -> Any:
        return (await workflow.run(0)).outputs[0]

    return go


def _streamed(workflow: Workflow) -> Callable[[], Awaitable[Any]]:
    async def go() -> Any:
        output = None
        async with workflow.stream(0) as events:
            async for event in events:
                if isinstance(event, OutputYielded):
                    output = event.data
        return output

    return go


def _listened(prepared: Prepared) -> Prepared:
    """Let a detector listen, and hold it to its verdict."""
    detector = Detector()
    detector.listen()
    check = prepared.check
    prepared.check = lambda got: check(got) and detector.verdict is Verdict.CLEAN
    prepared.close = detector.close
    prepared.note = "a detector listens, no SDK"
    return prepared


class Source(Executor):
    """Sends on what it gets."""

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.send_message(number)


class Worker(Executor):
    """Adds its place."""

    def __init__(self, place: int) -> None:
        super().__init__(f"w{place}")
        self.place = place

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.send_message(number + self.place)


class Sum(Executor):
    """Adds up what all workers sent."""

    @handler
    async def run(self, numbers: list[int], ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(sum(numbers))


def fan(request: Request) -> Prepared:
    """One executor, many side by side, and one that takes all their answers."""
    width = request.workers
    source, total = Source("source"), Sum("sum")
    workers = [Worker(place) for place in range(width)]
    builder = WorkflowBuilder("fan", start=source)
    workflow = builder.add_fan_out(source, workers).add_fan_in(workers, total).build()

    async def go() -> tuple[int, ...]:
        outputs: tuple[int, ...] = ()
        for _ in range(request.n):
            outputs = (await workflow.run(1)).outputs
        return outputs

    right = (width + width * (width - 1) // 2,)
    return Prepared(go=go, units=request.n, check=lambda got: got == right, unit="run")


class WriteAndRead(Executor):
    """Writes every key, reads it back, and sends the number on."""

    def __init__(self, name: str, last: int, keys: list[str], held: int) -> None:
        super().__init__(name)
        self.last = last
        self.keys = keys
        self.held = held

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number == FILL:
            for place in range(self.held):
                ctx.set_state(f"k{place}", place)
            return
        for key in self.keys:
            ctx.set_state(key, number)
        total = sum(ctx.get_state(key) for key in self.keys)
        if number + 1 < self.last:
            await ctx.send_message(number + 1)
        else:
            await ctx.yield_output(total)


def state(request: Request) -> Prepared:
    """Two executors that write and read the same keys in turn."""
    last, held = request.n, request.number("held", 0)
    keys = [f"k{number}" for number in range(request.keys)]
    first, second = (WriteAndRead(name, last, keys, held) for name in "ab")
    workflow = ping_pong(first, second, last)

    async def fill() -> None:
        if held:
            await workflow.run(FILL)

    right = (last - 1) * len(keys)
    expected_keys = max(held, len(keys))
    return Prepared(
        go=_awaited(workflow),
        units=last,
        check=lambda got: got == right and len(workflow.state) == expected_keys,
        before=fill,
    )


def runs(request: Request) -> Prepared:
    """Runs of one instance, one after the other."""
    steps = request.steps
    workflow = straight(steps)
    probe = MemoryProbe() if request.number("memory", 0) else None
    pace = max(request.n // SAMPLES, 1)

    async def go() -> bool:
        right = True
        for number in range(request.n):
            if probe is not None and number % pace == 0:
                probe.mark()
            right = (await workflow.run(0)).outputs == (steps,) and right
        return right

    return Prepared(go=go, units=request.n, check=bool, unit="run", probe=probe)


def concurrent(request: Request) -> Prepared:
    """Runs of as many new instances, all at once; making them is in the time."""
    steps = request.steps
    workflow = straight(steps)
    numbers = itertools.count()

    async def one() -> Any:
        instance = workflow.instance(f"customer-{next(numbers)}")
        return (await instance.run(0)).outputs[0]

    async def go() -> list[Any]:
        return await asyncio.gather(*(one() for _ in range(request.n)))

    return Prepared(
        go=go,
        units=request.n,
        check=lambda got: got == [steps] * request.n,
        unit="run",
        note="a new instance for each run",
    )


def traced(request: Request) -> Prepared:
    """A chain whose operations become spans."""
    last = request.n
    detail = Detail(request.number("detail", Detail.EXECUTORS))
    tracing = Tracing()
    detector = Detector() if request.number("detect", 0) else None
    if detector is not None:
        tracing.add(OwnershipSpanProcessor(detector))
    recorder = Recorder(
        f"tenure/{version('tenure')}", detail=detail, tracer_provider=tracing.provider
    )
    workflow = ping_pong(Increment("a", last), Increment("b", last), last, recorder)
    return Prepared(
        go=_awaited(workflow),
        units=last,
        check=lambda got: (
            got == last and (detector is None or detector.verdict is Verdict.CLEAN)
        ),
        note=f"{int(detail)} spans a superstep",
        after=tracing.flush,
        close=tracing.close,
        spans=tracing.count,
        # Besides them, `run` and `own`.
        expected_spans=int(detail) * last + 2,
    )


class Saving(Increment):
    """The same, and sets a state of 1 KB in every superstep."""

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        ctx.set_state("pad", "x" * PAD)
        await super().run(number, ctx)


def checkpoint(request: Request) -> Prepared:
    """A chain whose supersteps are saved in a store."""
    last = request.n
    directory = tempfile.TemporaryDirectory(dir=disk())
    store: Store
    if request.number("memory", 0):
        store = MemoryStore()
    else:
        store = SqliteStore(
            directory.name, blocking=bool(request.number("blocking", 0))
        )
    first, second = Saving("a", last), Saving("b", last)
    builder = WorkflowBuilder("saved", start=first, max_supersteps=last, store=store)
    workflow = builder.add_edge(first, second).add_edge(second, first).build()
    rounds = itertools.count(1)

    async def go() -> bool:
        result = await workflow.run(0)
        return result.outputs == (last,) and result.epoch == next(rounds)

    return Prepared(
        go=go,
        units=last,
        check=bool,
        close=directory.cleanup,
        note="the entry of the run is saved too",
    )


PEER = Peer(
    "tenure",
    "tenure",
    {
        "chain": chain,
        "fan": fan,
        "state": state,
        "runs": runs,
        "concurrent": concurrent,
        "traced": traced,
        "checkpoint": checkpoint,
    },
    {
        "stream": "chain: 1 reads the events of the run as they happen",
        "listen": "chain: 1 lets a detector listen, without an SDK",
        "held": "state: keys that the instance holds before (0)",
        "detail": "traced: 1 ownership, 2 supersteps too, 3 executors too (3)",
        "detect": "traced: 1 adds a detector as a span processor",
        "memory": "chain, runs: 1 samples the resident memory meanwhile; "
        "checkpoint: 1 keeps it in memory",
        "blocking": "checkpoint: 1 lets the event loop wait for the disk",
    },
)

if __name__ == "__main__":
    sys.exit(main(PEER))
