"""Attempts: each stages into a fresh ledger, so a failed one leaves nothing."""

import asyncio
import operator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure.detectors import Detector, Verdict
from tenure.instrumentation import Recorder
from tenure.runtime import (
    Executor,
    ExecutorError,
    ExecutorInvoked,
    MemoryStore,
    OutputYielded,
    Retry,
    StateKey,
    WorkflowBuilder,
    WorkflowContext,
    append,
    executor,
    handler,
    response_handler,
)
from tenure.runtime._ledger import Ledger, Page

NO_WAIT = Retry(attempts=3, wait=0)
SEEN = StateKey[list[int]]("seen", reduce=append)
TOTAL = StateKey[int]("total", reduce=lambda so_far, staged: (so_far or 0) + staged)


class Flaky(Executor):
    """Does everything that an executor can do, and fails until its last attempt."""

    def __init__(self, retry: Retry | None, good: int, error: type[Exception]) -> None:
        super().__init__("flaky", retry=retry)
        self.good = good
        self.error = error
        self.attempts = 0
        self.read: list[Any] = []
        self.keys: list[str] = []
        self.left: WorkflowContext[Any, Any] | None = None

    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        self.attempts += 1
        attempt = self.attempts
        self.keys.append(ctx.idempotency_key)
        if self.left is not None:
            self.left.set_state("late", attempt)
            await self.left.send_message("late")
        self.left = ctx
        self.read.append((
            ctx.get_state("plain"),
            ctx.get_state(SEEN),
            ctx.get_state("deleted"),
        ))
        ctx.set_state("plain", attempt)
        ctx.set_state(f"only {attempt}", attempt)
        ctx.set_state(SEEN, [attempt])
        ctx.set_state(TOTAL, attempt)
        ctx.delete_state("deleted")
        await ctx.send_message(f"{message} {attempt}")
        await ctx.yield_output(f"output {attempt}")
        await ctx.request_info(f"question {attempt}", bool)
        if attempt < self.good:
            raise self.error(f"attempt {attempt}")

    @response_handler
    async def answered(
        self, request: str, response: bool, ctx: WorkflowContext[str, str]
    ) -> None: ...


