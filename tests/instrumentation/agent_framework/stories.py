"""Stories that agent-framework gets wrong, or right, on the real engine.

Each is a coroutine function that plays two runs, `a` and `b`, on one workflow and says
what was left: the committed state, what `b` gave to its consumer, the status. A story
knows nothing of the instrumentor, so that it can be played with and without it.
"""

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from agent_framework import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from agent_framework.exceptions import WorkflowException

DISCARDS = tuple(map(int, version("agent-framework-core").split(".")[:2])) >= (1, 22)
"""Whether the installed engine discards what an uncommitted superstep has staged."""

Act = Callable[[str, WorkflowContext[str, str]], Awaitable[None]]


@dataclass
class Told:
    """What a story leaves.

    Attributes:
        state: Committed user state.
        outputs: What the last run output.
        status: Final status of the last run; empty where it raised.
        events: Types and executors of the last run's events, in order.
        notes: Whatever else the story saw, such as what an executor received.
        checkpoints: The `_executor_state` of each checkpoint of the last run, in order.
    """

    state: dict[str, Any]
    outputs: list[Any] = field(default_factory=list)
    status: str = ""
    events: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)


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


async def turns(count: int) -> None:
    """Let the loop turn `count` times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def forever() -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


def committed(workflow: Workflow) -> dict[str, Any]:
    """Return the committed user state of a workflow."""
    state = workflow._runner.state.export_state()
    return {key: value for key, value in state.items() if not key.startswith("_")}


def routed(*targets: Executor) -> WorkflowBuilder:
    """Build a router that sends `a…` to the first target and `b…` to the second."""

    async def route(message: str, context: WorkflowContext[str, str]) -> None:
        target = targets[0] if message.startswith("a") else targets[1]
        await context.send_message(message, target_id=target.id)

    router = Does("r", route)
    return WorkflowBuilder(start_executor=router).add_fan_out_edges(
        router, list(targets)
    )


async def abandon(
    workflow: Workflow, at: str = "executor_invoked", by: str | None = None, **how: Any
) -> None:
    """Start run `a`, leave its stream at the first event `at`, and drop it."""
    stream = workflow.run("a", stream=True, **how)
    async for event in stream:
        if event.type == at and by in {None, event.executor_id}:
            break
    del stream, event
    gc.collect()


async def play(workflow: Workflow, message: str = "b", **how: Any) -> Told:
    """Play a run to its end and say what it left."""
    result = await workflow.run(message, **how)
    return tell(workflow, result)


def tell(workflow: Workflow, result: Any) -> Told:
    """Say what a run left."""
    return Told(
        committed(workflow),
        result.get_outputs(),
        result.get_final_state().value,
        [f"{event.type}:{event.executor_id or ''}" for event in result],
    )


async def settled(story: Awaitable[Told]) -> Told:
    """Await a story, and the cleanup of whatever it has left behind."""
    told = await story
    await turns(80)
    return told


# Runs that are abandoned.


def one_executor(gates: Gates) -> Workflow:
    """An executor that stages `<run>_key` and waits to be let go."""

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", message)
        gates[f"{message} staged"].set()
        await gates[f"{message} go"].wait()
        await context.yield_output(message)

    return WorkflowBuilder(start_executor=Does("one", act)).build()


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


async def failed_superstep(ending: str = "raises") -> Told:
    """S3: a superstep that fails, times out or is closed leaves nothing."""
    gates = Gates()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
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
        seen.append(context.get_state("a_cleanup"))
        gates["b has read"].set()
        await turns(20)
        await context.yield_output(message)

    workflow = routed(Does("wa", left), Does("wb", right)).build()
    await abandon(workflow, by="wa")
    told = await play(workflow)
    told.notes = seen
    return told


# Runs that nobody abandons.


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


async def thread_write() -> Told:
    """S14: a thread outlives its run and stages while the next one runs."""
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


# What the engine gets right.


async def chain() -> Told:
    """Two runs of a chain of three, one after the other."""

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("count", context.get_state("count", 0) + 1)
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state(f"{message}_key", context.get_state("count"))
        await context.yield_output(message)

    first, second, third = Does("x", forward), Does("y", forward), Does("z", last)
    workflow = WorkflowBuilder(start_executor=first).add_chain([first, second, third])
    built = workflow.build()
    await built.run("a")
    return await play(built)


async def resumed_from_a_checkpoint() -> Told:
    """A run is restored from the first checkpoint of an earlier one on its instance."""
    storage, gates = InMemoryCheckpointStorage(), Gates()

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("x", message)
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(message)

    first, second = Snapshots("x", gates, forward), Snapshots("y", gates, last)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    await workflow.run("a", checkpoint_storage=storage)
    kept = await storage.list_checkpoints(workflow_name=workflow.name)
    entry = min(kept, key=lambda checkpoint: checkpoint.iteration_count)
    result = await workflow.run(
        checkpoint_id=entry.checkpoint_id, checkpoint_storage=storage
    )
    return tell(workflow, result)


class SameObjects(InMemoryCheckpointStorage):
    """A storage that hands out the very checkpoint that it was given."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self._checkpoints[checkpoint.checkpoint_id] = checkpoint
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        return self._checkpoints[checkpoint_id]


