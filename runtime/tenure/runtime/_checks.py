"""What a graph must fulfil before it may run. Pure."""

from typing import Any

from tenure.runtime._executor import Executor
from tenure.runtime._graph import Edge, FanInEdge, Graph
from tenure.runtime._retry import Retry
from tenure.runtime._types import describe, elements_of, may_flow
from tenure.runtime.errors import DefinitionError


def check_graph(graph: Graph) -> None:
    """Refuse a graph in which some executor can never do its work.

    Args:
        graph: What was drawn.

    Raises:
        DefinitionError: An executor cannot be reached, no message that a source sends
            is one that the target of its edge takes, or a limit of an executor makes no
            sense.
    """
    _check_reachable(graph)
    for name, one in graph.executors.items():
        _check_limits(graph, name, one.executor)
    edges = dict.fromkeys(edge for edges in graph.leaving.values() for edge in edges)
    for edge in edges:
        for source in edge.sources:
            for target in edge.targets:
                _check_types(graph, edge, source, target)


def _check_reachable(graph: Graph) -> None:
    reached: dict[str, None] = {graph.start: None}
    frontier = [graph.start]
    while frontier:
        for target in graph.reachable_from(frontier.pop()):
            if target not in reached:
                reached[target] = None
                frontier.append(target)
    lost = [name for name in graph.executors if name not in reached]
    if lost:
        names = ", ".join(map(repr, lost))
        raise DefinitionError(
            graph.name,
            f"no message can reach {names} from {graph.start!r}",
            "Draw an edge to it, or leave it out",
        )


def _check_limits(graph: Graph, name: str, executor: Executor) -> None:
    # Any, because users may set anything, as attributes of the class too.
    timeout: Any = executor.timeout
    concurrency: Any = executor.concurrency
    retry: Any = executor.retry
    if retry is not None and not isinstance(retry, Retry):
        problem, remedy = f"retry is {retry!r}", "Pass a Retry"
    elif timeout is not None and not _is_above_zero(timeout, int | float):
        problem, remedy = f"timeout is {timeout!r}", "Allow more than 0 seconds"
    elif concurrency is not None and not _is_above_zero(concurrency, int):
        problem, remedy = f"concurrency is {concurrency!r}", "Allow 1 at least"
    else:
        return
    raise DefinitionError(graph.name, f"{name!r}: its {problem}", remedy)


def _is_above_zero(value: Any, kind: Any) -> bool:  # noqa: ANN401 - any value, any type
    return isinstance(value, kind) and not isinstance(value, bool) and value > 0


def _check_types(graph: Graph, edge: Edge, source: str, target: str) -> None:
    sent = [
        annotation
        for handler in graph.executors[source].dispatch.handlers
        for annotation in (handler.sends if handler.sends is not None else (Any,))
    ]
    taken = [handler.message for handler in graph.executors[target].dispatch.handlers]
    if isinstance(edge, FanInEdge):
        taken = [held for annotation in taken for held in elements_of(annotation)]
    if any(may_flow(one, other) for one in sent for other in taken):
        return
    sends = " or ".join(map(describe, sent)) or "nothing"
    takes = graph.executors[target].dispatch.takes()
    if isinstance(edge, FanInEdge) and not taken:
        raise DefinitionError(
            graph.name,
            f"{target!r} takes {takes}, but a fan-in brings a list",
            f"Let a handler of {target!r} take list[{sends}]",
        )
    raise DefinitionError(
        graph.name,
        f"{source!r} sends {sends}, but {target!r} takes {takes}",
        f"Let {source!r} send what {target!r} takes (the first argument of its "
        f"WorkflowContext), or give {target!r} a handler for it",
    )
