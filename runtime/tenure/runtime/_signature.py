"""A graph's signature: equal for equal graphs, in every process."""

import hashlib
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, cast

from tenure.runtime._graph import (
    Edge,
    FanInEdge,
    FanOutEdge,
    Graph,
    SingleEdge,
    SwitchEdge,
)
from tenure.runtime._types import describe

_PLAIN = (str, int, float, bool, bytes, type(None))


def signature_of(graph: Graph) -> str:
    """Return a hash of what a checkpoint of `graph` depends on.

    It sees the executors, their classes and what they take, the edges, and conditions
    with their code and constants: two different lambdas differ.

    Args:
        graph: The graph.
    """
    seen = hashlib.sha256()
    for line in _lines(graph):
        seen.update(line.encode())
        seen.update(b"\n")
    return seen.hexdigest()[:32]


def _lines(graph: Graph) -> Iterator[str]:
    yield f"start {graph.start}"
    for name, one in graph.executors.items():
        kind = type(one.executor)
        yield f"executor {name} {kind.__module__}.{kind.__qualname__}"
        for handler in one.dispatch.handlers:
            yield f"takes {describe(handler.message)}"
        for responder in one.dispatch.responders:
            yield f"asks {describe(responder.request)} {describe(responder.response)}"
        yield from one.executor.signature_lines()
    for source, edges in graph.leaving.items():
        for edge in edges:
            yield f"edge {source} {_edge(edge)}"


def _edge(edge: Edge) -> str:
    match edge:
        case SingleEdge():
            return f"single {edge.target} {_code(edge.condition)}"
        case FanOutEdge():
            return f"fan-out {edge.targets} {_code(edge.select)}"
        case SwitchEdge():
            ways = [f"{_code(when)} {target}" for when, target in edge.cases]
            return f"switch {ways} {edge.default}"
        case FanInEdge():
            return f"fan-in {edge.sources} {edge.target}"


def _code(function: Callable[..., Any] | None) -> str:
    """Describe a function by what it does, as far as its code shows it."""
    if function is None:
        return "-"
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return f"{type(function).__module__}.{type(function).__qualname__}"
    cells = getattr(function, "__closure__", None) or ()
    closed = [_value(cell.cell_contents) for cell in cells]
    return f"{_code_object(code)} {closed}"


def _code_object(code: CodeType) -> str:
    constants = [_value(constant) for constant in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def _value(value: object) -> str:
    if isinstance(value, CodeType):
        return _code_object(value)
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return f"tuple{[_value(item) for item in cast('tuple[object]', value)]}"
    if isinstance(value, frozenset):
        members = cast("frozenset[object]", value)
        return f"frozenset{sorted(_value(item) for item in members)}"
    return type(value).__qualname__
