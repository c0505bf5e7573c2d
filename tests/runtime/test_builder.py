"""The builder refuses what cannot run, names the executors, and says how to mend it."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tenure.runtime import (
    Case,
    DefinitionError,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)

Silent = WorkflowContext[None, Any]


def sender(name: str) -> Executor:
    async def send(message: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.send_message(message)

    return executor(id=name)(send)


def taker(name: str, kind: Any = str) -> Executor:
    async def take(message: Any, ctx: Silent) -> None:
        await ctx.yield_output((name, message))

    take.__annotations__["message"] = kind
    return executor(id=name)(take)


def yes(message: object) -> bool:
    return True


def refused(draw: Callable[[], object], *phrases: str) -> DefinitionError:
    """Draw, and hold the refusal to what it must say."""
    with pytest.raises(DefinitionError) as caught:
        draw()
    for phrase in ("workflow 'press'", *phrases):
        assert phrase in str(caught.value)
    assert re.search(r"\. [A-Z].+\.$", str(caught.value)), "a remedy ends the message"
    return caught.value


@pytest.mark.parametrize("start", ["nowhere", None])
def test_an_id_that_nobody_has_is_refused_with_those_that_are_known(
    start: str | None,
) -> None:
    a = sender("a")
    builder = WorkflowBuilder("press", start=start or a).add_edge(a, "nobody")
    refused(builder.build, "no executor has the id", "Known are 'a'", "itself")


def test_an_id_may_be_used_before_its_executor_is_drawn() -> None:
    a, b = sender("a"), taker("b")
    workflow = (
        WorkflowBuilder("press", start="a").add_edge("a", "b").add_edge(a, b, yes)
    ).build()
    assert list(workflow.graph.executors) == ["a", "b"]


def test_two_executors_with_one_id_are_refused() -> None:
    refused(
        lambda: WorkflowBuilder("press", start=sender("a")).add_edge("a", taker("a")),
        "two executors have the id 'a'",
        "another id",
    )


def test_one_executor_may_be_drawn_many_times() -> None:
    a, b, c = sender("a"), sender("b"), taker("c")
    workflow = (
        WorkflowBuilder("press", start=a)
        .add_edge(a, b)
        .add_edge(b, a)
        .add_edge(a, c)
        .add_edge(b, c)
        .build()
    )
    assert list(workflow.graph.executors) == ["a", "b", "c"]


Draw = Callable[[WorkflowBuilder, Executor, Executor], WorkflowBuilder]
KINDS_OF_EDGE: dict[str, Draw] = {
    "edge": lambda builder, a, b: builder.add_edge(a, b),
    "conditional edge": lambda builder, a, b: builder.add_edge(a, b, yes),
    "chain": lambda builder, a, b: builder.add_chain([a, b]),
    "fan-out": lambda builder, a, b: builder.add_fan_out(a, [taker("other"), b]),
    "selected fan-out": lambda builder, a, b: builder.add_fan_out(
        a, [b], select=lambda message, names: names
    ),
    "case of a switch": lambda builder, a, b: builder.add_switch(
        a, [Case(yes, b)], default=taker("other")
    ),
    "default of a switch": lambda builder, a, b: builder.add_switch(
        a, [Case(yes, taker("other"))], default=b
    ),
}


@pytest.mark.parametrize("draw", KINDS_OF_EDGE.values(), ids=KINDS_OF_EDGE)
def test_a_type_that_nobody_takes_is_refused_along_every_kind_of_edge(
    draw: Draw,
) -> None:
    a, b = sender("a"), taker("b", int)
    builder = draw(WorkflowBuilder("press", start=a), a, b)
    refused(
        builder.build,
        "'a' sends str, but 'b' takes int",
        "Let 'a' send what 'b' takes",
        "give 'b' a handler for it",
    )


@pytest.mark.parametrize("draw", KINDS_OF_EDGE.values(), ids=KINDS_OF_EDGE)
def test_a_type_that_is_taken_passes_along_every_kind_of_edge(draw: Draw) -> None:
    a, b = sender("a"), taker("b", str | int)
    assert draw(WorkflowBuilder("press", start=a), a, b).build().name == "press"


def test_an_executor_that_declares_to_send_nothing_has_no_edge_to_draw() -> None:
    a, b = taker("a"), taker("b")
    builder = WorkflowBuilder("press", start=a).add_edge(a, b)
    refused(builder.build, "'a' sends nothing, but 'b' takes str", "first argument")


def test_a_fan_in_brings_a_list() -> None:
    a, b = sender("a"), taker("b", str)
    builder = WorkflowBuilder("press", start=a).add_fan_in([a], b)
    refused(
        builder.build,
        "'b' takes str, but a fan-in brings a list",
        "Let a handler of 'b' take list[str]",
    )


def test_a_fan_in_brings_a_list_of_what_each_source_sends() -> None:
    a, b = sender("a"), taker("b", list[int])
    builder = WorkflowBuilder("press", start=a).add_fan_in([a], b)
    refused(builder.build, "'a' sends str, but 'b' takes list[int]", "'b' a handler")


@pytest.mark.parametrize("kind", [list, list[str], list[str] | None, Any, object])
def test_a_fan_in_may_lead_to_everything_that_takes_a_list(kind: Any) -> None:
    a, b = sender("a"), taker("b", kind)
    workflow = WorkflowBuilder("press", start=a).add_fan_in([a], b).build()
    assert workflow.graph.reachable_from("a") == ("b",)


def test_executors_that_no_message_can_reach_are_refused_by_name() -> None:
    a, b, c, d = sender("a"), taker("b"), sender("c"), taker("d")
    builder = WorkflowBuilder("press", start=a).add_edge(a, b).add_chain([c, d])
    refused(
        builder.build,
        "no message can reach 'c', 'd' from 'a'",
        "Draw an edge to it, or leave it out",
    )


def test_a_switch_needs_a_default() -> None:
    a, b = sender("a"), taker("b")
    builder = WorkflowBuilder("press", start=a).add_switch(a, [Case(yes, b)])
    refused(builder.build, "the switch of 'a' has no default", "Pass default=")


@pytest.mark.parametrize("count", [0, 1])
def test_a_chain_has_two_executors_at_least(count: int) -> None:
    a = sender("a")
    builder = WorkflowBuilder("press", start=a)
    refused(lambda: builder.add_chain([a][:count]), "fewer than two", "at least two")


def test_an_edge_that_is_drawn_twice_would_deliver_twice() -> None:
    a, b = sender("a"), taker("b")
    builder = WorkflowBuilder("press", start=a).add_edge(a, b)
    refused(
        lambda: builder.add_edge(a, b),
        "the edge from 'a' to 'b' is drawn twice",
        "every message arrives twice",
    )


def test_edges_with_conditions_may_lead_to_the_same_executor() -> None:
    a, b = sender("a"), taker("b")
    builder = WorkflowBuilder("press", start=a).add_edge(a, b)
    workflow = builder.add_edge(a, b, lambda message: False).build()
    assert len(workflow.graph.leaving["a"]) == 2


def test_a_fan_out_names_each_target_once_and_has_one_at_least() -> None:
    a, b = sender("a"), taker("b")
    builder = WorkflowBuilder("press", start=a)
    refused(
        lambda: builder.add_fan_out(a, [b, taker("c"), b]),
        "the fan-out of 'a' names 'b' twice",
        "Name each once",
    )
    refused(lambda: builder.add_fan_out(a, []), "'a' has no targets", "at least one")


def test_a_fan_in_names_each_source_once_and_has_one_at_least() -> None:
    a, b = sender("a"), taker("b", list)
    builder = WorkflowBuilder("press", start=a)
    refused(
        lambda: builder.add_fan_in([a, "a"], b),
        "the fan-in of 'b' names 'a' twice",
        "Name each once",
    )
    refused(lambda: builder.add_fan_in([], b), "'b' has no sources", "at least one")


def test_a_workflow_has_a_name() -> None:
    with pytest.raises(DefinitionError, match=r"no name.*Give WorkflowBuilder a name"):
        WorkflowBuilder("", start=sender("a"))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_run_needs_a_superstep_at_least(limit: int) -> None:
    refused(
        lambda: WorkflowBuilder("press", start=sender("a"), max_supersteps=limit),
        f"max_supersteps is {limit}",
        "at least one",
    )


@pytest.mark.parametrize(
    "limit",
    [
        *({"concurrency": one} for one in (0, -1, 1.5, "2", True)),
        *({"timeout": one} for one in (0, -1, float("nan"), "2", True)),
        {"retry": 3},
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(limit: dict[str, Any]) -> None:
    @executor(**limit)
    async def work(message: str, ctx: WorkflowContext[None, str]) -> None: ...

    [(name, value)] = limit.items()
    with pytest.raises(DefinitionError, match=f"'work': its {name} is {value!r}"):
        WorkflowBuilder("press", start=work).build()


def test_a_limit_may_be_an_attribute_of_the_class() -> None:
    class Work(Executor):
        concurrency = 0

        def __init__(self) -> None:
            super().__init__("work", concurrency=self.concurrency)

        @handler
        async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None: ...

    with pytest.raises(DefinitionError, match="'work': its concurrency is 0"):
        WorkflowBuilder("press", start=Work()).build()


def test_an_unknown_policy_is_refused() -> None:
    refused(
        lambda: WorkflowBuilder("press", start=sender("a"), on_conflict="queue"),  # type: ignore[arg-type]
        "on_conflict is 'queue'",
        "'reject', 'wait', 'supersede'",
    )


# Factories.


class Counter(Executor):
    @handler
    async def count(self, message: str, ctx: Silent) -> None: ...


def needs_an_argument(number: int) -> Executor:
    raise AssertionError(number)


def raises() -> Executor:
    raise OSError("no disk")


@pytest.mark.parametrize(
    ("factory", "phrases"),
    [
        (raises, ("raises", "OSError: no disk", "take no argument")),
        (needs_an_argument, ("needs_an_argument", "TypeError", "needs @executor")),
        (lambda: None, ("returned None", "return an Executor")),
        (dict, ("<class 'dict'> returned {}", "return an Executor")),
        (lambda: Counter, ("returned <class", "return an Executor")),
    ],
    ids=["raises", "needs an argument", "returns None", "returns a dict", "a class"],
)
def test_a_factory_that_makes_no_executor_is_refused(
    factory: Callable[[], Executor], phrases: tuple[str, ...]
) -> None:
    refused(lambda: WorkflowBuilder("press", start=factory), "the factory", *phrases)


@pytest.mark.parametrize("junk", [42, None, b"a", object()], ids=repr)
def test_what_is_no_executor_at_all_is_refused(junk: Any) -> None:
    refused(
        lambda: WorkflowBuilder("press", start=junk),
        f"{junk!r} is not an executor",
        "an Executor, a factory that returns one, or an id",
    )


def test_one_factory_is_one_executor_however_often_it_is_named() -> None:
    a = sender("a")
    workflow = (
        WorkflowBuilder("press", start=a)
        .add_edge(a, Counter)
        .add_edge(a, Counter, yes)
        .build()
    )
    assert list(workflow.graph.executors) == ["a", "Counter"]


def test_two_factories_that_make_executors_of_one_id_are_refused() -> None:
    refused(
        lambda: WorkflowBuilder("press", start=Counter).add_edge(
            Counter, lambda: Counter()
        ),
        "two executors have the id 'Counter'",
    )


async def test_a_factory_that_fails_later_fails_only_that_run() -> None:
    made: list[Executor] = []

    def moody() -> Executor:
        if len(made) == 1:
            made.append(Counter())
            raise OSError("no disk")
        made.append(Counter())
        return made[-1]

    workflow = WorkflowBuilder("press", start=moody).build()
    with pytest.raises(
        DefinitionError, match=r"the factory .* raised OSError"
    ) as caught:
        await workflow.run("a")
    assert isinstance(caught.value.__cause__, OSError)
    assert (await workflow.run("a")).supersteps == 1


# Freezing.


def test_what_is_drawn_after_build_does_not_change_the_workflow() -> None:
    a, b, c = sender("a"), taker("b"), taker("c")
    builder = WorkflowBuilder("press", start=a).add_edge(a, b)
    first = builder.build()
    second = builder.add_edge(a, c).build()
    assert first.graph.reachable_from("a") == ("b",)
    assert second.graph.reachable_from("a") == ("b", "c")
    assert list(first.graph.executors) == ["a", "b"]


async def test_two_workflows_of_one_builder_share_no_state() -> None:
    @executor
    async def note(message: str, ctx: Silent) -> None:
        ctx.set_state("message", message)

    builder = WorkflowBuilder("press", start=note)
    first, second = builder.build(), builder.build()
    await first.run("a")
    assert dict(first.state) == {"message": "a"}
    assert dict(second.state) == {}
