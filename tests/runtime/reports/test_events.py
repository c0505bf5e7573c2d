"""Events: they come when it happens, and say who it was."""

import asyncio

import pytest

from tenure.runtime import (
    Executor,
    ExecutorCompleted,
    ExecutorError,
    ExecutorFailed,
    ExecutorInvoked,
    OutputYielded,
    Retry,
    RunEnded,
    RunFailed,
    RunStarted,
    SubworkflowEvent,
    SuperstepStarted,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    executor,
    handler,
)


class Reporter(Executor):
    """Reports its progress in steps, each of which has to be let."""

    def __init__(self) -> None:
        super().__init__("reporter")
        self.steps = [asyncio.Event() for _ in range(3)]
        self.ended = False

    @handler
    async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        for number, step in enumerate(self.steps, 1):
            await ctx.yield_output(f"{message} {number}")
            await step.wait()
        self.ended = True


async def test_progress_of_the_start_executor_arrives_while_it_works() -> None:
    """microsoft/agent-framework#6079: a stream was silent, then told all at once.

    What the start executor yielded waited in a queue until it had returned.

    Right: each event is there when it happens, whichever executor it comes from.
    """
    reporter = Reporter()
    stream = WorkflowBuilder("w", start=reporter).build().stream("a")
    seen = [type(await anext(stream)) for _ in range(3)]
    assert seen == [RunStarted, SuperstepStarted, ExecutorInvoked]
    for number, step in enumerate(reporter.steps, 1):
        event = await anext(stream)
        assert isinstance(event, OutputYielded)
        assert event.data == f"a {number}"
        assert not reporter.ended
        step.set()
    rest = [type(event) async for event in stream]
    assert rest[0] is ExecutorCompleted
    assert rest[-1] is RunEnded


@executor
async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
    if message == "start":
        raise RuntimeError("start fails")
    await ctx.send_message(message)


@executor
async def good(message: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(message)


@executor(retry=Retry(attempts=2, wait=0.0))
async def bad(message: str, ctx: WorkflowContext[None, str]) -> None:
    raise RuntimeError("bad fails")


@executor
def thread(message: str, ctx: WorkflowContext[None, str]) -> None:
    raise RuntimeError("thread fails")


async def told(workflow: Workflow, message: str) -> list[WorkflowEvent]:
    found: list[WorkflowEvent] = []
    with pytest.raises(ExecutorError):
        async for event in workflow.stream(message):
            found.append(event)  # noqa: PERF401 - the loop raises
    return found


@pytest.mark.parametrize("who", ["start", "bad", "thread"])
async def test_the_executor_that_failed_is_named_before_the_run_is_said_to_have_failed(
    who: str,
) -> None:
    """microsoft/agent-framework#2508: a failed run did not say which executor it was.

    The event was queued, and the queue was never emptied when the start executor failed
    (microsoft/agent-framework#2537).

    Right: `ExecutorFailed` names it, wherever it is in the graph, and `RunFailed` ends.
    """
    siblings = {"start": [good], "bad": [good, bad], "thread": [thread, good]}[who]
    workflow = WorkflowBuilder("w", start=start).add_fan_out(start, siblings).build()
    events = await told(workflow, who)
    failed, last = events[-2:]
    assert isinstance(failed, ExecutorFailed)
    assert isinstance(last, RunFailed)
    assert (failed.executor_id, str(failed.error)) == (who, f"{who} fails")
    assert failed.superstep == (1 if who == "start" else 2)
    assert isinstance(last.error, ExecutorError)
    assert (last.error.executor, last.error.__cause__) == (who, failed.error)
    assert sum(isinstance(event, ExecutorFailed) for event in events) == 1


async def test_the_executor_that_failed_in_a_sub_workflow_is_named_with_its_path() -> (
    None
):
    """microsoft/agent-framework#2508: the same, one workflow further in.

    Right: the failure is told where it was, and then of the executor around it.
    """
    inner = WorkflowBuilder("inner", start=start).add_edge(start, bad).build()
    outer = WorkflowBuilder("outer", start=WorkflowExecutor(inner, "sub")).build()
    events = await told(outer, "x")
    inside = [
        (event.path, type(event.event), getattr(event.event, "executor_id", None))
        for event in events
        if isinstance(event, SubworkflowEvent)
    ]
    assert inside[-2:] == [
        (("sub",), ExecutorFailed, "bad"),
        (("sub",), RunFailed, None),
    ]
    failed, last = events[-2:]
    assert isinstance(failed, ExecutorFailed)
    assert failed.executor_id == "sub"
    assert isinstance(last, RunFailed)
