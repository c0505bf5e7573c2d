"""What the engine gets right: no rule may find anything here."""

from agent_framework import (
    InMemoryCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
)

from .executors import (
    Asks,
    AsksFirst,
    Does,
    Gates,
    Joins,
    SameObjects,
    Snapshots,
    one_executor,
)
from .playing import Told, play, tell


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


async def consumed_to_the_end() -> Told:
    """A stream is consumed to its end, then the next one."""
    gates = Gates()
    workflow = one_executor(gates)
    gates["a go"].set()
    gates["b go"].set()
    async for _ in workflow.run("a", stream=True):
        pass
    async with workflow.run("b", stream=True) as stream:
        async for _ in stream:
            pass
        return tell(workflow, await stream.get_final_response())


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


async def answered_request() -> Told:
    """A run waits for a human; another one brings the answer."""
    workflow = WorkflowBuilder(start_executor=Asks(id="asks")).build()
    result = await workflow.run("a")
    (request,) = result.get_request_info_events()
    return tell(workflow, await workflow.run(responses={request.request_id: "yes"}))


async def answered_half_of_a_fan_in() -> Told:
    """A fan-in has one half when a run waits for a human; the answer is the other."""

    async def send(message: str, context: WorkflowContext[str, str]) -> None:
        await context.send_message(f"{context._executor_id}:{message}")

    router, halves = Does("r", send), [Does("p1", send), AsksFirst(id="p2")]
    workflow = (
        WorkflowBuilder(start_executor=router)
        .add_fan_out_edges(router, halves)
        .add_fan_in_edges(halves, Joins(id="j"))
        .build()
    )
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
