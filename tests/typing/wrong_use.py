"""Wrong use that both type checkers must refuse: checked, never run.

Each `type: ignore` below is an expectation. Both checkers report one that suppresses
nothing, so a mistake that stops being noticed fails the check.
"""

from typing import Any

from tenure.runtime import (
    Case,
    Epoch,
    Executor,
    RunId,
    StateKey,
    StateSnapshot,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)

COUNT = StateKey[int]("count")


class Writer(Executor):
    @handler
    async def write(self, draft: str, ctx: WorkflowContext[str, bytes]) -> None:
        await ctx.send_message(42)  # type: ignore[arg-type]
        await ctx.send_message(draft, target=42)  # type: ignore[arg-type]
        await ctx.yield_output("text")  # type: ignore[arg-type]
        ctx.set_state(COUNT, "many")  # type: ignore[misc]
        ctx.set_state(42, "key")  # type: ignore[call-overload]
        ctx.epoch = Epoch(3)  # type: ignore[misc]
        ctx.kwargs["user"] = "ann"  # type: ignore[index]


class Asker(Executor):
    @response_handler  # type: ignore[type-var]
    async def without_answer(
        self, question: str, ctx: WorkflowContext[None, str]
    ) -> None: ...

    @response_handler
    async def decide(
        self, question: str, answer: bool, ctx: WorkflowContext[str, bytes]
    ) -> None:
        await ctx.request_info(question)  # type: ignore[call-arg]
        await ctx.send_message(answer)  # type: ignore[arg-type]
        await ctx.yield_output(question)  # type: ignore[arg-type]
        ctx.request_id = "r1"  # type: ignore[misc]


async def sends_nothing(draft: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.send_message(draft)  # type: ignore[arg-type]


async def a_context_of_less_will_not_do(ctx: WorkflowContext[str, str]) -> None:
    async def wide(ctx: WorkflowContext[str | int, str]) -> None: ...

    await wide(ctx)  # type: ignore[arg-type]


def a_context_is_made_by_the_engine_only() -> None:
    WorkflowContext[Any, Any]()  # type: ignore[abstract]


@executor  # type: ignore[arg-type]
async def without_context(draft: str) -> None: ...


@executor  # type: ignore[arg-type]
async def with_a_result(draft: str, ctx: WorkflowContext[None, str]) -> str:
    return draft


writer = Writer(id="writer")
builder = WorkflowBuilder("press", start=writer)
WorkflowBuilder("press")  # type: ignore[call-arg]
WorkflowBuilder("press", start=42)  # type: ignore[arg-type]
WorkflowBuilder("press", start=writer, on_conflict="queue")  # type: ignore[arg-type]
builder.add_edge(writer, 42)  # type: ignore[arg-type]
builder.add_edge(writer, writer, True)  # type: ignore[arg-type]
builder.add_switch(writer, [Case("yes", writer)])  # type: ignore[arg-type]
workflow = builder.build()


async def runs() -> None:
    workflow.run(responses=["yes"])  # type: ignore[arg-type]
    workflow.run(responses={1: "yes"})  # type: ignore[dict-item]
    workflow.run(checkpoint_id=3)  # type: ignore[arg-type]
    workflow.cancel_requests([3])  # type: ignore[list-item]
    await workflow.fork("c1")  # type: ignore[call-arg]
    WorkflowExecutor("press")  # type: ignore[arg-type]
    WorkflowExecutor(workflow, answer="yes")  # type: ignore[arg-type]
    workflow.run("hello", on_conflict="queue")  # type: ignore[arg-type]
    result = await workflow.run("hello")
    result.epoch = Epoch(3)  # type: ignore[misc]
    async with workflow.run("hello"):  # type: ignore[attr-defined]
        pass
    for _ in workflow.stream("hello"):  # type: ignore[attr-defined]
        pass


def ids_are_types(state: StateSnapshot) -> None:
    run_id: RunId = "r1"  # type: ignore[assignment]
    epoch: Epoch = 3  # type: ignore[assignment]
    state["key"] = 1  # type: ignore[index]
    WorkflowEvent(run_id, epoch)  # type: ignore[call-arg]
