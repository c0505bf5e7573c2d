"""The public face as its users write it: checked by mypy and pyright, never run."""

from collections.abc import Mapping
from typing import Any, Literal, assert_type

from tenure.runtime import (
    Case,
    CheckpointInfo,
    ConflictPolicy,
    Epoch,
    Executor,
    FunctionExecutor,
    Instance,
    MemoryStore,
    Outcome,
    OutputYielded,
    PendingRequest,
    Retry,
    RunHandle,
    RunId,
    RunResult,
    RunStream,
    SqliteStore,
    StateKey,
    StateSnapshot,
    Store,
    SubworkflowEvent,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    append,
    executor,
    handler,
    last,
    response_handler,
)

HISTORY: StateKey[list[str]] = StateKey("history", reduce=append)
LATEST = StateKey[str]("latest", reduce=last)
COUNT = StateKey[int]("count")


class Writer(Executor):
    @handler
    async def write(self, draft: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("draft", draft)
        ctx.set_state(HISTORY, [draft])
        await ctx.send_message(draft.upper())

    @handler
    def revise(self, draft: bytes, ctx: WorkflowContext[str, str]) -> None:
        ctx.send_message(draft.decode(), target="publish")


@executor
async def publish(text: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(text)


@executor(id="archive")
def archive(text: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.yield_output(text)


@executor
async def collect(texts: list[str], ctx: WorkflowContext[None, list[str]]) -> None:
    await ctx.yield_output(texts)


def make_writer() -> Executor:
    return Writer()


def long(text: str) -> bool:
    return len(text) > 80


def select(text: str, targets: tuple[str, ...]) -> list[str]:
    return [target for target in targets if target in text]


writer = Writer(id="writer")
policy: ConflictPolicy = "wait"
workflow = (
    WorkflowBuilder("press", start=writer, max_supersteps=10, on_conflict=policy)
    .add_edge(writer, publish)
    .add_edge(writer, archive, long)
    .add_fan_out(writer, [publish, "archive", Writer, make_writer], select)
    .add_fan_in([publish, archive], collect)
    .add_switch(writer, [Case(long, publish), Case(long, "archive")], default=archive)
    .add_chain([writer, publish, archive])
    .build()
)

assert_type(workflow, Workflow)
assert_type(publish, FunctionExecutor[str, None, str])
assert_type(archive, FunctionExecutor[str, None, str])


async def a_run_gives_a_result() -> None:
    handle = workflow.run("hello", on_conflict="supersede", user="ann")
    assert_type(handle, RunHandle)
    result = await handle
    assert_type(result, RunResult)
    assert_type(result.outputs, tuple[Any, ...])
    assert_type(result.outcome, Outcome)
    assert_type(result.run_id, RunId)
    assert_type(result.epoch, Epoch)
    assert_type(result.events, tuple[WorkflowEvent, ...])
    assert_type(result.pending_requests, tuple[PendingRequest, ...])


async def a_stream_gives_events() -> None:
    async with workflow.stream("hello", buffer=8, stall_after=1.5) as events:
        assert_type(events, RunStream)
        async for event in events:
            assert_type(event, WorkflowEvent)
            if isinstance(event, OutputYielded):
                assert_type(event.superstep, int)
    assert_type(events.result(), RunResult)
    async for event in workflow.stream("hello"):
        assert_type(event.seq, int)
        break


async def an_instance_has_the_same_methods() -> None:
    customer = workflow.instance("customer-42")
    assert_type(customer, Instance)
    assert_type(await customer.run("hello"), RunResult)
    assert_type(customer.state, StateSnapshot)
    state: Mapping[str, Any] = workflow.state
    assert "draft" in state


async def what_goes_says_how_much_or_is_a_run() -> None:
    assert_type(await workflow.prune(keep=3), int)
    assert_type(await workflow.instance("c42").prune(keep=3), int)
    assert_type(workflow.erase(on_conflict="wait"), RunHandle)
    assert_type(await workflow.instance("c42").erase(), RunResult)
    stores: list[Store] = [MemoryStore(), SqliteStore("runs", keep=100)]
    assert stores


class Form:
    name: str


class Asker(Executor):
    @handler
    async def ask(self, draft: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(draft, bool)
        await ctx.request_info(draft, bool | None)
        await ctx.request_info(draft, list[Form])
        await ctx.request_info(draft, dict[str, list[Form | None]])
        await ctx.request_info(draft, Literal["yes", "no"])
        await ctx.request_info(draft, None)

    @response_handler
    async def decide(
        self, question: str, answer: bool | Form, ctx: WorkflowContext[None, str]
    ) -> None:
        assert_type(ctx.request_id, str | None)
        await ctx.yield_output(question)

    @response_handler
    def listen(
        self, question: bytes, answer: list[Form], ctx: WorkflowContext[None, str]
    ) -> None:
        ctx.yield_output(answer[0].name)


async def requests_are_answered_and_withdrawn() -> None:
    result = await workflow.run("hello")
    for request in result.pending_requests:
        assert_type(request, PendingRequest)
        assert_type(request.request_id, str)
        assert_type(request.executor_id, str)
        assert_type(request.data, Any)
    answers = {request.request_id: True for request in workflow.pending_requests}
    assert_type(await workflow.run(responses=answers, tenant="acme"), RunResult)
    assert_type(workflow.stream(responses=answers), RunStream)
    assert_type(await workflow.cancel_requests(answers), RunResult)
    assert_type(await workflow.cancel_requests("r1"), RunResult)


async def checkpoints_are_gone_back_to() -> None:
    assert_type(await workflow.resume(deadline=3), RunResult)
    [newest, *_] = await workflow.history()
    assert_type(newest, CheckpointInfo)
    assert_type(await workflow.run(checkpoint_id=newest.checkpoint_id), RunResult)
    assert_type(await workflow.fork(None, "twin"), Instance)
    assert_type(await workflow.refresh(), StateSnapshot)


async def answer(question: str) -> bool | None:
    return question == "yes?" or None


inner = WorkflowExecutor(workflow, "inner", answer=answer, retry=Retry(2), timeout=3)
outer = WorkflowBuilder("outer", start=inner, store=MemoryStore()).build()


def events_of_a_sub_workflow_have_a_path(event: WorkflowEvent) -> None:
    if isinstance(event, SubworkflowEvent):
        assert_type(event.path, tuple[str, ...])
        assert_type(event.event, WorkflowEvent)


async def keys_carry_the_type_of_their_value(ctx: WorkflowContext[str, str]) -> None:
    assert_type(ctx.get_state(HISTORY), list[str] | None)
    assert_type(ctx.get_state(HISTORY, []), list[str])
    assert_type(ctx.get_state(COUNT, 0), int)
    assert_type(ctx.get_state(COUNT, "none"), int | str)
    assert_type(ctx.get_state("anything"), Any)
    ctx.set_state(COUNT, 1)
    ctx.set_state(LATEST, "text")
    ctx.set_state("anything", object())
    ctx.delete_state(COUNT)


async def a_context_of_more_will_do_where_less_is_sent(
    wide: WorkflowContext[str | int, object],
) -> None:
    async def narrow(ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message("text")

    await narrow(wide)
