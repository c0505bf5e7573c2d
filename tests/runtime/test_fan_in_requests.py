"""Fan-ins that wait for answers: they join what one message has set going."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import (
    Executor,
    ExecutorError,
    Instance,
    MemoryStore,
    Outcome,
    PendingRequest,
    RunEnded,
    RunResult,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)

Message = dict[str, str]
Messages = WorkflowContext[Message, None]


@pytest.fixture
def store(store_if_any: Store | None) -> Store | None:
    return store_if_any


class Asking(Executor):
    """Asks, and sends on the answer."""

    @handler
    async def ask(self, message: str, ctx: Messages) -> None:
        await ctx.request_info(f"{self.id} {message}", str)

    @response_handler
    async def answered(self, request: str, response: str, ctx: Messages) -> None:
        await ctx.send_message({request: response})


@executor(id="split")
async def split(message: str, ctx: WorkflowContext[str, None]) -> None:
    await ctx.send_message(message)


@executor(id="plain")
async def plain(message: str, ctx: Messages) -> None:
    await ctx.send_message({f"plain {message}": "sent"})


class Join(Executor):
    """Yields what it joins; changes it, and fails, if told to."""

    fails = False

    @handler
    async def join(
        self, messages: list[Message], ctx: WorkflowContext[None, Message]
    ) -> None:
        together = {key: one for message in messages for key, one in message.items()}
        for message in messages:
            message.clear()
        if self.fails:
            raise RuntimeError("refused on request")
        await ctx.yield_output(together)


Draw = Callable[[], Workflow]


def drawing(store: Store | None, join: Join | None = None, **options: Any) -> Draw:
    """Draw it anew each time, as another process would, if there is a store."""

    def draw() -> Workflow:
        a, b, end = Asking("a"), Asking("b"), join or Join("join")
        return (
            WorkflowBuilder("joining", start=split, store=store, **options)
            .add_fan_out(split, [a, b, plain])
            .add_fan_in([a, b, plain], end)
            .build()
        )

    only = draw()
    return draw if store is not None else lambda: only


def by_question(result: RunResult | Workflow | Instance) -> dict[str, str]:
    return {one.data: one.request_id for one in result.pending_requests}


async def answer(workflow: Workflow | Instance, **answers: str) -> RunResult:
    """Answer questions, named `a_spring` for `a spring`, each with its own text."""
    if isinstance(workflow, Workflow):
        workflow = workflow.instance("default")
    if workflow.pending_requests == ():
        await workflow.refresh()
    ids = by_question(workflow)
    return await workflow.run(
        responses={ids[key.replace("_", " ")]: text for key, text in answers.items()}
    )


def joined(word: str, a: str, b: str) -> Message:
    return {f"a {word}": a, f"b {word}": b, f"plain {word}": "sent"}


async def test_what_is_answered_in_parts_is_joined_all_the_same(
    store: Store | None,
) -> None:
    draw = drawing(store)
    await draw().run("x")
    first = await answer(draw(), b_x="yes")
    assert (first.outcome, first.outputs) == (Outcome.PENDING_REQUESTS, ())
    second = await answer(draw(), a_x="no")
    assert (second.outcome, second.outputs) == (
        Outcome.COMPLETED,
        (joined("x", "no", "yes"),),
    )


async def test_what_two_messages_set_going_is_never_joined(store: Store | None) -> None:
    draw = drawing(store)
    await draw().run("x")
    await draw().run("y")
    assert (await answer(draw(), a_x="1", b_y="2")).outputs == ()
    assert (await answer(draw(), a_y="3")).outputs == (joined("y", "3", "2"),)
    assert (await answer(draw(), b_x="4")).outputs == (joined("x", "1", "4"),)


async def test_all_answers_at_once_are_joined_each_with_its_own(
    store: Store | None,
) -> None:
    draw = drawing(store)
    for word in "xyz":
        await draw().run(word)
    result = await answer(draw(), a_z="1", b_x="2", b_y="3", a_x="4", b_z="5", a_y="6")
    assert len(result.outputs) == 3
    for one in (joined("x", "4", "2"), joined("y", "6", "3"), joined("z", "1", "5")):
        assert one in result.outputs


async def test_what_waits_for_no_answer_is_dropped_with_its_run(
    store: Store | None,
) -> None:
    draw = drawing(store)
    first = await draw().run("x")
    assert first.events[-1] == RunEnded(
        first.run_id, first.epoch, first.events[-1].seq, Outcome.PENDING_REQUESTS, ()
    )
    workflow = draw()
    await workflow.instance("default").run("y")
    ids = by_question(workflow)
    last = await workflow.cancel_requests([ids["a x"], ids["b x"], ids["a y"]])
    assert isinstance(last.events[-1], RunEnded)
    result = await answer(draw(), b_y="yes")
    assert (result.outcome, result.outputs) == (Outcome.COMPLETED, ())
    assert isinstance(result.events[-1], RunEnded)
    assert result.events[-1].undelivered == ("join",)
    await draw().run("z")
    result = await answer(draw(), a_z="1", b_z="2")
    assert result.outputs == (joined("z", "1", "2"),)


async def test_a_join_that_fails_leaves_what_it_was_given_as_it_was(
    store: Store | None,
) -> None:
    join = Join("join")
    draw = drawing(store, join)
    await draw().run("x")
    await answer(draw(), a_x="1")
    join.fails = True
    with pytest.raises(ExecutorError, match="refused on request"):
        await answer(draw(), b_x="2")
    join.fails = False
    if store is None:
        # The answer had been handled: what waits for it now is the join alone.
        assert draw().pending_requests == ()
        return
    assert (await draw().resume()).outputs == (joined("x", "1", "2"),)


async def test_an_answer_that_fails_leaves_what_it_would_have_been_joined_with(
    store: Store | None,
) -> None:
    class Failing(Asking):
        fails = True

        @response_handler
        async def answered(self, request: str, response: str, ctx: Messages) -> None:
            await ctx.send_message({request: response})
            if Failing.fails:
                raise RuntimeError("refused on request")

    def draw() -> Workflow:
        a, b = Asking("a"), Failing("b")
        return (
            WorkflowBuilder("joining", start=split, store=store)
            .add_fan_out(split, [a, b])
            .add_fan_in([a, b], Join("join"))
            .build()
        )

    workflow = draw()
    await workflow.run("x")
    await answer(workflow, a_x="1")
    with pytest.raises(ExecutorError, match="refused on request"):
        await answer(workflow, b_x="2")
    Failing.fails = False
    workflow = workflow if store is None else draw()
    assert (await answer(workflow, b_x="3")).outputs == ({"a x": "1", "b x": "3"},)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_one_may_go_back_to_and_fork_what_waits_half_joined(
    kind: str, tmp_path: Path
) -> None:
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path)
    draw = drawing(store)
    await draw().run("x")
    await answer(draw(), a_x="1")
    half = (await draw().history())[0].checkpoint_id
    assert (await answer(draw(), b_x="2")).outputs == (joined("x", "1", "2"),)
    twin = await draw().fork(half, "twin")
    again = await draw().run(checkpoint_id=half)
    assert (again.outcome, again.outputs) == (Outcome.PENDING_REQUESTS, ())
    assert (await answer(draw(), b_x="3")).outputs == (joined("x", "1", "3"),)
    assert (await answer(twin, b_x="4")).outputs == (joined("x", "1", "4"),)
    if isinstance(store, SqliteStore):
        await store.aclose()


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_fan_in_goes_on_after_a_crash_between_two_supersteps(
    kind: str, tmp_path: Path
) -> None:
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path)

    class Relay(Executor):
        crashes = True

        @handler
        async def relay(self, message: Message, ctx: Messages) -> None:
            if Relay.crashes:
                raise RuntimeError("crashed")
            await ctx.send_message(message)

    def draw() -> Workflow:
        a, b, relay = Asking("a"), Asking("b"), Relay("relay")
        return (
            WorkflowBuilder("joining", start=split, store=store)
            .add_fan_out(split, [a, b])
            .add_edge(b, relay)
            .add_fan_in([a, relay], Join("join"))
            .build()
        )

    await draw().run("x")
    await draw().run("y")
    await answer(draw(), a_x="1", a_y="2")
    with pytest.raises(ExecutorError, match="crashed"):
        await answer(draw(), b_y="3")
    Relay.crashes = False
    assert (await draw().resume()).outputs == ({"a y": "2", "b y": "3"},)
    assert (await answer(draw(), b_x="4")).outputs == ({"a x": "1", "b x": "4"},)
    if isinstance(store, SqliteStore):
        await store.aclose()


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_fan_in_inside_a_sub_workflow_waits_for_answers_too(
    store: Store | None, depth: int
) -> None:
    def draw() -> Workflow:
        child = drawing(None)()
        for level in range(1, depth):
            inner = WorkflowExecutor(child)
            child = WorkflowBuilder(f"level {level}", start=inner).build()
        start = WorkflowExecutor(child, "start")
        return WorkflowBuilder("outer", start=start, store=store).build()

    workflow = draw()
    await workflow.run("x")
    await workflow.run("y")
    await answer(workflow, a_x="1", b_y="2")
    workflow = workflow if store is None else draw()
    assert (await answer(workflow, b_x="3")).outputs == (joined("x", "1", "3"),)
    assert (await answer(workflow, a_y="4")).outputs == (joined("y", "4", "2"),)


async def test_a_sub_workflow_that_asks_is_joined_with_its_siblings(
    store: Store | None,
) -> None:
    asking = Asking("asking")

    @executor
    async def say(message: Message, ctx: WorkflowContext[None, Message]) -> None:
        await ctx.yield_output(message)

    child = WorkflowBuilder("child", start=asking).add_edge(asking, say).build()
    inner = WorkflowExecutor(child, "inner")
    workflow = (
        WorkflowBuilder("outer", start=split, store=store)
        .add_fan_out(split, [inner, plain])
        .add_fan_in([inner, plain], Join("join"))
        .build()
    )
    await workflow.run("x")
    await workflow.run("y")
    result = await answer(workflow, asking_y="1")
    assert result.outputs == ({"asking y": "1", "plain y": "sent"},)
    result = await answer(workflow, asking_x="2")
    assert result.outputs == ({"asking x": "2", "plain x": "sent"},)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_another_graph_is_given_nothing_that_waited_in_a_fan_in(
    kind: str, tmp_path: Path
) -> None:
    store: Store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path)
    await drawing(store)().run("x")
    a, b, end = Asking("a"), Asking("b"), Join("join")
    changed = (
        WorkflowBuilder("joining", start=split, store=store)
        .add_fan_out(split, [a, b])
        .add_fan_in([b, a], end)
        .build()
    )
    await changed.run("y")
    assert (await answer(changed, a_y="1")).outputs == ()
    assert (await answer(changed, b_y="2")).outputs == ({"b y": "2", "a y": "1"},)
    if isinstance(store, SqliteStore):
        await store.aclose()


def test_a_request_names_the_run_whose_message_led_to_it() -> None:
    request = PendingRequest("r1", "asker", "why?", bool, "run 1")
    assert request.begun_by == "run 1"
    assert PendingRequest("r1", "asker", "why?", bool).begun_by == ""
