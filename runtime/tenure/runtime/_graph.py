"""Executors and edges, frozen: what is wired to what, checked once by the builder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tenure.runtime._dispatch import Dispatch
from tenure.runtime._executor import Executor
from tenure.runtime.errors import DefinitionError

Condition = Callable[[Any], bool]
Selection = Callable[[Any, tuple[str, ...]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Case:
    """One way out of a switch.

    Attributes:
        when: Says whether a message goes this way; cases are asked in order.
        target: The executor that it goes to.
    """

    when: Callable[[Any], bool]
    target: Any


@dataclass(frozen=True, slots=True)
class SingleEdge:
    """From one executor to another, for the messages that fulfil the condition."""

    source: str
    target: str
    condition: Condition | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it comes from."""
        return (self.source,)

    @property
    def targets(self) -> tuple[str, ...]:
        """Where it may lead."""
        return (self.target,)


@dataclass(frozen=True, slots=True)
class FanOutEdge:
    """From one executor to several, or to those that are selected."""

    source: str
    targets: tuple[str, ...]
    select: Selection | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it comes from."""
        return (self.source,)


@dataclass(frozen=True, slots=True)
class SwitchEdge:
    """From one executor to the first case that fits, else to the default."""

    source: str
    cases: tuple[tuple[Condition, str], ...]
    default: str

    @property
    def sources(self) -> tuple[str, ...]:
        """Where it comes from."""
        return (self.source,)

    @property
    def targets(self) -> tuple[str, ...]:
        """Where it may lead."""
        return tuple(dict.fromkeys((*(to for _, to in self.cases), self.default)))


@dataclass(frozen=True, slots=True)
class FanInEdge:
    """From several executors to one, as a list once each has sent a message."""

    sources: tuple[str, ...]
    target: str

    @property
    def targets(self) -> tuple[str, ...]:
        """Where it leads."""
        return (self.target,)


Edge = SingleEdge | FanOutEdge | SwitchEdge | FanInEdge


@dataclass(frozen=True, slots=True)
class GraphExecutor:
    """One executor in a graph.

    Attributes:
        executor: The instance that all runs share, or the factory's specimen.
        factory: Makes an instance for each run, where there is one.
        dispatch: Finds the specimen's handlers.
        position: Its place in the graph's order.
    """

    executor: Executor
    factory: Callable[[], Executor] | None
    dispatch: Dispatch
    position: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The frozen graph of a workflow.

    Attributes:
        name: Name of the workflow.
        start: The executor that gets a run's input.
        executors: All executors by id, in graph order: the order of their definition.
        leaving: For each executor the edges that leave it, in order of definition.
        max_supersteps: How many supersteps a run may take.
        shared: What finds the handlers of the executors that all runs share.
        positions: Place of each executor in the graph's order.
        fan_ins: All fan-ins, in order.
        has_factories: Whether some executor is made anew for each run.
    """

    name: str
    start: str
    executors: Mapping[str, GraphExecutor]
    leaving: Mapping[str, tuple[Edge, ...]]
    max_supersteps: int
    shared: Mapping[str, Dispatch] = field(init=False)
    positions: Mapping[str, int] = field(init=False)
    has_factories: bool = field(init=False)
    fan_ins: tuple[FanInEdge, ...] = field(init=False)

    def __post_init__(self) -> None:
        # Derived once, because every run asks for them.
        everyone = self.executors.items()
        freeze = object.__setattr__
        freeze(self, "shared", {name: one.dispatch for name, one in everyone})
        freeze(self, "positions", {name: one.position for name, one in everyone})
        freeze(self, "has_factories", any(one.factory for _, one in everyone))
        edges = {id(one): one for leaving in self.leaving.values() for one in leaving}
        fan_ins = (one for one in edges.values() if isinstance(one, FanInEdge))
        freeze(self, "fan_ins", tuple(fan_ins))

    def reachable_from(self, executor: str) -> tuple[str, ...]:
        """Return the executors that edges of `executor` lead to, in order."""
        return tuple(
            dict.fromkeys(
                target for edge in self.leaving[executor] for target in edge.targets
            )
        )

    def dispatches(self) -> Mapping[str, Dispatch]:
        """Return what finds handlers for one run; factories make executors now.

        Raises:
            DefinitionError: A factory made none.
        """
        if not self.has_factories:
            return self.shared
        return {
            name: one.dispatch
            if one.factory is None
            else Dispatch(made_by(one.factory, self.name), self.name)
            for name, one in self.executors.items()
        }


def made_by(factory: Callable[[], Any], workflow: str) -> Executor:
    """Return the executor that a factory makes.

    Args:
        factory: What users gave for it.
        workflow: Name of the workflow, for errors.

    Raises:
        DefinitionError: It made none.
    """
    try:
        made = factory()
    except Exception as exc:
        raise DefinitionError(
            workflow,
            f"the factory {factory!r} raised {type(exc).__name__}: {exc}",
            "Let it take no argument; a plain function needs @executor",
        ) from exc
    if not isinstance(made, Executor):
        raise DefinitionError(
            workflow,
            f"the factory {factory!r} returned {made!r}",
            "Let it return an Executor; a plain function needs @executor",
        )
    return made