async def resumed_in_flight() -> Told:
    """A run is restored with the messages that an earlier one had in flight."""
    storage, gates = SameObjects(), Gates()

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(message)

    async def last(message: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(message)

    first, second = Snapshots("x", gates, forward), Snapshots("y", gates, last)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    await workflow.run("a", checkpoint_storage=storage)
    (kept,) = [one for one in storage._checkpoints.values() if one.messages.get("x")]
    result = await workflow.run(
        checkpoint_id=kept.checkpoint_id, checkpoint_storage=storage
    )
    return tell(workflow, result)


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


async def answered_request() -> Told:
    """A run waits for a human; another one brings the answer."""
    workflow = WorkflowBuilder(start_executor=Asks(id="asks")).build()
    result = await workflow.run("a")
    (request,) = result.get_request_info_events()
    return tell(workflow, await workflow.run(responses={request.request_id: "yes"}))


async def cancelled_request() -> Told:
    """A run waits for a human; its request is cancelled."""
    workflow = WorkflowBuilder(start_executor=Asks(id="asks")).build()
    result = await workflow.run("a")
    (request,) = result.get_request_info_events()
    return tell(workflow, await workflow.cancel_pending_requests([request.request_id]))


async def fan_in_across_supersteps() -> Told:
    """A fan-in waits for a slower branch while a checkpoint is taken."""
    storage = InMemoryCheckpointStorage()

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(f"{context._executor_id}:{message}")

    router, slow = Does("r", forward), Does("m", forward)
    halves = [Does("p1", forward), Does("p2", forward)]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, [halves[0], slow])
        .add_edge(slow, halves[1])
        .add_fan_in_edges(halves, Joins(id="j"))
        .build()
    )
    await workflow.run("a", checkpoint_storage=storage)
    return await play(workflow, checkpoint_storage=storage)


async def own_commit() -> Told:
    """An executor commits the state object itself, in the middle of its superstep."""

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("early", message)
        context.state.commit()
        context.set_state("dropped", message)
        context.state.discard()
        context.set_state("late", message)
        await context.yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    return await play(workflow)


async def sub_workflow() -> Told:
    """A workflow inside another, twice."""

    async def inner(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("inner", message)
        await context.yield_output(message.upper())

    async def outer(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("outer", message)
        await context.yield_output(message)

    child = WorkflowBuilder(start_executor=Does("in", inner)).build()
    nested, last = WorkflowExecutor(child, id="nested"), Does("out", outer)
    workflow = WorkflowBuilder(start_executor=nested).add_edge(nested, last).build()
    storage = InMemoryCheckpointStorage()
    await workflow.run("a", checkpoint_storage=storage)
    return await play(workflow, checkpoint_storage=storage)


async def never_iterated() -> Told:
    """A stream that nobody iterates is dropped before the next run."""
    gates = Gates()
    workflow = one_executor(gates)
    stream = workflow.run("a", stream=True)
    del stream
    gates["b go"].set()
    return await play(workflow)


async def left_at_the_end() -> Told:
    """A consumer that leaves at the last event has seen a finished run."""
    gates = Gates()
    workflow = one_executor(gates)
    gates["a go"].set()
    gates["b go"].set()
    stream = workflow.run("a", stream=True)
    async for event in stream:
        if event.type == "status" and event.state.value == "IDLE":
            break
    del stream, event
    return await play(workflow)
