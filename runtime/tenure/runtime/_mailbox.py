"""Messages between two supersteps, and where they go. Pure, one mailbox per run."""

from collections import deque
from collections.abc import Container, Iterable, Mapping
from typing import Any, Final, NamedTuple

from opentelemetry.trace import SpanContext

from tenure.runtime._checkpoint import Collected
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._graph import (
    Edge,
    FanInEdge,
    FanOutEdge,
    Graph,
    SingleEdge,
    SwitchEdge,
)
from tenure.runtime._isolation import IMMUTABLE, isolate
from tenure.runtime._requests import Answer
from tenure.runtime.errors import IsolationError, MessageTypeError, UnknownTargetError


class Delivery(NamedTuple):
    """A message on its way.

    Attributes:
        message: The message.
        sources: Spans that sent it, where there are: links, not parents.
        id: Its identity in its run, where messages are told.
        begun_by: The run whose message has led to it.
    """

    message: Any
    sources: tuple[SpanContext, ...] = ()
    id: str = ""
    begun_by: str = ""


class Sent(NamedTuple):
    """A message as its sender left it.

    Attributes:
        message: The message, isolated from the sender.
        target: The executor that the sender named, if it did.
        sources: The span that sent it, where there is one.
        begun_by: The run whose message has led to it.
    """

    message: Any
    target: str | None = None
    sources: tuple[SpanContext, ...] = ()
    begun_by: str = ""


class Router:
    """Says where messages of one executor go.

    Shared between runs; all its answers are pure.

    Args:
        graph: The graph.
        source: The executor.
    """

    __slots__ = (
        "_dispatches",
        "_known",
        "_plain",
        "edges",
        "single",
        "source",
        "targets",
    )

    def __init__(self, graph: Graph, source: str) -> None:
        self.source: Final = source
        self.edges: Final = graph.leaving[source]
        self.targets: Final = graph.reachable_from(source)
        self._dispatches: Final[Mapping[str, Dispatch]] = {
            target: graph.executors[target].dispatch for target in self.targets
        }
        self._plain: Final = all(self._by_class(edge) for edge in self.edges)
        self._known: Final[set[type]] = set()
        # Where every message goes that was admitted, if there is one way only.
        self.single: Final = _only_way(self.edges)

    def admit(self, message: object, target: str | None) -> Any:  # noqa: ANN401
        """Check that somebody can take `message`, and isolate it from its sender.

        Args:
            message: The message.
            target: The executor that the sender named, if it did.

        Returns:
            The message to send.

        Raises:
            MessageTypeError: No executor that an edge leads to takes it.
            UnknownTargetError: No edge leads to `target`.
            IsolationError: It goes to several executors and cannot be copied.
        """
        if target is not None and target not in self._dispatches:
            raise UnknownTargetError(self.source, target, self.targets)
        kind = type(message)
        if kind not in self._known or target is not None:
            self._check(message, target)
        if kind in IMMUTABLE:
            return message
        try:
            return isolate(message, f"message of {self.source!r}")
        except IsolationError:
            # With a single receiver the message changes hands; with several it would
            # be one object that all of them share.
            if len(self.targets) == 1:
                return message
            raise

    def routes(self, sent: Sent) -> list[tuple[FanInEdge | str, Any]]:
        """Say where a message goes, and what each receiver gets.

        Args:
            sent: The message; the first receiver gets it, all others a copy.

        Returns:
            Pairs of a receiver (an executor, or the fan-in that collects for it) and
            the message.

        Raises:
            MessageTypeError: A switch or a selection chose an executor that does not
                take it.
            UnknownTargetError: A selection named an executor that is not a target.
        """
        message = sent.message
        if self.single is not None:
            return [(self.single, message)]
        receivers = [
            receiver
            for edge in self.edges
            for receiver in self._receivers(edge, message, sent.target)
        ]
        what = f"message of {self.source!r}"
        return [
            (receiver, isolate(message, what) if position else message)
            for position, receiver in enumerate(receivers)
        ]

    def _receivers(
        self, edge: Edge, message: object, target: str | None
    ) -> list[FanInEdge | str]:
        # Conditions are asked about messages only that the edge could carry.
        takers = [name for name in edge.targets if self._takes(edge, name, message)]
        if not takers or target not in (None, *takers):
            return []
        match edge:
            case FanInEdge():
                return [edge]
            case SingleEdge():
                fits = edge.condition is None or edge.condition(message)
                chosen = takers if fits else []
            case SwitchEdge():
                chosen = self._insist(edge, [_switched(edge, message)], message)
            case FanOutEdge():
                chosen = takers
                if edge.select is not None:
                    names = edge.select(message, edge.targets)
                    chosen = self._insist(edge, names, message)
        return [name for name in chosen if target in (None, name)]

    def _insist(self, edge: Edge, names: Iterable[str], message: object) -> list[str]:
        """Return those that the graph's author chose, if they all take the message."""
        chosen = list(names)
        for name in chosen:
            if name not in edge.targets:
                raise UnknownTargetError(self.source, name, edge.targets)
            if self._dispatches[name].find(message) is None:
                raise self._nobody(message, (name,))
        return chosen

    def _check(self, message: object, target: str | None) -> None:
        for edge in self.edges:
            for name in edge.targets:
                if target in (None, name) and self._takes(edge, name, message):
                    if self._plain and target is None:
                        self._known.add(type(message))
                    return
        raise self._nobody(message, self.targets if target is None else (target,))

    def _nobody(self, message: object, names: tuple[str, ...]) -> MessageTypeError:
        takers = tuple(
            f"{name!r} takes {self._dispatches[name].takes()}" for name in names
        )
        return MessageTypeError(self.source, type(message).__qualname__, takers)

    def _takes(self, edge: Edge, name: str, message: object) -> bool:
        dispatch = self._dispatches[name]
        if isinstance(edge, FanInEdge):
            return dispatch.takes_listed(message)
        return dispatch.find(message) is not None

    def _by_class(self, edge: Edge) -> bool:
        """Say whether the class of a message alone decides who takes it."""
        targets = [self._dispatches[name] for name in edge.targets]
        if isinstance(edge, FanInEdge):
            return all(one.listed_by_class for one in targets)
        return all(one.by_class for one in targets)


