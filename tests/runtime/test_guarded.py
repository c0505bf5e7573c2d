"""Limits: of an attempt's time, of a run's time, of invocations at once."""

import asyncio
import threading
from typing import Any

import pytest

from tenure.detectors import Detector, Verdict
from tenure.runtime import (
    DeadlineError,
    Executor,
    ExecutorError,
    MemoryStore,
    Outcome,
    Retry,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    _driver,
    executor,
    handler,
    response_handler,
)
from tenure.runtime.testing import HeldExecutor, turns


async def test_an_attempt_that_takes_too_long_ends_with_a_timeout() -> None:
    cleaned = asyncio.Event()

    @executor(timeout=0.01)
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("x", 1)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    workflow = WorkflowBuilder("w", start=work).build()
    with pytest.raises(ExecutorError, match="TimeoutError") as caught:
        await workflow.run("x")
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert cleaned.is_set()
    assert dict(workflow.state) == {}


async def test_a_timeout_is_per_attempt_and_worth_another_one() -> None:
    attempts = 0

    @executor(timeout=0.01, retry=Retry(attempts=3, wait=0, on=TimeoutError))
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        nonlocal attempts
        attempts += 1
        ctx.set_state(f"attempt {attempts}", attempts)
        if attempts < 3:
            await asyncio.Event().wait()

    workflow = WorkflowBuilder("w", start=work).build()
    await workflow.run("x")
    assert dict(workflow.state) == {"attempt 3": 3}


async def test_a_thread_that_outlives_its_timeout_reaches_nobody(
    detector: Detector,
) -> None:
    go_on, done = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    attempts = 0

    @executor(timeout=0.05, retry=Retry(attempts=2, wait=0))
    def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        nonlocal attempts
        attempts += 1
        attempt = attempts
        if attempt == 1:
            go_on.wait(20)
        ctx.set_state("attempt", attempt)
        if attempt == 1:
            loop.call_soon_threadsafe(done.set)
        else:
            go_on.set()

    workflow = WorkflowBuilder("w", start=work).build()
    await workflow.run("x")
    await done.wait()
    assert dict(workflow.state) == {"attempt": 2}
    await workflow.run("y")
    assert dict(workflow.state) == {"attempt": 3}
    assert detector.verdict is Verdict.CLEAN


