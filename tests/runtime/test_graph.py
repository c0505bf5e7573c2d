"""The frozen graph: order, reachability, and whose executors a run gets."""

import dataclasses

import pytest

from tenure.runtime import (
    Case,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
from tenure.runtime._graph import FanInEdge, FanOutEdge, Graph, SingleEdge, SwitchEdge


class Relay(Executor):
    @handler
    async def relay(self, message: str, ctx: WorkflowContext[str, str]) -> None: ...

    @handler
    async def gather(
        self, messages: list[str], ctx: WorkflowContext[str, str]
    ) -> None: ...


def yes(message: object) -> bool:
    return True


@pytest.fixture
def graph() -> Graph:
    a, b, c, d, e = (Relay(name) for name in "abcde")
    return (
        WorkflowBuilder("shape", start=a)
        .add_fan_out(a, [c, b])
        .add_fan_in([b, c], d)
        .add_switch(d, [Case(yes, e), Case(yes, a)], default=e)
        .add_edge(e, "a", yes)
        .build()
        .graph
    )


def test_executors_are_in_the_order_of_their_definition(graph: Graph) -> None:
    assert list(graph.executors) == ["a", "c", "b", "d", "e"]
    assert dict(graph.positions) == {"a": 0, "c": 1, "b": 2, "d": 3, "e": 4}
    assert [one.position for one in graph.executors.values()] == [0, 1, 2, 3, 4]


def test_every_edge_knows_its_ends(graph: Graph) -> None:
    [fan_out], [fan_in], [switch], [single] = (graph.leaving[name] for name in "abde")
    assert isinstance(fan_out, FanOutEdge)
    assert (fan_out.sources, fan_out.targets) == (("a",), ("c", "b"))
    assert isinstance(fan_in, FanInEdge)
    assert (fan_in.sources, fan_in.targets) == (("b", "c"), ("d",))
    assert isinstance(switch, SwitchEdge)
    assert (switch.sources, switch.targets) == (("d",), ("e", "a"))
    assert isinstance(single, SingleEdge)
    assert (single.sources, single.targets) == (("e",), ("a",))


def test_a_fan_in_leaves_each_of_its_sources(graph: Graph) -> None:
    assert graph.leaving["b"] == graph.leaving["c"]
    assert graph.leaving["b"][0] is graph.leaving["c"][0]


def test_reachable_executors_are_named_once_in_order(graph: Graph) -> None:
    assert graph.reachable_from("a") == ("c", "b")
    assert graph.reachable_from("d") == ("e", "a")


def test_a_graph_cannot_be_changed(graph: Graph) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.start = "b"  # type: ignore[misc]


def test_without_factories_every_run_shares_the_executors(graph: Graph) -> None:
    assert not graph.has_factories
    assert graph.dispatches() is graph.dispatches()


def test_a_factory_makes_an_executor_for_each_run_and_leaves_the_others_shared() -> (
    None
):
    start = Relay("start")
    graph = WorkflowBuilder("shape", start=start).add_edge(start, Relay).build().graph
    first, second = graph.dispatches(), graph.dispatches()
    assert graph.has_factories
    assert first["start"] is second["start"]
    assert first["Relay"] is not second["Relay"]
    assert first["Relay"].handlers[0].call != second["Relay"].handlers[0].call