def _only_way(edges: tuple[Edge, ...]) -> FanInEdge | str | None:
    """Return where every message goes that was admitted, if there is one way only."""
    if len(edges) != 1:
        return None
    [edge] = edges
    if isinstance(edge, FanInEdge):
        return edge
    if isinstance(edge, SingleEdge) and edge.condition is None:
        return edge.target
    return None


def _switched(edge: SwitchEdge, message: object) -> str:
    for when, target in edge.cases:
        if when(message):
            return target
    return edge.default


class _FanIn:
    """What one fan-in has collected of what one run has begun."""

    __slots__ = ("edge", "filled", "held")

    def __init__(self, edge: FanInEdge) -> None:
        self.edge: Final = edge
        self.held: Final[dict[str, deque[Delivery]]] = {
            source: deque() for source in edge.sources
        }
        # Invariant: how many of `held` are not empty.
        self.filled = 0

    def put(self, source: str, delivery: Delivery) -> list[Delivery] | None:
        """Keep a message; return one of each source once all have sent."""
        queue = self.held[source]
        if not queue:
            self.filled += 1
        queue.append(delivery)
        if self.filled < len(self.held):
            return None
        together = [queue.popleft() for queue in self.held.values()]
        self.filled = sum(1 for queue in self.held.values() if queue)
        return together


class Mailbox:
    """The messages of one run that wait for its next superstep.

    Args:
        positions: Place of each executor in the graph's order.
    """

    __slots__ = ("_fan_ins", "_positions", "_waiting")

    def __init__(self, positions: Mapping[str, int]) -> None:
        self._positions: Final = positions
        self._waiting: dict[str, list[Delivery]] = {}
        # By fan-in and the run that has begun what it collects.
        self._fan_ins: Final[dict[tuple[int, str], _FanIn]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Executors that messages wait for."""
        return tuple(self._waiting)

    @property
    def collecting(self) -> bool:
        """Whether a fan-in has got anything in this run."""
        return bool(self._fan_ins)

    def undelivered(self, awaited: Container[str] = ()) -> tuple[str, ...]:
        """Return the executors for which a fan-in holds messages that lack others.

        Args:
            awaited: Runs whose messages are left out: an answer may still go on with
                what they have begun.
        """
        return tuple(
            dict.fromkeys(
                fan_in.edge.target
                for (_, begun_by), fan_in in self._fan_ins.items()
                if fan_in.filled and begun_by not in awaited
            )
        )

    def deliver(self, target: str, delivery: Delivery) -> None:
        """Put a message for the next superstep."""
        waiting = self._waiting.get(target)
        if waiting is None:
            self._waiting[target] = [delivery]
        else:
            waiting.append(delivery)

    def collect(
        self, edge: FanInEdge, source: str, delivery: Delivery
    ) -> Delivery | None:
        """Put a message into a fan-in, and its list once it is complete.

        Returns:
            The list, once it is complete.
        """
        key = (id(edge), delivery.begun_by)
        fan_in = self._fan_ins.get(key)
        if fan_in is None:
            fan_in = self._fan_ins[key] = _FanIn(edge)
        together = fan_in.put(source, delivery)
        if together is None:
            return None
        spans = tuple(span for one in together for span in one.sources)
        whole = Delivery(
            [one.message for one in together],
            spans,
            "+".join(one.id for one in together),
            delivery.begun_by,
        )
        self.deliver(edge.target, whole)
        return whole

    def messages(self) -> list[tuple[str, Any, str]]:
        """Return what waits for the next superstep, but for answers."""
        return [
            (target, delivery.message, delivery.begun_by)
            for target, deliveries in self._waiting.items()
            for delivery in deliveries
            if not isinstance(delivery.message, Answer)
        ]

    def answers(self) -> list[tuple[str, str, Any]]:
        """Return answers that wait for the next superstep."""
        return [
            (target, delivery.message.request.request_id, delivery.message.response)
            for target, deliveries in self._waiting.items()
            for delivery in deliveries
            if isinstance(delivery.message, Answer)
        ]

    def collected(self, edges: tuple[FanInEdge, ...]) -> list[Collected]:
        """Return what fan-ins hold.

        Args:
            edges: All fan-ins of the graph.
        """
        positions = {id(edge): position for position, edge in enumerate(edges)}
        return [
            (positions[edge], source, delivery.message, begun_by)
            for (edge, begun_by), fan_in in self._fan_ins.items()
            for source, queue in fan_in.held.items()
            for delivery in queue
        ]

    def take(self) -> list[tuple[str, list[Delivery]]]:
        """Take all messages, by executor in graph order."""
        taken, self._waiting = self._waiting, {}
        if len(taken) == 1:
            return list(taken.items())
        positions = self._positions
        return sorted(taken.items(), key=lambda entry: positions[entry[0]])
