"""The superstep: isolated reads, one commit or none, whatever the scheduling."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import (
    ConvergenceError,
    Executor,
    ExecutorError,
    OutputYielded,
    ReducerError,
    StateKey,
    SuperstepCompleted,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WriteConflictError,
    append,
    executor,
    handler,
    last,
)

LOG = StateKey[list[str]]("log", reduce=append)
LATEST = StateKey[str]("latest", reduce=last)
Context = WorkflowContext[Any, Any]
Body = Callable[[str, Context], Any]


@executor
async def start(message: str, ctx: WorkflowContext[str, Any]) -> None:
    await ctx.send_message(message)


def annotated(body: Body) -> Body:
    """Give a body the annotations that the engine reads."""

    async def handle(message: str, ctx: Context) -> None:
        await body(message, ctx)

    return handle


def siblings(*bodies: Body) -> Workflow:
    """A fan-out to executors `e0`, `e1`, … that do this side by side."""
    executors = [
        executor(id=f"e{at}")(annotated(body)) for at, body in enumerate(bodies)
    ]
    return WorkflowBuilder("w", start=start).add_fan_out(start, executors).build()


def alone(body: Body) -> Workflow:
    return WorkflowBuilder("w", start=executor(id="only")(annotated(body))).build()


def busy(workflow: Workflow) -> bool:
    return workflow.instance("default").busy


# Reading and writing.


async def test_a_siblings_write_is_never_seen_not_even_after_it_was_staged() -> None:
    staged, read = asyncio.Event(), asyncio.Event()
    seen: list[object] = []

    async def writes(message: str, ctx: Context) -> None:
        ctx.set_state("key", "new")
        staged.set()
        await read.wait()

    async def reads(message: str, ctx: Context) -> None:
        await staged.wait()
        seen.append(ctx.get_state("key", "nothing"))
        read.set()

    workflow = siblings(writes, reads)
    await workflow.run("go")
    assert seen == ["nothing"]
    assert workflow.state["key"] == "new"


async def test_an_executor_sees_its_own_writes_and_the_next_superstep_sees_all() -> (
    None
):
    seen: list[object] = []

    class Counter(Executor):
        @handler
        async def count(self, message: int, ctx: WorkflowContext[int, Any]) -> None:
            seen.append(ctx.get_state("count", 0))
            ctx.set_state("count", ctx.get_state("count", 0) + 1)
            seen.append(ctx.get_state("count"))
            if message:
                await ctx.send_message(message - 1)

    counter = Counter("counter")
    workflow = WorkflowBuilder("w", start=counter).add_edge(counter, counter).build()
    await workflow.run(2)
    assert seen == [0, 1, 1, 2, 2, 3]
    await workflow.run(0)
    assert workflow.state["count"] == 4


async def test_a_deletion_is_seen_at_once_by_its_executor_and_later_by_all() -> None:
    seen: list[object] = []

    async def body(message: str, ctx: Context) -> None:
        if message == "fill":
            ctx.set_state("key", 1)
        else:
            ctx.delete_state("key")
            ctx.delete_state("never there")
            seen.append(ctx.get_state("key", "gone"))

    workflow = alone(body)
    await workflow.run("fill")
    before = workflow.state
    await workflow.run("empty")
    assert seen == ["gone"]
    assert dict(workflow.state) == {}
    assert dict(before) == {"key": 1}


async def test_a_key_that_was_written_and_deleted_in_one_superstep_never_existed():
    async def body(message: str, ctx: Context) -> None:
        ctx.set_state("key", 1)
        ctx.delete_state("key")

    workflow = alone(body)
    result = await workflow.run("go")
    assert dict(workflow.state) == {}
    assert result.supersteps == 1


async def test_none_is_a_value_and_not_the_lack_of_one() -> None:
    async def body(message: str, ctx: Context) -> None:
        ctx.set_state("key", None)
        assert ctx.get_state("key", "default") is None

    workflow = alone(body)
    await workflow.run("go")
    assert dict(workflow.state) == {"key": None}


async def test_two_siblings_that_stage_one_key_conflict_and_nothing_is_committed():
    async def both(message: str, ctx: Context) -> None:
        ctx.set_state("mine" + ctx.executor_id, 1)
        ctx.set_state("key", ctx.executor_id)

    workflow = siblings(both, both)
    with pytest.raises(WriteConflictError) as caught:
        await workflow.run("go")
    error = caught.value
    assert (error.key, error.first, error.second) == ("key", "e0", "e1")
    assert dict(workflow.state) == {}
    assert not busy(workflow)


async def test_last_keeps_the_write_of_the_executor_that_comes_last_in_the_graph():
    order = [asyncio.Event() for _ in range(3)]

    async def write(message: str, ctx: Context) -> None:
        at = int(ctx.executor_id[1:])
        if at < 2:  # they stage in the order e2, e1, e0
            await order[at + 1].wait()
        ctx.set_state(LATEST, ctx.executor_id)
        order[at].set()

    workflow = siblings(write, write, write)
    await workflow.run("go")
    assert workflow.state["latest"] == "e2"


async def test_a_reducer_that_fails_names_key_and_executor_and_commits_nothing() -> (
    None
):
    async def fine(message: str, ctx: Context) -> None:
        ctx.set_state(LOG, ["fine"])

    async def wrong(message: str, ctx: Context) -> None:
        ctx.set_state(LOG, 5)  # type: ignore[arg-type]

    workflow = siblings(fine, wrong)
    with pytest.raises(ReducerError) as caught:
        await workflow.run("go")
    assert (caught.value.key, caught.value.executor) == ("log", "e1")
    assert dict(workflow.state) == {}
    assert not busy(workflow)


async def test_a_reducer_that_fails_while_it_is_read_fails_its_executor() -> None:
    async def wrong(message: str, ctx: Context) -> None:
        ctx.set_state(StateKey("numbers", reduce=append), 5)
        ctx.get_state("numbers")

    with pytest.raises(ExecutorError) as caught:
        await alone(wrong).run("go")
    assert isinstance(caught.value.__cause__, ReducerError)


# Scheduling.


@given(st.permutations(range(4)), st.permutations(range(4)))
async def test_the_result_of_a_superstep_does_not_depend_on_scheduling(
    staging: list[int], ending: list[int]
) -> None:
    """Every executor stages, sends and ends in an order that the test dictates."""
    may_stage = [asyncio.Event() for _ in range(5)]
    may_end = [asyncio.Event() for _ in range(5)]
    may_stage[0].set()
    may_end[0].set()

    def body(at: int) -> Body:
        async def work(message: str, ctx: Context) -> None:
            await may_stage[staging.index(at)].wait()
            ctx.set_state(LOG, [f"first{at}"])
            ctx.set_state(LATEST, str(at))
            ctx.set_state(f"own{at}", ctx.get_state(LOG))
            await ctx.send_message(f"m{at}")
            may_stage[staging.index(at) + 1].set()
            await may_end[ending.index(at)].wait()
            ctx.set_state(LOG, [f"second{at}"])
            await ctx.yield_output(at)
            may_end[ending.index(at) + 1].set()

        return work

    @executor
    async def collect(message: str, ctx: Context) -> None:
        ctx.set_state("arrived", [*ctx.get_state("arrived", []), message])

    executors = [executor(id=f"e{at}")(annotated(body(at))) for at in range(4)]
    builder = WorkflowBuilder("w", start=start).add_fan_out(start, executors)
    for one in executors:
        builder.add_edge(one, collect)
    workflow = builder.build()
    result = await workflow.run("go")
    assert result.outputs == (0, 1, 2, 3)
    assert dict(workflow.state) == {
        "log": [f"{what}{at}" for at in range(4) for what in ("first", "second")],
        "latest": "3",
        **{f"own{at}": [f"first{at}"] for at in range(4)},
        "arrived": ["m0", "m1", "m2", "m3"],
    }


async def test_one_executor_handles_one_message_at_a_time_in_order() -> None:
    inside = 0
    handled: list[int] = []

    @executor
    async def many(message: str, ctx: WorkflowContext[int, Any]) -> None:
        for number in range(5):
            await ctx.send_message(number)

    @executor
    async def one(number: int, ctx: Context) -> None:
        nonlocal inside
        inside += 1
        assert inside == 1
        for _ in range(5 - number):
            await asyncio.sleep(0)
        assert ctx.get_state("sum", 0) == sum(range(number))
        ctx.set_state("sum", ctx.get_state("sum", 0) + number)
        handled.append(number)
        inside -= 1

    workflow = WorkflowBuilder("w", start=many).add_edge(many, one).build()
    result = await workflow.run("go")
    assert handled == [0, 1, 2, 3, 4]
    assert workflow.state["sum"] == 10
    assert result.supersteps == 2


async def test_siblings_run_side_by_side_and_the_barrier_waits_for_all() -> None:
    size = 300
    arrived = 0
    everybody = asyncio.Event()

    async def meet(message: str, ctx: Context) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == size:
            everybody.set()
        await everybody.wait()
        ctx.set_state(LOG, [ctx.executor_id])

    workflow = siblings(*[meet] * size)
    await workflow.run("go")
    assert workflow.state["log"] == [f"e{at}" for at in range(size)]


# Limits.


async def test_a_run_may_use_every_superstep_that_it_has() -> None:
    class Down(Executor):
        @handler
        async def count(self, number: int, ctx: WorkflowContext[int, Any]) -> None:
            if number > 1:
                await ctx.send_message(number - 1)

    down = Down("down")
    workflow = (
        WorkflowBuilder("w", start=down, max_supersteps=3).add_edge(down, down).build()
    )
    assert (await workflow.run(3)).supersteps == 3
    with pytest.raises(ConvergenceError):
        await workflow.run(4)


# Whose executors, whose arguments.


class Remembering(Executor):
    def __init__(self) -> None:
        super().__init__("remembering")
        self.seen: list[str] = []

    @handler
    async def remember(self, message: str, ctx: WorkflowContext[None, Any]) -> None:
        self.seen.append(message)
        await ctx.yield_output(list(self.seen))


async def test_a_factory_gives_each_run_its_own_executor_and_an_instance_is_shared():
    own = WorkflowBuilder("w", start=Remembering).build()
    assert [(await own.run(text)).outputs for text in "ab"] == [(["a"],), (["b"],)]
    shared = WorkflowBuilder("w", start=Remembering()).build()
    assert [(await shared.run(text)).outputs for text in "ab"] == [
        (["a"],),
        (["a", "b"],),
    ]


async def test_the_keyword_arguments_of_a_run_are_read_only_and_its_own() -> None:
    seen: list[dict[str, Any]] = []

    async def reads(message: str, ctx: Context) -> None:
        with pytest.raises(TypeError):
            ctx.kwargs["user"] = "changed"  # type: ignore[index]
        seen.append(dict(ctx.kwargs))

    workflow = alone(reads)
    await workflow.run("go", user="ann", limit=3)
    await workflow.run("go")
    async with workflow.stream("go", user="bob") as events:
        async for _ in events:
            pass
    assert seen == [{"user": "ann", "limit": 3}, {}, {"user": "bob"}]


async def test_a_context_says_where_it_is() -> None:
    seen: list[tuple[Any, ...]] = []

    async def tells(message: str, ctx: Context) -> None:
        seen.append((
            ctx.run_id,
            ctx.epoch,
            ctx.instance_key,
            ctx.superstep,
            ctx.executor_id,
        ))

    workflow = siblings(tells)
    result = await workflow.instance("c42").run("go")
    assert seen == [(result.run_id, result.epoch, "c42", 2, "e0")]


# Outputs and events.


async def test_outputs_are_in_graph_order_and_only_those_of_committed_supersteps():
    second_yielded = asyncio.Event()

    async def late(message: str, ctx: Context) -> None:
        await second_yielded.wait()
        await ctx.yield_output("late")

    async def early(message: str, ctx: Context) -> None:
        await ctx.yield_output("early")
        second_yielded.set()

    result = await siblings(late, early).run("go")
    assert result.outputs == ("late", "early")
    as_they_came = [
        event.data for event in result.events if isinstance(event, OutputYielded)
    ]
    assert as_they_came == ["early", "late"]


async def test_a_superstep_tells_which_keys_it_changed() -> None:
    async def writes(message: str, ctx: Context) -> None:
        ctx.set_state("a", 1)
        ctx.set_state(LOG, [message])

    result = await alone(writes).run("go")
    [told] = [event for event in result.events if isinstance(event, SuperstepCompleted)]
    assert told.committed == ("a", "log")


async def test_an_output_is_isolated_from_the_executor_that_goes_on_with_it() -> None:
    async def yields(message: str, ctx: Context) -> None:
        value = [message]
        await ctx.yield_output(value)
        value.append("changed")

    assert (await alone(yields).run("go")).outputs == (["go"],)
