"""Runs at the same time, and messages at the same time: who shares what with whom?"""

import asyncio
import threading
from typing import Any

import pytest

from tenure.detectors import Detector, Verdict
from tenure.runtime import (
    ConflictPolicy,
    Executor,
    ExecutorError,
    RunResult,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)
from tenure.runtime.testing import turns


class Remember(Executor):
    """Stages what it is given, and keeps it in an attribute too."""

    def __init__(self) -> None:
        super().__init__("remember")
        self.mine = ""

    @handler
    async def remember(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("mine", message)
        self.mine = message
        await turns(3)
        await ctx.send_message(self.mine)


@executor
async def recall(message: str, ctx: WorkflowContext[None, tuple[str, str]]) -> None:
    await turns(3)
    await ctx.yield_output((message, ctx.get_state("mine")))


def remembering() -> Workflow:
    """Each run gets an executor of its own."""
    builder = WorkflowBuilder("memory", start=Remember)
    return builder.add_edge("remember", recall).build()


async def test_runs_at_once_on_one_instance_are_refused_or_follow_each_other(
    detector: Detector,
) -> None:
    """microsoft/agent-framework#934: concurrent runs overwrote each other's state.

    They drove one instance of a workflow at the same time, and nothing stopped them.

    Right: an instance has one owner; others are refused, or wait, as they ask for.
    """
    workflow = remembering()
    first = asyncio.create_task(workflow.run("a"))
    await turns(2)
    with pytest.raises(WorkflowBusyError, match="epoch 1"):
        workflow.run("b")
    rest = [
        asyncio.create_task(workflow.run(name, on_conflict="wait")) for name in "cdef"
    ]
    results = await asyncio.gather(first, *rest)
    assert [one.outputs for one in results] == [((name, name),) for name in "acdef"]
    assert [one.epoch for one in results] == [1, 2, 3, 4, 5]
    assert dict(workflow.state) == {"mine": "f"}
    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


async def test_runs_at_once_on_instances_of_their_own_share_nothing(
    detector: Detector,
) -> None:
    """microsoft/agent-framework#2113: there was no way to run a workflow concurrently.

    Its executors were objects that all runs shared, so a new workflow had to be built
    for each request, or requests corrupted each other.

    Right: one workflow, an instance for each customer, and executors from a factory.
    """
    workflow = remembering()
    names = [f"customer {number}" for number in range(30)]
    results: list[RunResult] = await asyncio.gather(
        *(workflow.instance(name).run(name) for name in names)
    )
    assert [one.outputs for one in results] == [((name, name),) for name in names]
    assert [dict(workflow.instance(name).state) for name in names] == [
        {"mine": name} for name in names
    ]
    assert dict(workflow.state) == {}
    assert detector.verdict is Verdict.CLEAN


class Counter(Executor):
    """Counts in an attribute, and gives way between reading and writing it."""

    def __init__(self, gives_way: int) -> None:
        super().__init__("counter")
        self.gives_way = gives_way
        self.inside = 0
        self.count = 0
        self.order: list[str] = []

    @handler
    async def add(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        self.inside += 1
        assert self.inside == 1, "two messages are handled at once"
        count = self.count
        await turns(self.gives_way)
        self.count = count + 1
        self.order.append(message)
        ctx.set_state("count", ctx.get_state("count", 0) + 1)
        self.inside -= 1


def feeding(target: Executor, sources: int) -> Workflow:
    """Draw a fan-out to so many sources; each sends two messages to one target."""

    @executor
    async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(message)

    def source(name: str) -> Executor:
        @executor(id=name)
        async def send(message: str, ctx: WorkflowContext[str, None]) -> None:
            await ctx.send_message(f"{name} first")
            await turns(1)
            await ctx.send_message(f"{name} second")

        return send

    made = [source(f"s{number}") for number in range(sources)]
    builder = WorkflowBuilder("feeding", start=start).add_fan_out(start, made)
    for one in made:
        builder.add_edge(one, target)
    return builder.build()


@pytest.mark.parametrize("gives_way", [0, 1, 7])
async def test_messages_of_several_senders_are_handled_one_at_a_time(
    gives_way: int,
) -> None:
    """microsoft/agent-framework#6776: an executor was given two messages at once.

    They came from different senders in one superstep, and the two invocations corrupted
    what the executor keeps of its own.

    Right: one at a time, each sender's in its order, the senders in graph order.
    """
    counter = Counter(gives_way)
    workflow = feeding(counter, 5)
    result = await workflow.run("go")
    assert counter.count == workflow.state["count"] == 10
    assert counter.order == [
        f"s{number} {which}" for number in range(5) for which in ("first", "second")
    ]
    assert result.supersteps == 3


async def test_a_sub_workflow_takes_messages_of_several_senders_one_at_a_time() -> None:
    """microsoft/agent-framework#6776: a sub-workflow refused the second message.

    Both were handed to it at once, and its own guard took the second for a second run.

    Right: its runs follow each other, and each goes on from the one before.
    """
    inner = WorkflowBuilder("inner", start=lambda: Counter(3)).build()
    workflow = feeding(WorkflowExecutor(inner, "sub"), 4)
    await workflow.run("go")
    assert workflow.state["workflow:sub"]["state"] == {"count": 8}


class Desk(Executor):
    """Asks for what it is told to, or stages something and waits before it fails."""

    def __init__(self) -> None:
        super().__init__("desk")
        self.staged, self.fails = asyncio.Event(), asyncio.Event()

    @handler
    async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        if message == "ask":
            await ctx.request_info(message, bool)
            return
        ctx.set_state("half", message)
        self.staged.set()
        await self.fails.wait()
        raise RuntimeError("no")

    @response_handler
    async def answered(
        self, question: str, answer: bool, ctx: WorkflowContext[None, str]
    ) -> None:
        ctx.set_state("answer", answer)


async def test_whatever_drives_an_instance_has_to_own_it(
    store_if_any: Store | None,
) -> None:
    """microsoft/agent-framework#8306: withdrawing requests committed a run's half.

    That call had no guard. It committed what a run that was still at work had staged,
    and there it stayed when the run failed.

    Right: every driver claims; a live run is not disturbed by any of them.
    """
    desk = Desk()
    workflow = WorkflowBuilder("desk", start=desk, store=store_if_any).build()
    [request] = (await workflow.run("ask")).pending_requests
    running = asyncio.create_task(workflow.run("work"))
    await desk.staged.wait()
    drivers: dict[str, Any] = {
        "withdraw": lambda: workflow.cancel_requests([request.request_id]),
        "answer": lambda: workflow.run(responses={request.request_id: True}),
        "message": lambda: workflow.run("ask"),
    }
    if store_if_any is not None:
        drivers["resume"] = workflow.resume
    for drive in drivers.values():
        with pytest.raises(WorkflowBusyError):
            drive()
    desk.fails.set()
    with pytest.raises(ExecutorError):
        await running
    assert dict(workflow.state) == {}
    assert len(workflow.pending_requests) == 1
    await workflow.cancel_requests([request.request_id])
    assert dict(workflow.state) == {}


@pytest.mark.parametrize("policy", ["reject", "wait", "supersede"])
async def test_of_two_answers_at_once_one_is_taken_and_its_work_is_done_once(
    store_if_any: Store | None, policy: ConflictPolicy
) -> None:
    """mastra-ai/mastra#20443: two resumes at once did the work that follows twice.

    A double click, or two tabs. Both found the run suspended, both went on from there,
    and both were told that it had worked.

    Right: who claims goes on; the other is refused, or finds nothing to answer.
    """
    done: list[str] = []

    class Approval(Executor):
        @handler
        async def ask(self, order: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.request_info(order, str)

        @response_handler
        async def approve(
            self, order: str, by: str, ctx: WorkflowContext[str, str]
        ) -> None:
            await ctx.send_message(f"{order} for {by}")

    @executor
    async def ship(order: str, ctx: WorkflowContext[None, str]) -> None:
        done.append(order)
        await ctx.yield_output(order)

    approval = Approval("approval")
    builder = WorkflowBuilder("orders", start=approval, store=store_if_any)
    workflow = builder.add_edge(approval, ship).build()
    [request] = (await workflow.run("order 1")).pending_requests

    async def answer(by: str) -> RunResult:
        return await workflow.run(
            responses={request.request_id: by}, on_conflict=policy
        )

    both = await asyncio.gather(answer("ann"), answer("bob"), return_exceptions=True)
    [taken] = [one for one in both if isinstance(one, RunResult)]
    assert done == list(taken.outputs)
    assert done == [f"order 1 for {'ann' if both[0] is taken else 'bob'}"]
    assert workflow.pending_requests == ()


async def test_what_siblings_stage_from_threads_is_kept_whole(store: Store) -> None:
    """langchain-ai/langgraph#8115: writes of tasks that ended together were lost.

    Each thread read the list of pending writes, left its own out, and put a new list in
    its place: the last one dropped what all others had written
    (langchain-ai/langgraph#8114).

    Right: each executor has a page of its own, and the commit joins them all.
    """
    size = 8
    together = threading.Barrier(size, timeout=20)

    @executor
    async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(message)

    def sibling(name: str) -> Executor:
        @executor(id=name)
        def work(message: str, ctx: WorkflowContext[None, str]) -> None:
            for number in range(50):
                together.wait()
                ctx.set_state(f"{name} {number}", message)

        return work

    made = [sibling(f"s{number}") for number in range(size)]
    builder = WorkflowBuilder("threads", start=start, store=store)
    workflow = builder.add_fan_out(start, made).build()
    await workflow.run("go")
    expected = {f"s{one} {number}": "go" for one in range(size) for number in range(50)}
    assert dict(workflow.state) == expected
    assert (await store.load("threads/default"))[1] == expected
