"""A graph's signature: equal for equal graphs, in every process."""

import functools
import hashlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
)
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

_PLAIN = (str, int, float, complex, bool, bytes, type(None), type(Ellipsis))


def signature_of(graph: Graph) -> str:
    """Return a hash of what a checkpoint of `graph` depends on.

    It sees the executors, their classes and what they take and ask, the edges, and
    conditions with their code, constants, defaults and what they close over: two
    different lambdas differ. It does not see the code of executors, nor what a
    condition calls: those may be mended while runs wait.

    Conditions are compared by their bytecode, so that another minor version of Python
    may give another signature to a graph that has conditions.

    Args:
        graph: The graph.
    """
    seen = hashlib.sha256()
    for line in _lines(graph):
        seen.update(line.encode(errors="backslashreplace"))
        seen.update(b"\n")
    return seen.hexdigest()[:32]


def _lines(graph: Graph) -> Iterator[str]:
    yield f"start {graph.start!r}"
    for name, one in graph.executors.items():
        kind = type(one.executor)
        yield f"executor {name!r} {kind.__module__}.{kind.__qualname__}"
        for handler in one.dispatch.handlers:
            yield f"takes {describe(handler.message)}"
        for responder in one.dispatch.responders:
            yield f"asks {describe(responder.request)} {describe(responder.response)}"
        yield from one.executor.signature_lines()
    for source, edges in graph.leaving.items():
        for edge in edges:
            yield f"edge {source!r} {_edge(edge)}"


def _edge(edge: Edge) -> str:
    match edge:
        case SingleEdge():
            return f"single {edge.target!r} {_code(edge.condition)}"
        case FanOutEdge():
            return f"fan-out {edge.targets} {_code(edge.select)}"
        case SwitchEdge():
            ways = [f"{_code(when)} {target!r}" for when, target in edge.cases]
            return f"switch {ways} {edge.default!r}"
        case FanInEdge():
            return f"fan-in {edge.sources} {edge.target!r}"


def _code(function: Callable[..., Any] | None) -> str:
    return "-" if function is None else _value(function, frozenset())


def _value(value: object, inside: frozenset[int]) -> str:
    """Describe a value by what it is in every process, as far as one can tell.

    Args:
        value: Any value.
        inside: What it is met inside of: a function may close over itself.
    """
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in inside:
        return "itself"
    inside |= {id(value)}
    if isinstance(value, CodeType):
        return _code_object(value, inside)
    called = _callable(value, inside)
    return _container(value, inside) if called is None else called


def _callable(value: object, inside: frozenset[int]) -> str | None:
    if isinstance(value, FunctionType):
        return _function(value, inside)
    if isinstance(value, MethodType):
        return f"method {_value(value.__func__, inside)}"
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return f"partial {[_value(part, inside) for part in parts]}"
    if isinstance(value, type | BuiltinFunctionType | MethodDescriptorType):
        return f"{getattr(value, '__module__', '')}.{value.__qualname__}"
    return None


def _function(function: FunctionType, inside: frozenset[int]) -> str:
    closed: list[str] = []
    for cell in function.__closure__ or ():
        try:
            closed.append(_value(cell.cell_contents, inside))
        except ValueError:  # it has no value yet
            closed.append("empty")
    defaults = _value((function.__defaults__, function.__kwdefaults__), inside)
    return f"{_code_object(function.__code__, inside)} {closed} {defaults}"


def _code_object(code: CodeType, inside: frozenset[int]) -> str:
    constants = [_value(constant, inside) for constant in code.co_consts]
    return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames}"


def _container(value: object, inside: frozenset[int]) -> str:
    kind = type(value).__qualname__
    if isinstance(value, Mapping):
        mapping = cast("Mapping[object, object]", value)
        pairs = (
            (_value(key, inside), _value(item, inside)) for key, item in mapping.items()
        )
        return f"{kind}{sorted(pairs)}"
    if isinstance(value, AbstractSet):
        members = cast("AbstractSet[object]", value)
        return f"{kind}{sorted(_value(item, inside) for item in members)}"
    if isinstance(value, tuple | list):
        items = cast("list[object]", value)
        return f"{kind}{[_value(item, inside) for item in items]}"
    # What it holds is its own: its address differs from process to process.
    return f"{type(value).__module__}.{kind}"
