"""Where messages go: every kind of edge, in order, and never into another run."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import (
    Case,
    Executor,
    ExecutorError,
    IsolationError,
    MessageTypeError,
    UnknownTargetError,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)
from tenure.runtime._mailbox import Delivery, Mailbox

Outputs = WorkflowContext[None, tuple[str, Any]]


def source(*messages: Any, to: str | None = None, sends: Any = Any) -> Executor:
    """An executor `source` that sends these messages, whatever it is given."""

    async def send(message: str, ctx: WorkflowContext[Any, Any]) -> None:
        for one in messages:
            await ctx.send_message(one, target=to)

    send.__annotations__["ctx"] = WorkflowContext[sends, Any]
    return executor(id="source")(send)


def sink(name: str, kind: Any = str) -> Executor:
    """An executor that yields its name and what it was given."""

    async def take(message: Any, ctx: Outputs) -> None:
        await ctx.yield_output((name, message))

    take.__annotations__["message"] = kind
    return executor(id=name)(take)


async def run(builder: WorkflowBuilder) -> list[tuple[str, Any]]:
    return list((await builder.build().run("go")).outputs)


async def cause_of(builder: WorkflowBuilder) -> BaseException | None:
    """Run, and return what the executor that failed has raised."""
    with pytest.raises(ExecutorError) as caught:
        await builder.build().run("go")
    assert caught.value.executor == "source"
    return caught.value.__cause__


async def test_a_message_goes_along_every_edge_that_leaves_its_sender() -> None:
    a = source("m")
    builder = WorkflowBuilder("w", start=a)
    for name in "xyz":
        builder.add_edge(a, sink(name))
    assert await run(builder) == [("x", "m"), ("y", "m"), ("z", "m")]


async def test_messages_of_one_sender_over_one_edge_arrive_in_the_order_sent() -> None:
    a = source(*range(50))
    builder = WorkflowBuilder("w", start=a).add_edge(a, sink("x", int))
    assert await run(builder) == [("x", number) for number in range(50)]


async def test_messages_of_several_senders_arrive_in_graph_order() -> None:
    a = source("go")
    builder = WorkflowBuilder("w", start=a)
    names = ["late", "early", "middle"]

    def relay(name: str) -> Executor:
        async def send(message: str, ctx: WorkflowContext[str, Any]) -> None:
            for at in range(2):
                await ctx.send_message(f"{name}{at}")

        return executor(id=name)(send)

    x = sink("x")
    builder.add_fan_out(a, [relay(name) for name in names])
    for name in reversed(names):
        builder.add_edge(name, x)
    assert await run(builder) == [
        ("x", f"{name}{at}") for name in names for at in (0, 1)
    ]


async def test_a_condition_lets_pass_what_it_says_yes_to() -> None:
    a = source(1, 2, 3, 4)
    builder = (
        WorkflowBuilder("w", start=a)
        .add_edge(a, sink("even", int), lambda number: number % 2 == 0)
        .add_edge(a, sink("odd", int), lambda number: number % 2)
    )
    # The executors take turns in graph order, each with its messages in order.
    assert await run(builder) == [("even", 2), ("even", 4), ("odd", 1), ("odd", 3)]


async def test_a_condition_is_asked_only_about_messages_that_its_target_takes() -> None:
    asked: list[object] = []

    def condition(message: Any) -> bool:
        asked.append(message)
        return bool(message.startswith("m"))

    a = source("m", 1)
    builder = (
        WorkflowBuilder("w", start=a)
        .add_edge(a, sink("words"), condition)
        .add_edge(a, sink("numbers", int))
    )
    assert await run(builder) == [("words", "m"), ("numbers", 1)]
    assert asked == ["m"]


async def test_a_message_that_every_condition_refuses_ends_there() -> None:
    a = source("m")
    builder = WorkflowBuilder("w", start=a).add_edge(
        a, sink("x"), lambda message: False
    )
    assert await run(builder) == []


async def test_a_fan_out_gives_every_target_the_message() -> None:
    a = source("m")
    targets = [sink(name) for name in "zxy"]
    builder = WorkflowBuilder("w", start=a).add_fan_out(a, targets)
    assert await run(builder) == [("z", "m"), ("x", "m"), ("y", "m")]


async def test_a_fan_out_skips_targets_of_another_type() -> None:
    a = source("m", 1)
    targets = [sink("words"), sink("numbers", int), sink("all", int | str)]
    builder = WorkflowBuilder("w", start=a).add_fan_out(a, targets)
    assert await run(builder) == [
        ("words", "m"),
        ("numbers", 1),
        ("all", "m"),
        ("all", 1),
    ]


async def test_a_selection_chooses_among_the_targets() -> None:
    asked: list[tuple[object, tuple[str, ...]]] = []

    def select(message: str, names: tuple[str, ...]) -> list[str]:
        asked.append((message, names))
        return [name for name in names if name in message]

    a = source("xz", "y", "")
    targets = [sink(name) for name in "xyz"]
    builder = WorkflowBuilder("w", start=a).add_fan_out(a, targets, select)
    assert await run(builder) == [("x", "xz"), ("y", "y"), ("z", "xz")]
    assert asked == [(message, ("x", "y", "z")) for message in ("xz", "y", "")]


async def test_a_selection_that_names_a_stranger_is_told_who_there_is() -> None:
    a = source("m")
    builder = WorkflowBuilder("w", start=a)
    builder.add_fan_out(a, [sink("x"), sink("y")], lambda message, names: ["nobody"])
    cause = await cause_of(builder)
    assert isinstance(cause, UnknownTargetError)
    assert (cause.sender, cause.target, cause.targets) == (
        "source",
        "nobody",
        ("x", "y"),
    )


async def test_a_selection_that_names_one_of_another_type_loses_no_message() -> None:
    a = source("m")
    builder = WorkflowBuilder("w", start=a)
    builder.add_fan_out(
        a, [sink("x"), sink("numbers", int)], lambda message, names: ["numbers"]
    )
    cause = await cause_of(builder)
    assert isinstance(cause, MessageTypeError)
    assert cause.takers == ("'numbers' takes int",)


async def test_a_switch_takes_the_first_case_that_fits_else_the_default() -> None:
    a = source(5, 50, 500)
    builder = WorkflowBuilder("w", start=a).add_switch(
        a,
        [
            Case(lambda number: number > 100, sink("large", int)),
            Case(lambda number: number > 10, sink("middle", int)),
        ],
        default=sink("small", int),
    )
    assert await run(builder) == [("large", 500), ("middle", 50), ("small", 5)]


async def test_a_switch_that_chooses_one_of_another_type_loses_no_message() -> None:
    a = source("m")
    builder = WorkflowBuilder("w", start=a).add_switch(
        a, [Case(lambda message: True, sink("numbers", int))], default=sink("words")
    )
    cause = await cause_of(builder)
    assert isinstance(cause, MessageTypeError)
    assert (cause.sender, cause.message_type) == ("source", "str")
    assert cause.takers == ("'numbers' takes int",)


async def test_a_switch_is_not_asked_about_messages_for_other_edges() -> None:
    def only_words(message: str) -> bool:
        return message.startswith("x")

    a = source(1, "x", "y")
    builder = (
        WorkflowBuilder("w", start=a)
        .add_edge(a, sink("numbers", int))
        .add_switch(a, [Case(only_words, sink("x"))], default=sink("rest"))
    )
    assert await run(builder) == [("numbers", 1), ("x", "x"), ("rest", "y")]


# Types.


async def test_what_nobody_takes_is_an_error_at_the_sender() -> None:
    a = source(b"m")
    builder = WorkflowBuilder("w", start=a)
    builder.add_edge(a, sink("x")).add_edge(a, sink("numbers", int))
    cause = await cause_of(builder)
    assert isinstance(cause, MessageTypeError)
    assert cause.message_type == "bytes"
    assert cause.takers == ("'x' takes str", "'numbers' takes int")


async def test_a_message_where_no_edge_leaves_is_an_error_that_names_the_ways_out():
    cause = await cause_of(WorkflowBuilder("w", start=source("m")))
    assert isinstance(cause, MessageTypeError)
    assert "no edge leaves it" in str(cause)


async def test_an_input_that_the_start_does_not_take_is_refused_in_the_call() -> None:
    workflow = WorkflowBuilder("w", start=sink("x")).build()
    with pytest.raises(MessageTypeError, match=r"the run was given.*'x' takes str"):
        workflow.run(1)
    with pytest.raises(MessageTypeError):
        workflow.stream(1)
    assert not workflow.instance("default").busy


async def test_the_elements_of_a_message_decide_who_takes_it() -> None:
    a = source(["a"], [1], [], sends=list[Any])
    builder = (
        WorkflowBuilder("w", start=a)
        .add_edge(a, sink("words", list[str]))
        .add_edge(a, sink("numbers", list[int]))
    )
    assert await run(builder) == [
        ("words", ["a"]),
        ("words", []),
        ("numbers", [1]),
        ("numbers", []),
    ]


# A target that the sender names.


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_named_target_is_the_only_one_that_gets_the_message(
    by_id: bool,
) -> None:
    x, y = sink("x"), sink("y")

    @executor
    async def a(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message("m", target="y" if by_id else y)

    builder = WorkflowBuilder("w", start=a).add_edge(a, x).add_fan_out(a, [x, y])
    assert await run(builder) == [("y", "m")]


async def test_a_target_that_no_edge_leads_to_is_an_error_at_the_sender() -> None:
    a, x, y = source("m", to="y"), sink("x", Any), sink("y")

    @executor
    async def relay(message: str, ctx: WorkflowContext[str, Any]) -> None: ...

    builder = WorkflowBuilder("w", start=a).add_edge(a, x).add_edge(a, relay)
    cause = await cause_of(builder.add_edge(relay, y))
    assert isinstance(cause, UnknownTargetError)
    assert (cause.target, cause.targets) == ("y", ("x", "relay"))


async def test_a_named_target_must_take_the_message_whoever_else_does() -> None:
    a = source(1, to="words")
    builder = (
        WorkflowBuilder("w", start=a)
        .add_edge(a, sink("words"))
        .add_edge(a, sink("numbers", int))
    )
    cause = await cause_of(builder)
    assert isinstance(cause, MessageTypeError)
    assert cause.takers == ("'words' takes str",)


async def test_a_named_target_behind_a_fan_in_still_waits_for_the_others() -> None:
    a = source("m", to="x")
    builder = WorkflowBuilder("w", start=a).add_fan_in([a], sink("x", list[str]))
    assert await run(builder) == [("x", ["m"])]


# Isolation.


async def test_receivers_get_separate_objects_and_the_sender_keeps_its_own() -> None:
    kept: dict[str, list[str]] = {}

    @executor
    async def a(message: str, ctx: WorkflowContext[list[str], Any]) -> None:
        kept["a"] = ["m"]
        await ctx.send_message(kept["a"])
        kept["a"].append("changed by the sender")

    def keeper(name: str) -> Executor:
        async def keep(message: list[str], ctx: WorkflowContext[None, Any]) -> None:
            kept[name] = message
            message.append(f"changed by {name}")

        return executor(id=name)(keep)

    builder = WorkflowBuilder("w", start=a)
    builder.add_fan_out(a, [keeper("x"), keeper("y")]).add_edge(a, keeper("z"))
    await builder.build().run("go")
    assert kept == {
        "a": ["m", "changed by the sender"],
        **{name: ["m", f"changed by {name}"] for name in "xyz"},
    }


async def test_what_cannot_be_copied_changes_hands_if_there_is_one_receiver() -> None:
    lock = threading.Lock()
    a = source(lock)
    builder = WorkflowBuilder("w", start=a).add_edge(a, sink("x", object))
    [(_, received)] = await run(builder)
    assert received is lock


async def test_what_cannot_be_copied_is_not_shared_by_several_receivers() -> None:
    caught: list[IsolationError] = []

    @executor
    async def a(message: str, ctx: WorkflowContext[object, Any]) -> None:
        try:
            await ctx.send_message(threading.Lock())
        except IsolationError as exc:
            caught.append(exc)

    builder = WorkflowBuilder("w", start=a)
    builder.add_fan_out(a, [sink("x", object), sink("y", object)])
    assert await run(builder) == []
    assert [error.what for error in caught] == ["message of 'a'"]


# The mailbox itself.


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers())))
def test_a_mailbox_gives_what_it_got_by_executor_in_graph_order(
    deliveries: list[tuple[str, int]],
) -> None:
    mailbox = Mailbox({"c": 0, "a": 1, "b": 2})
    for target, message in deliveries:
        mailbox.deliver(target, Delivery(message))
    assert bool(mailbox) == bool(deliveries)
    assert set(mailbox.waiting) == {target for target, _ in deliveries}
    taken = [
        (target, [one.message for one in messages])
        for target, messages in mailbox.take()
    ]
    assert taken == [
        (name, expected)
        for name in "cab"
        if (expected := [number for target, number in deliveries if target == name])
    ]
    assert not mailbox
    assert mailbox.take() == []


@pytest.mark.parametrize(
    "draw",
    [
        lambda builder, a, x: builder.add_edge(a, x, lambda message: 1 / 0),
        lambda builder, a, x: builder.add_fan_out(a, [x], lambda message, names: 1 / 0),
        lambda builder, a, x: builder.add_switch(
            a, [Case(lambda message: 1 / 0, x)], default=x
        ),
        lambda builder, a, x: builder.add_fan_out(a, [x], lambda message, names: None),
    ],
    ids=["condition", "selection", "case", "selection of nothing iterable"],
)
async def test_foreign_code_on_an_edge_that_raises_fails_the_sender_and_commits_nothing(
    draw: Callable[[WorkflowBuilder, Executor, Executor], WorkflowBuilder],
) -> None:
    @executor
    async def a(message: str, ctx: WorkflowContext[str, Any]) -> None:
        ctx.set_state("staged", message)
        await ctx.send_message(message)

    workflow = draw(WorkflowBuilder("w", start=a), a, sink("x")).build()
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("go")
    assert caught.value.executor == "a"
    assert isinstance(caught.value.__cause__, ZeroDivisionError | TypeError)
    assert dict(workflow.state) == {}
    assert not workflow.instance("default").busy