def drawn(flaky: Flaky, **how: Any) -> Any:
    @executor
    async def take(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("taken", message)

    @executor
    async def prepare(message: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("deleted", "there")
        ctx.set_state(SEEN, [0])
        await ctx.send_message(message)

    builder = WorkflowBuilder("w", start=prepare, **how)
    return builder.add_edge(prepare, flaky).add_edge(flaky, take).build()


@pytest.mark.parametrize("store", [None, MemoryStore()], ids=["plain", "store"])
async def test_a_failed_attempt_leaves_nothing(
    store: MemoryStore | None, detector: Detector
) -> None:
    flaky = Flaky(NO_WAIT, 3, ValueError)
    workflow = drawn(flaky, store=store)
    result = await workflow.run("x")
    assert dict(workflow.state) == {
        "plain": 3, "only 3": 3, "seen": [0, 3], "total": 3, "taken": "x 3"
    }  # fmt: skip
    assert flaky.read == [(None, [0], "there")] * 3
    assert result.outputs == ("output 3",)
    assert [one.data for one in result.pending_requests] == ["question 3"]
    assert len(set(flaky.keys)) == 1, "it is one and the same work"
    assert detector.verdict is Verdict.CLEAN


async def test_a_stream_has_seen_the_outputs_of_failed_attempts() -> None:
    events = []
    async with drawn(Flaky(NO_WAIT, 3, ValueError)).stream("x") as stream:
        async for event in stream:
            events.append(event)  # noqa: PERF401 - the loop is what is tested
    yielded = [one.data for one in events if isinstance(one, OutputYielded)]
    assert yielded == ["output 1", "output 2", "output 3"]
    invoked = [one for one in events if isinstance(one, ExecutorInvoked)]
    assert [one.executor_id for one in invoked] == ["prepare", *["flaky"] * 3, "take"]


async def test_the_last_attempt_says_why_and_the_superstep_is_discarded() -> None:
    flaky = Flaky(NO_WAIT, 9, ValueError)
    workflow = drawn(flaky)
    with pytest.raises(ExecutorError, match="attempt 3") as caught:
        await workflow.run("x")
    assert isinstance(caught.value.__cause__, ValueError)
    assert flaky.attempts == 3
    assert dict(workflow.state) == {"deleted": "there", "seen": [0]}


@pytest.mark.parametrize(
    ("on", "error", "attempts"),
    [
        (Exception, ValueError, 3),
        (ValueError, ValueError, 3),
        (LookupError, KeyError, 3),
        (ValueError, KeyError, 1),
        ((ValueError, KeyError), KeyError, 3),
        ((), KeyError, 1),
        (lambda error: "1" in str(error), ValueError, 2),
    ],
)
async def test_only_what_is_worth_it_is_tried_again(
    on: Any, error: type[Exception], attempts: int
) -> None:
    flaky = Flaky(Retry(attempts=3, wait=0, on=on), 9, error)
    with pytest.raises(ExecutorError):
        await drawn(flaky).run("x")
    assert flaky.attempts == attempts


async def test_a_policy_that_fails_itself_fails_the_executor() -> None:
    def worth_another(error: BaseException) -> bool:
        raise LookupError("no such error")

    @executor(retry=Retry(attempts=3, wait=0, on=worth_another))
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        raise ValueError("attempt")

    workflow = WorkflowBuilder("w", start=work).build()
    with pytest.raises(ExecutorError, match=r"'work'.*retry.on raised") as caught:
        await workflow.run("x")
    assert isinstance(caught.value.__cause__, LookupError)


async def test_without_a_policy_there_is_one_attempt() -> None:
    flaky = Flaky(None, 9, ValueError)
    with pytest.raises(ExecutorError):
        await drawn(flaky).run("x")
    assert flaky.attempts == 1


async def test_attempts_for_a_message_see_what_an_earlier_message_staged() -> None:
    attempts: list[str] = []

    @executor
    async def begin(message: str, ctx: WorkflowContext[str, str]) -> None:
        for one in ("a", "b"):
            await ctx.send_message(one)

    @executor(retry=NO_WAIT)
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        attempts.append(message)
        so_far = ctx.get_state("so far", "")
        ctx.set_state("so far", so_far + message)
        ctx.set_state(SEEN, [len(attempts)])
        await ctx.yield_output(message)
        if attempts.count(message) < 3:
            raise ValueError

    workflow = WorkflowBuilder("w", start=begin).add_edge(begin, work).build()
    result = await workflow.run("x")
    assert attempts == ["a", "a", "a", "b", "b", "b"]
    assert dict(workflow.state) == {"so far": "ab", "seen": [3, 6]}
    assert result.outputs == ("a", "b")


async def test_an_attempt_is_not_made_by_a_run_that_was_cancelled() -> None:
    attempts, entered = 0, asyncio.Event()

    @executor(retry=Retry(attempts=5, wait=0))
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        nonlocal attempts
        attempts += 1
        entered.set()
        await asyncio.Event().wait()

    running = asyncio.create_task(WorkflowBuilder("w", start=work).build().run("x"))
    await entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert attempts == 1


async def test_a_run_can_be_cancelled_between_two_attempts() -> None:
    failed = asyncio.Event()

    @executor(retry=Retry(attempts=2, wait=60, max_wait=60))
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        failed.set()
        raise ValueError

    running = asyncio.create_task(WorkflowBuilder("w", start=work).build().run("x"))
    await failed.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_failing_sibling_ends_the_attempts() -> None:
    attempts = 0

    @executor
    async def begin(message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(message)

    @executor(retry=Retry(attempts=2, wait=60, max_wait=60))
    async def trying(message: str, ctx: WorkflowContext[None, str]) -> None:
        nonlocal attempts
        attempts += 1
        raise ValueError("again")

    @executor
    async def failing(message: str, ctx: WorkflowContext[None, str]) -> None:
        raise ValueError("for good")

    builder = WorkflowBuilder("w", start=begin).add_fan_out(begin, [trying, failing])
    with pytest.raises(ExecutorError, match="for good"):
        await builder.build().run("x")
    assert attempts == 1


async def test_every_attempt_is_a_span_with_its_number_and_its_error() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    recorder = Recorder("tenure/test", tracer_provider=provider)
    await drawn(Flaky(NO_WAIT, 3, ValueError), recorder=recorder).run("x")
    spans = sorted(
        (one for one in exporter.get_finished_spans() if one.name == "execute flaky"),
        key=operator.attrgetter("start_time"),
    )
    attributes = [one.attributes or {} for one in spans]
    assert [one.get("tenure.executor.attempt", 1) for one in attributes] == [1, 2, 3]
    assert [one.get("error.type") for one in attributes] == ["ValueError"] * 2 + [None]
    assert len({one.parent.span_id for one in spans if one.parent}) == 1


def test_waits_grow_and_are_spread_and_bounded() -> None:
    policy = Retry(attempts=9, wait=0.5, max_wait=3)
    for attempt, longest in ((2, 0.5), (3, 1.0), (4, 2.0), (5, 3.0), (5000, 3.0)):
        waits = {policy.seconds_before(attempt) for _ in range(50)}
        assert longest / 2 <= min(waits) < max(waits) <= longest


@pytest.mark.parametrize(
    "wrong",
    [{"attempts": 0}, {"wait": -1}, {"max_wait": -0.1}, {"wait": float("nan")}],
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="attempts count from 1"):
        Retry(**wrong)


def test_a_branch_of_a_page_goes_on_by_itself() -> None:
    ledger = Ledger(1)  # type: ignore[arg-type]
    page = ledger.page("a", {"x": [0]})
    page.stage("x", [1], append)
    page.stage("y", 1)
    first: Page = page.branch()
    ledger.replace(page, first)
    first.stage("x", [2], append)
    first.stage("y", 2)
    second = page.branch()
    ledger.replace(first, second)
    assert (second.read("x"), second.read("y")) == ([0, 1], 1)
    assert not page.open
    assert not first.open
    assert second.open
    second.stage("x", [3], append)
    assert ledger.merge({"x": [0]}) == {"x": [0, 1, 3], "y": 1}


def test_a_page_of_a_ledger_that_was_swept_is_replaced_by_a_closed_one() -> None:
    ledger = Ledger(1)  # type: ignore[arg-type]
    page = ledger.page("a", {})
    ledger.close()
    branch = page.branch()
    ledger.replace(page, branch)
    assert not branch.open
    assert ledger.staged() == {}