class Slow:
    """Takes its time while it is copied, and is not copied any further."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def __deepcopy__(self, memo: object) -> "Slow":
        self.go_on.wait(20)
        return self


class Hasty(Executor):
    """Its first attempt is timed out in the middle of sending, or of asking."""

    def __init__(self, verb: str) -> None:
        super().__init__("hasty", timeout=0.05, retry=Retry(attempts=2, wait=0))
        self.verb = verb
        self.attempts = 0
        self.slow = Slow()
        self.outlived = threading.Event()

    @handler
    def work(self, message: str, ctx: WorkflowContext[object, str]) -> None:
        self.attempts += 1
        if self.attempts == 1:
            if self.verb == "send":
                ctx.send_message(self.slow)
            else:
                ctx.request_info(self.slow, str)
            self.outlived.set()
            return
        self.slow.go_on.set()
        self.outlived.wait(20)
        ctx.yield_output("second attempt")

    @response_handler
    async def answered(
        self, question: Slow, answer: str, ctx: WorkflowContext[object, str]
    ) -> None:
        await ctx.yield_output(answer)


@executor
async def show(message: object, ctx: WorkflowContext[None, object]) -> None:
    await ctx.yield_output(message)


@pytest.mark.parametrize("verb", ["send", "ask"])
async def test_what_a_thread_was_about_to_say_in_a_failed_attempt_reaches_nobody(
    verb: str,
) -> None:
    hasty = Hasty(verb)
    workflow = WorkflowBuilder("w", start=hasty).add_edge(hasty, show).build()
    result = await workflow.run("x")
    assert result.outputs == ("second attempt",)
    assert result.pending_requests == ()


class Counted(Executor):
    """Notes how many of its invocations run at once, over all its instances."""

    now = 0
    most = 0
    gate: asyncio.Event

    def __init__(self) -> None:
        super().__init__("counted", concurrency=2)

    @handler
    async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        cls = type(self)
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        await cls.gate.wait()
        cls.now -= 1


@pytest.mark.parametrize("factory", [False, True], ids=["shared", "one for each run"])
async def test_no_more_invocations_run_at_once_than_are_allowed_over_all_runs(
    factory: bool,
) -> None:
    class Mine(Counted):
        gate = asyncio.Event()

    workflow = WorkflowBuilder("w", start=Mine if factory else Mine()).build()
    runs = [
        asyncio.create_task(workflow.instance(f"k{number}").run("x"))
        for number in range(7)
    ]
    await turns(30)
    assert Mine.now == 2
    Mine.gate.set()
    await asyncio.gather(*runs)
    assert (Mine.most, Mine.now) == (2, 0)


async def test_one_executor_has_a_limit_in_each_event_loop() -> None:
    class Mine(Counted):
        gate = asyncio.Event()

    workflow = WorkflowBuilder("w", start=Mine()).build()
    Mine.gate.set()
    await workflow.instance("here").run("x")

    def elsewhere() -> None:
        asyncio.run(workflow.instance("there").run("x"))  # type: ignore[arg-type]

    await asyncio.to_thread(elsewhere)
    await workflow.instance("here").run("x")


async def test_a_cancelled_run_gives_its_place_back() -> None:
    class Mine(Counted):
        gate = asyncio.Event()

        def __init__(self) -> None:
            super().__init__()
            self.concurrency = 1

    workflow = WorkflowBuilder("w", start=Mine()).build()
    first = asyncio.create_task(workflow.instance("a").run("x"))
    second = asyncio.create_task(workflow.instance("b").run("x"))
    await turns(10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    Mine.now -= 1
    Mine.gate.set()
    assert (await second).outcome is Outcome.COMPLETED


async def test_a_deadline_ends_a_run_and_keeps_the_supersteps_before_it() -> None:
    @executor
    async def quick(message: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("quick", message)
        await ctx.send_message(message)

    @executor
    async def slow(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("slow", message)
        await asyncio.Event().wait()

    workflow = WorkflowBuilder("w", start=quick).add_edge(quick, slow).build()
    with pytest.raises(DeadlineError) as caught:
        await workflow.run("x", deadline=0.05)
    assert isinstance(caught.value, TimeoutError)
    assert (caught.value.deadline, caught.value.superstep) == (0.05, 2)
    assert dict(workflow.state) == {"quick": "x"}


@pytest.mark.parametrize("store", [None, MemoryStore()])
async def test_a_deadline_counts_the_wait_for_the_instance(
    store: MemoryStore | None,
) -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("w", start=held, store=store).build()
    owner = asyncio.create_task(workflow.run("x"))
    await held.staged["x"].wait()
    with pytest.raises(DeadlineError, match="before the first superstep"):
        await workflow.run("y", on_conflict="wait", deadline=0.05)
    held.released["x"].set()
    held.released["z"].set()
    await owner
    await workflow.run("z")
    assert dict(workflow.state) == {"x_key": "x", "z_key": "z"}


async def test_a_deadline_counts_the_wait_for_a_run_of_another_process() -> None:
    store, held = MemoryStore(), HeldExecutor()
    here, there = (
        WorkflowBuilder("w", start=held, store=store).build() for _ in range(2)
    )
    owner = asyncio.create_task(there.run("x"))
    await held.staged["x"].wait()
    with pytest.raises(DeadlineError):
        await here.run("y", on_conflict="wait", deadline=0.05)
    held.released["x"].set()
    await owner
    assert not here.instance("default").busy


@pytest.mark.parametrize("deadline", [0, -1])
async def test_a_deadline_that_has_passed_already_runs_nothing(deadline: float) -> None:
    @executor
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("message", message)

    workflow = WorkflowBuilder("w", start=work).build()
    with pytest.raises(DeadlineError):
        await workflow.run("x", deadline=deadline)
    assert dict(workflow.state) == {}
    assert not workflow.instance("default").busy


async def test_a_deadline_that_is_no_number_is_refused_before_the_claim() -> None:
    workflow = WorkflowBuilder("w", start=HeldExecutor()).build()
    with pytest.raises(ValueError, match="deadline=nan"):
        workflow.run("x", deadline=float("nan"))
    with pytest.raises(TypeError):
        workflow.stream("x", deadline="soon")  # type: ignore[arg-type]
    assert workflow.instance("default").owner.epoch == 0


async def test_a_deadline_is_told_from_a_timeout_of_an_executor() -> None:
    @executor
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        raise TimeoutError("of its own")

    workflow = WorkflowBuilder("w", start=work).build()
    with pytest.raises(ExecutorError, match="of its own"):
        await workflow.run("x", deadline=5)


async def test_a_swallowed_cancellation_does_not_outlive_a_deadline() -> None:
    rounds = 0

    @executor
    async def stubborn(message: str, ctx: WorkflowContext[str, Any]) -> None:
        nonlocal rounds
        rounds += 1
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            ctx.set_state("swallowed", rounds)
        await ctx.send_message(message)

    builder = WorkflowBuilder("w", start=stubborn, max_supersteps=10_000)
    workflow = builder.add_edge(stubborn, stubborn).build()
    with pytest.raises(DeadlineError):
        await workflow.run("x", deadline=0.12)
    assert rounds < 10


@pytest.mark.parametrize("store", [None, MemoryStore()])
async def test_a_run_that_waits_longer_than_its_deadline_never_begins(
    store: MemoryStore | None,
) -> None:
    held = HeldExecutor()
    workflow = WorkflowBuilder("w", start=held, store=store).build()
    owner = asyncio.create_task(workflow.run("x"))
    await held.staged["x"].wait()
    with pytest.raises(DeadlineError, match="before the first superstep"):
        await workflow.run("y", on_conflict="wait", deadline=0.05)
    held.released["x"].set()
    await owner
    assert dict(workflow.state) == {"x_key": "x"}
    assert not workflow.instance("default").busy


@pytest.mark.parametrize("shape", ["alone", "fan-out", "sub-workflow"])
async def test_clean_up_that_waits_is_done_when_a_deadline_has_passed(
    shape: str,
) -> None:
    cleaned: list[str] = []

    @executor
    async def begin(message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(message)

    def careful(name: str) -> Executor:
        @executor(id=name)
        async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await turns(10)
                cleaned.append(name)

        return work

    one, two = careful("one"), careful("two")
    if shape == "sub-workflow":
        child = WorkflowBuilder("child", start=one).build()
        workflow = WorkflowBuilder("w", start=WorkflowExecutor(child)).build()
    elif shape == "fan-out":
        builder = WorkflowBuilder("w", start=begin)
        workflow = builder.add_fan_out(begin, [one, two]).build()
    else:
        workflow = WorkflowBuilder("w", start=one).build()
    with pytest.raises(DeadlineError):
        await workflow.run("x", deadline=0.05)
    assert cleaned == (["one", "two"] if shape == "fan-out" else ["one"])


async def test_who_is_cancelled_after_a_deadline_is_cancelled() -> None:
    cleaning = asyncio.Event()

    @executor
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await asyncio.Event().wait()

    workflow = WorkflowBuilder("w", start=work).build()
    running = asyncio.create_task(workflow.run("x", deadline=0.02))
    await cleaning.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_executor_that_goes_on_after_its_deadline_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_driver, "_PATIENCE", 0.01)
    swallowed = 0

    @executor
    async def stubborn(message: str, ctx: WorkflowContext[None, str]) -> None:
        nonlocal swallowed
        while swallowed < 3:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed += 1
        await asyncio.Event().wait()

    workflow = WorkflowBuilder("w", start=stubborn).build()
    with pytest.raises(DeadlineError):
        await workflow.run("x", deadline=0.02)
    assert swallowed == 3


async def test_a_deadline_in_the_middle_of_a_fan_out_ends_all_of_it() -> None:
    ended: list[str] = []

    @executor
    async def begin(message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(message)

    def slow(name: str) -> Executor:
        @executor(id=name)
        async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)

        return work

    workers = [slow(name) for name in "abc"]
    workflow = WorkflowBuilder("w", start=begin).add_fan_out(begin, workers).build()
    with pytest.raises(DeadlineError):
        await workflow.run("x", deadline=0.05)
    assert sorted(ended) == ["a", "b", "c"]
    assert not workflow.instance("default").busy
