"""Draw a workflow, check it, freeze it."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final, Self, cast

from tenure.instrumentation import Recorder
from tenure.runtime._checkpoint import Store
from tenure.runtime._checks import check_graph
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._executor import Executor
from tenure.runtime._graph import (
    Case,
    Condition,
    Edge,
    FanInEdge,
    FanOutEdge,
    Graph,
    GraphExecutor,
    Selection,
    SingleEdge,
    SwitchEdge,
    made_by,
)
from tenure.runtime._holding import POLICIES, ConflictPolicy
from tenure.runtime._keeper import (
    GRAPH_CHANGE_POLICIES,
    SAVE_FAILURE_POLICIES,
    GraphChangePolicy,
    SaveFailurePolicy,
)
from tenure.runtime._workflow import Workflow
from tenure.runtime.errors import DefinitionError

ExecutorRef = Executor | Callable[[], Executor] | str
"""An executor, a factory that makes one for each run, or the id of one drawn before."""


class WorkflowBuilder:
    """Draws a workflow; `build` checks it and returns it.

    Wherever an executor is expected, a factory will do (an `Executor` class or a
    function without arguments): each run then gets an executor of its own. The id of an
    executor that is drawn elsewhere will do too.

    Args:
        name: Name of the workflow.
        start: The executor that gets a run's input.
        max_supersteps: How many supersteps a run may take.
        store: Where instances are kept: `SqliteStore(directory)`, `MemoryStore()`, or
            nowhere but in memory, without checkpoints, by default.
        on_save_failure: What a run does whose checkpoint cannot be saved: `"fail"`, or
            `"warn"` and go on in memory; the next checkpoint makes up for it. A run
            that has lost its instance fails all the same.
        on_graph_change: What a run does that is to go on from a checkpoint of another
            graph, with messages or answers: `"fail"`, or `"warn"` and go on, if this
            graph has a place for all that is in it.
        on_conflict: What a run does by default that finds the instance owned:
            `"reject"`, `"wait"` or `"supersede"`.
        recorder: Who tells what happens; one of its own by default.

    Raises:
        DefinitionError: An argument cannot be used.
    """

    def __init__(
        self,
        name: str,
        *,
        start: ExecutorRef,
        max_supersteps: int = 100,
        store: Store | None = None,
        on_save_failure: SaveFailurePolicy = "fail",
        on_graph_change: GraphChangePolicy = "fail",
        on_conflict: ConflictPolicy = "reject",
        recorder: Recorder | None = None,
    ) -> None:
        self._name: Final = name
        self._max_supersteps: Final = max_supersteps
        self._on_conflict: Final[ConflictPolicy] = on_conflict
        self._recorder: Final = recorder
        self._store: Final = store
        self._on_save_failure: Final[SaveFailurePolicy] = on_save_failure
        self._on_graph_change: Final[GraphChangePolicy] = on_graph_change
        self._executors: Final[dict[str, GraphExecutor]] = {}
        self._factories: Final[dict[int, tuple[object, str]]] = {}
        self._mentioned: Final[dict[str, None]] = {}
        self._edges: Final[list[Edge]] = []
        self._without_default: Final[list[str]] = []
        if not name:
            raise self._refuse("it has no name", "Give WorkflowBuilder a name")
        if max_supersteps < 1:
            raise self._refuse(
                f"max_supersteps is {max_supersteps}", "Allow at least one superstep"
            )
        for policy, given, known in (
            ("on_conflict", on_conflict, POLICIES),
            ("on_save_failure", on_save_failure, SAVE_FAILURE_POLICIES),
            ("on_graph_change", on_graph_change, GRAPH_CHANGE_POLICIES),
        ):
            if given not in known:
                raise self._refuse(f"{policy} is {given!r}", f"Use one of {known}")
        self._start: Final = self._place(start)

    def add_edge(
        self,
        source: ExecutorRef,
        target: ExecutorRef,
        condition: Condition | None = None,
    ) -> Self:
        """Lead messages from `source` to `target`.

        Args:
            source: Where they come from.
            target: Where they go.
            condition: Called with a message; only those it says yes to go this way.
        """
        edge = SingleEdge(self._place(source), self._place(target), condition)
        if condition is None and edge in self._edges:
            raise self._refuse(
                f"the edge from {edge.source!r} to {edge.target!r} is drawn twice",
                "Remove one, or every message arrives twice",
            )
        self._edges.append(edge)
        return self

    def add_fan_out(
        self,
        source: ExecutorRef,
        targets: Sequence[ExecutorRef],
        select: Selection | None = None,
    ) -> Self:
        """Lead each message from `source` to all `targets`; each gets a copy.

        Args:
            source: Where messages come from.
            targets: Where they go, in this order.
            select: Called with a message and the targets' ids; returns the ids of those
                that get it.
        """
        edge = FanOutEdge(self._place(source), tuple(map(self._place, targets)), select)
        self._several(edge.targets, f"the fan-out of {edge.source!r}", "targets")
        self._edges.append(edge)
        return self

    def add_fan_in(self, sources: Sequence[ExecutorRef], target: ExecutorRef) -> Self:
        """Lead one message of each of `sources` to `target`, together, as a list.

        The list is in the order of `sources`, and of what the message of one run has
        set going: what lacks others is dropped at the end of the run, or waits for the
        answers that the run has asked for. It never meets what another message has set
        going.

        Args:
            sources: Where messages come from.
            target: Where the list goes; its handler takes `list[T]`.
        """
        edge = FanInEdge(tuple(map(self._place, sources)), self._place(target))
        self._several(edge.sources, f"the fan-in of {edge.target!r}", "sources")
        self._edges.append(edge)
        return self

    def add_switch(
        self,
        source: ExecutorRef,
        cases: Sequence[Case],
        default: ExecutorRef | None = None,
    ) -> Self:
        """Lead each message from `source` to the first case that fits.

        Args:
            source: Where messages come from.
            cases: Asked in order.
            default: Where a message goes that fits no case. It is required, so that no
                message is lost; `build` says so.
        """
        name = self._place(source)
        ways = tuple((case.when, self._place(case.target)) for case in cases)
        if default is None:
            self._without_default.append(name)
            return self
        self._edges.append(SwitchEdge(name, ways, self._place(default)))
        return self

    def add_chain(self, executors: Sequence[ExecutorRef]) -> Self:
        """Lead messages along `executors`, each to the next."""
        if len(executors) < 2:
            raise self._refuse(
                "a chain has fewer than two executors", "Name at least two"
            )
        for source, target in pairwise(executors):
            self.add_edge(source, target)
        return self

    def build(self) -> Workflow:
        """Check what was drawn and return the workflow.

        Raises:
            DefinitionError: It cannot run as drawn; the error names the executors and
                says how to mend it.
        """
        for name in self._without_default:
            raise self._refuse(
                f"the switch of {name!r} has no default",
                "Pass default=, so that a message which fits no case is not lost",
            )
        for name in self._mentioned:
            if name not in self._executors:
                known = ", ".join(map(repr, self._executors)) or "none"
                raise self._refuse(
                    f"no executor has the id {name!r}",
                    f"Known are {known}; draw an edge with the executor itself",
                )
        graph = Graph(
            name=self._name,
            start=self._start,
            executors=dict(self._executors),
            leaving={
                name: tuple(edge for edge in self._edges if name in edge.sources)
                for name in self._executors
            },
            max_supersteps=self._max_supersteps,
        )
        check_graph(graph)
        return Workflow(
            graph,
            self._on_conflict,
            self._recorder,
            self._store,
            self._on_save_failure,
            self._on_graph_change,
        )

    def _place(self, reference: Any) -> str:  # noqa: ANN401 - users may pass anything
        """Take an executor into the graph and return its id."""
        if isinstance(reference, str):
            self._mentioned[reference] = None
            return reference
        if isinstance(reference, Executor):
            return self._add(reference, None)
        if not callable(reference):
            raise self._refuse(
                f"{reference!r} is not an executor",
                "Pass an Executor, a factory that returns one, or an id",
            )
        if id(reference) in self._factories:
            return self._factories[id(reference)][1]
        factory = cast("Callable[[], Executor]", reference)
        name = self._add(made_by(factory, self._name), factory)
        self._factories[id(reference)] = (factory, name)
        return name

    def _add(self, specimen: Executor, factory: Callable[[], Executor] | None) -> str:
        name = specimen.id
        known = self._executors.get(name)
        if known is None:
            self._executors[name] = GraphExecutor(
                specimen,
                factory,
                Dispatch(specimen, self._name),
                len(self._executors),
            )
        elif known.executor is not specimen:
            raise self._refuse(
                f"two executors have the id {name!r}: {known.executor!r} and "
                f"{specimen!r}",
                "Give one of them another id",
            )
        return name

    def _several(self, names: tuple[str, ...], what: str, role: str) -> None:
        if not names:
            raise self._refuse(f"{what} has no {role}", "Name at least one")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise self._refuse(f"{what} names {twice!r} twice", "Name each once")

    def _refuse(self, problem: str, remedy: str) -> DefinitionError:
        return DefinitionError(self._name, problem, remedy)
