"""Spans: they end on every way out, and nobody's context is touched but the run's."""

import asyncio
import contextvars
import gc
import inspect
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan

from tenure.runtime import (
    Executor,
    ExecutorError,
    ExecutorInvoked,
    OutputYielded,
    OwnershipLostError,
    RequestRaised,
    Retry,
    RunStarted,
    RunStream,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from tenure.runtime.testing import HeldExecutor, turns

from .books import Books


@pytest.fixture(autouse=True)
async def nothing_is_logged(caplog: pytest.LogCaptureFixture) -> AsyncIterator[None]:
    """Fail a test in which a detach fails, or the event loop complains."""
    caplog.set_level(logging.WARNING)
    yield
    gc.collect()
    await turns(5)
    logged = [*caplog.get_records("call"), *caplog.records]
    assert [record.getMessage() for record in logged] == []


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


@pytest.mark.parametrize("left_at", [RunStarted, ExecutorInvoked, OutputYielded])
async def test_a_stream_that_is_broken_out_of_leaves_the_callers_context_alone(
    left_at: type[WorkflowEvent], books: Books
) -> None:
    """microsoft/agent-framework#8397: a dropped stream logged a failure to detach.

    Its span was the current one across a `yield`, and the generator was closed later,
    in another context (microsoft/agent-framework#8398).

    Right: reading a stream changes nobody's context, so there is nothing to undo.
    """
    held = HeldExecutor()
    tracer = books.provider.get_tracer("test")

    @executor
    async def echo(message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(message)
        await ctx.send_message(message)

    builder = WorkflowBuilder("press", start=echo, recorder=books.recorder())
    workflow = builder.add_edge(echo, held).build()
    with tracer.start_as_current_span("request 1") as first:
        stream = workflow.stream("a")
        async for event in stream:
            assert trace.get_current_span() is first
            if isinstance(event, left_at):
                break
        del stream
        gc.collect()
        assert trace.get_current_span() is first
    with tracer.start_as_current_span("request 2") as second:
        held.released["b"].set()
        await workflow.run("b", on_conflict="supersede")
        assert trace.get_current_span() is second
    await turns(20)
    runs = books.named("run press")
    by_epoch = {one.attributes["tenure.run.epoch"]: one for one in runs}  # type: ignore[index]
    assert parent_of(by_epoch[1]) == first.get_span_context().span_id
    assert parent_of(by_epoch[2]) == second.get_span_context().span_id
    assert by_epoch[1].attributes["tenure.run.outcome"] == "abandoned"  # type: ignore[index]
    assert books.open == {}


class Editor(Executor):
    @handler
    async def review(self, draft: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("draft", draft)
        await ctx.request_info(f"publish {draft}?", bool)

    @response_handler
    async def decide(
        self, question: str, publish: bool, ctx: WorkflowContext[None, str]
    ) -> None:
        await ctx.yield_output(f"{question} {publish}")


TENANT = contextvars.ContextVar("TENANT", default="nobody")


async def test_a_stream_may_be_left_at_its_question_and_dropped_by_another_task(
    books: Books,
) -> None:
    """microsoft/agent-framework#7787: leaving at a question leaked context variables.

    Asking a person is the usual reason to leave a stream in the middle. The generator
    was collected in another task, where its tokens could not be reset
    (microsoft/agent-framework#7798).

    Right: it may be dropped anywhere, and the answer can come at once.
    """
    recorder = books.recorder()
    workflow = WorkflowBuilder("w", start=Editor("editor"), recorder=recorder).build()

    async def ask() -> tuple[RunStream, str]:
        TENANT.set("asker")
        stream = workflow.stream("spring")
        async for event in stream:
            if isinstance(event, RequestRaised):
                return stream, event.request.request_id
        raise AssertionError("it asks nothing")

    stream, request_id = await asyncio.create_task(ask())
    box = [stream]
    del stream
    collector = threading.Thread(target=box.clear)
    collector.start()
    collector.join()
    assert TENANT.get() == "nobody"
    result = await workflow.run(responses={request_id: True})
    assert result.outputs == ("publish spring? True",)
    assert books.open == {}


PROGRAM = """
import asyncio, logging
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from tenure.runtime import WorkflowBuilder, WorkflowContext, executor
logging.basicConfig()
trace.set_tracer_provider(TracerProvider())
@executor
async def echo(message: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(message)
    await asyncio.Event().wait()
workflow = WorkflowBuilder("w", start=echo).build()
async def main():
    stream = workflow.stream("hello")
    async for event in stream:
        if type(event).__name__ == "OutputYielded":
            break
    {leave}
asyncio.run(main(), debug=True)
"""


@pytest.mark.parametrize("leave", ["pass", "del stream", "kept.append(stream)"])
def test_a_program_that_ends_right_after_leaving_a_stream_says_nothing(
    leave: str,
) -> None:
    """microsoft/agent-framework#7787: generators and tasks complained at the exit.

    Right: whatever is left at the end of the loop ends in silence.
    """
    program = f"kept = []\n{PROGRAM.format(leave=leave)}"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Every way out of an executor.


class Ways:
    """Ways in which a run, and the executors in it, come to an end."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.tracer = books.provider.get_tracer("test")
        self.recorder = books.recorder()

    def drawn(self, start: Executor, *targets: Executor) -> Any:
        builder = WorkflowBuilder("w", start=start, recorder=self.recorder)
        if targets:
            builder.add_fan_out(start, targets)
        return builder.build()

    def rows(self, last: Callable[[WorkflowContext[str, str]], Awaitable[None]]):
        """An executor that works on several rows at once, each in a span, and ends."""

        async def row(number: int) -> None:
            with self.tracer.start_as_current_span(f"row {number}"):
                await turns(number)

        @executor
        async def work(message: str, ctx: WorkflowContext[int | str, str]) -> None:
            await asyncio.gather(*map(row, range(5)))
            await last(ctx)

        return work

    async def completes(self) -> None:
        await self.drawn(self.rows(lambda ctx: ctx.yield_output("done"))).run("a")

    async def asks_and_is_answered(self) -> None:
        workflow = self.drawn(Editor("editor"))
        [request] = (await workflow.run("a")).pending_requests
        await workflow.run(responses={request.request_id: True})

    async def sends_what_nobody_takes(self) -> None:
        @executor
        async def numbers(message: int, ctx: WorkflowContext[None, str]) -> None: ...

        async def send(ctx: WorkflowContext[Any, str]) -> None:
            await ctx.send_message("no number")

        with pytest.raises(ExecutorError, match="MessageTypeError"):
            builder = WorkflowBuilder(
                "w", start=self.rows(send), recorder=self.recorder
            )
            await builder.add_edge("work", numbers).build().run("a")

    async def fails_and_cancels_siblings(self) -> None:
        async def fail(ctx: WorkflowContext[str, str]) -> None:
            raise RuntimeError("no")

        @executor
        async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
            await ctx.send_message(message)

        with pytest.raises(ExecutorError):
            await self.drawn(start, self.rows(fail), HeldExecutor()).run("a")

    async def times_out_again_and_again(self) -> None:
        @executor(retry=Retry(attempts=3, wait=0.0), timeout=0.001)
        async def slow(message: str, ctx: WorkflowContext[None, str]) -> None:
            await asyncio.Event().wait()

        with pytest.raises(ExecutorError):
            await self.drawn(slow).run("a")
        assert len(self.books.named("execute slow")) == 3

    async def is_cancelled(self) -> None:
        held = HeldExecutor(cleanup_turns=3)
        running = asyncio.create_task(self.drawn(held).run("a"))
        await held.staged["a"].wait()
        running.cancel()
        await asyncio.wait([running])

    async def is_cancelled_in_a_thread(self) -> None:
        entered, leave = threading.Event(), threading.Event()

        @executor
        def blocking(message: str, ctx: WorkflowContext[None, str]) -> None:
            entered.set()
            leave.wait(20)

        running = asyncio.create_task(self.drawn(blocking).run("a"))
        await asyncio.to_thread(entered.wait, 20)
        running.cancel()
        await asyncio.wait([running])
        leave.set()

    async def is_cancelled_in_a_sub_workflow(self) -> None:
        held = HeldExecutor()
        inner = WorkflowBuilder("inner", start=held, recorder=self.recorder).build()
        outer = self.drawn(WorkflowExecutor(inner, "sub"))
        running = asyncio.create_task(outer.run("a"))
        await held.staged["a"].wait()
        running.cancel()
        await asyncio.wait([running])

    async def is_abandoned(self) -> None:
        held = HeldExecutor()
        stream = self.drawn(held).stream("a")
        await anext(stream)
        await held.staged["a"].wait()
        del stream
        await held.ended["a"].wait()
        await turns(5)

    async def is_superseded_while_it_cleans_up(self) -> None:
        held = HeldExecutor(cleanup_turns=20)
        workflow = self.drawn(held)
        running = asyncio.create_task(workflow.run("a"))
        await held.staged["a"].wait()
        held.released["b"].set()
        await workflow.run("b", on_conflict="supersede")
        with pytest.raises(OwnershipLostError):
            await running

    async def is_refused_or_never_begun(self) -> None:
        held = HeldExecutor()
        workflow = self.drawn(held)
        workflow.run("unused").close()
        stream = workflow.stream("a")
        await anext(stream)
        with pytest.raises(WorkflowBusyError):
            workflow.run("b")
        waiting = asyncio.create_task(workflow.run("c", on_conflict="wait"))
        await turns(3)
        waiting.cancel()
        await asyncio.wait([waiting])
        await stream.aclose()


WAYS = [name for name, way in vars(Ways).items() if inspect.iscoroutinefunction(way)]


@pytest.mark.parametrize("way", WAYS)
async def test_every_span_ends_and_has_its_parent_whatever_way_a_run_ends(
    way: str, books: Books
) -> None:
    """microsoft/agent-framework#5577: spans of executors were never exported.

    They never ended on some ways out: a pause for a person, a message that nobody took,
    work on many rows at once. Their children hung in the air.

    Right: every span that is started ends, once, and so does its parent.
    """
    await getattr(Ways(books), way)()
    assert books.started > 1
    assert books.open == {}
    assert books.orphans() == []
