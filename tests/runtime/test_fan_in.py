"""Fan-ins: one message of each source, in order, and never into another run."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import (
    Executor,
    RunResult,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from tenure.runtime._graph import FanInEdge
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


class Emitter(Executor):
    """Sends as many messages as the text it gets says for it: `x2 y1`."""

    @handler
    async def emit(self, message: str, ctx: WorkflowContext[str, Any]) -> None:
        for part in message.split():
            if part[0] == self.id:
                for at in range(int(part[1:])):
                    await ctx.send_message(f"{self.id}{at}")


def joining(*, kind: Any = list[str]) -> Workflow:
    """A fan-out to `x` and `y`, whose messages a fan-in joins in the order y, x."""
    a, x, y = source_of_input(), Emitter("x"), Emitter("y")
    return (
        WorkflowBuilder("w", start=a)
        .add_fan_out(a, [x, y])
        .add_fan_in([y, x], sink("join", kind))
        .build()
    )


def source_of_input() -> Executor:
    async def send(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message(message)

    return executor(id="source")(send)


def joined(result: RunResult) -> list[list[str]]:
    return [message for _, message in result.outputs]


@given(st.integers(0, 5), st.integers(0, 5))
async def test_a_fan_in_pairs_the_messages_of_its_sources_in_order(
    xs: int, ys: int
) -> None:
    result = await joining().run(f"x{xs} y{ys}")
    assert joined(result) == [[f"y{at}", f"x{at}"] for at in range(min(xs, ys))]
    assert result.events[-1].undelivered == (() if xs == ys else ("join",))  # type: ignore[attr-defined]


async def test_what_waits_in_a_fan_in_is_never_carried_over_to_the_next_run() -> None:
    workflow = joining()
    assert joined(await workflow.run("x1")) == []
    assert joined(await workflow.run("y1")) == []
    assert joined(await workflow.run("x1 y1")) == [["y0", "x0"]]


async def test_a_fan_in_waits_over_several_supersteps_of_one_run() -> None:
    @executor
    async def slow(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message(message, target="relay")

    @executor
    async def relay(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message(message)

    a, x = source_of_input(), Emitter("x")
    workflow = (
        WorkflowBuilder("w", start=a)
        .add_fan_out(a, [x, slow])
        .add_edge(slow, relay)
        .add_fan_in([x, relay], sink("join", list[str]))
        .build()
    )
    assert joined(await workflow.run("x1")) == [["x0", "x1"]]


async def test_a_fan_in_takes_only_what_its_target_could_take_in_a_list() -> None:
    a = source("m", 1, sends=str | int)
    builder = (
        WorkflowBuilder("w", start=a)
        .add_fan_in([a], sink("join", list[int]))
        .add_edge(a, sink("words"))
    )
    assert await run(builder) == [("join", [1]), ("words", "m")]


async def test_two_fan_ins_collect_apart_from_each_other() -> None:
    a, x, y = source_of_input(), Emitter("x"), Emitter("y")
    workflow = (
        WorkflowBuilder("w", start=a)
        .add_fan_out(a, [x, y])
        .add_fan_in([x, y], sink("first", list[str]))
        .add_fan_in([y, x], sink("second", list[str]))
        .build()
    )
    outputs = (await workflow.run("x1 y1")).outputs
    assert outputs == (("first", ["x0", "y0"]), ("second", ["y0", "x0"]))


@given(st.lists(st.sampled_from("ab"), max_size=12))
def test_a_fan_in_holds_what_is_left_over(order: list[str]) -> None:
    edge = FanInEdge(("a", "b"), "join")
    mailbox = Mailbox({"join": 0})
    for at, name in enumerate(order):
        mailbox.collect(edge, name, Delivery(at))
    counts = [order.count("a"), order.count("b")]
    delivered = [one.message for _, messages in mailbox.take() for one in messages]
    assert len(delivered) == min(counts)
    assert [pair[0] for pair in delivered] == [
        at for at, name in enumerate(order) if name == "a"
    ][: min(counts)]
    assert mailbox.undelivered() == (("join",) if counts[0] != counts[1] else ())
