"""A graph's signature: equal for equal graphs, in every process."""

import dataclasses
import enum
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
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
from tenure.runtime._isolation import IMMUTABLE
from tenure.runtime._types import describe

_PLAIN = (str, int, float, complex, bool, bytes, type(None), type(Ellipsis))


def signature_of(graph: Graph) -> str:
    """Return a hash of what a checkpoint of `graph` depends on.

    It sees the executors, their classes and what they take and ask, the edges, and
    conditions with their code, constants, defaults and what they close over or are
    bound to: two different lambdas differ, and so do two members of an enumeration or
    two values of a dataclass. It does not see the code of executors, nor what a
    condition calls: those may be mended while runs wait. Of an object that is no data
    it sees the class only: what else it holds may differ from process to process.

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
    single = _single(value)
    if single is not None:
        return single
    if id(value) in inside:
        return "itself"
    inside |= {id(value)}
    if isinstance(value, CodeType):
        return _code_object(value, inside)
    called = _callable(value, inside)
    return _container(value, inside) if called is None else called


def _single(value: object) -> str | None:
    """Describe a value that consists of nothing else; `None` if it does."""
    kind = type(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__module__}.{kind.__qualname__} {value.name}"
    if isinstance(value, re.Pattern):
        return f"pattern {_compiled(value)}"
    if isinstance(value, PurePath):
        return f"{kind.__qualname__} {value}"
    if isinstance(value, _PLAIN) or (kind in IMMUTABLE and not callable(value)):
        return repr(value)
    return None


def _compiled(pattern: Any) -> tuple[Any, int]:  # noqa: ANN401 - of str or of bytes
    return pattern.pattern, pattern.flags


def _callable(value: object, inside: frozenset[int]) -> str | None:
    if isinstance(value, FunctionType):
        return _function(value, inside)
    if isinstance(value, MethodType):
        bound = _value(value.__self__, inside)
        return f"method {_value(value.__func__, inside)} of {bound}"
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return f"partial {[_value(part, inside) for part in parts]}"
    if isinstance(value, BuiltinFunctionType | MethodWrapperType):
        owner: object = value.__self__
        of = "" if isinstance(owner, ModuleType) else _value(owner, inside)
        return f"{getattr(value, '__module__', '')}.{value.__qualname__} {of}"
    if isinstance(value, type | MethodDescriptorType):
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
    return f"{type(value).__module__}.{kind} {_object(value, inside)}"


def _object(value: object, inside: frozenset[int]) -> str:
    """Describe what an object is by its fields if it is data, and what it calls."""
    kind = type(value)
    called = getattr(kind, "__call__", None)  # noqa: B004 - its code, not whether
    inner = getattr(value, "__dict__", {}).get("__wrapped__")
    parts = [_value(one, inside) for one in (called, inner) if inspect.isfunction(one)]
    # What else it holds is its own, and differs from process to process.
    parts += [
        f"{name}={_value(getattr(value, name, None), inside)}" for name in _fields(kind)
    ]
    return " ".join(parts)


def _fields(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a class, but which?
    """Return the fields of a data class of whatever kind."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    fields: Any = getattr(kind, "__struct_fields__", None)
    return tuple(fields or getattr(kind, "model_fields", ()))
