"""Which messages a type annotation takes, and which types may flow along an edge."""

import collections.abc
import functools
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin

Fields = Mapping[str, Any]

NOTHING: Final = (None, type(None), typing.Never, typing.NoReturn)
"""Annotations that say "sends nothing"."""

_WIDENED: Final[Mapping[Any, tuple[type, ...]]] = {
    float: (float, int),
    complex: (complex, float, int),
}
"""What type checkers let pass for a number, though no class says so."""

_DATA: Final = frozenset({str, bytes, bool, int, float, list, tuple, dict, set})
"""Classes of what somebody passes who forgets that a type is asked for."""

_CONTAINERS: Final = frozenset({"builtins", "collections", "collections.abc"})
"""Modules whose generic classes mean by their arguments what they hold."""


def alternatives(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - annotations
    """Return the members of a union, or the annotation alone."""
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)


def describe(annotation: Any) -> str:  # noqa: ANN401 - annotations are any object
    """Return an annotation as people write it, and the same for all that mean the same.

    Checkpoints compare these texts. `Optional[X]` is `X | None`, and the members of a
    union have one order: `typing` hands out `List[int | str]` for `List[str | int]` if
    it was asked for that before.
    """
    if annotation is None or annotation is type(None):
        return "None"
    composed = _composed(annotation)
    if composed is not None:
        return composed
    if isinstance(annotation, type):
        return annotation.__qualname__
    if annotation is Ellipsis:
        return "..."
    return str(annotation).replace("typing.", "")


def _composed(annotation: Any) -> str | None:  # noqa: ANN401
    """Describe an annotation that has arguments; `None` if it has none."""
    if isinstance(annotation, list):  # what a callable takes
        members = cast("Sequence[Any]", annotation)
        return f"[{', '.join(map(describe, members))}]"
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " | ".join(sorted(map(describe, arguments), key=_none_last))
    if origin is Literal:
        return f"Literal[{', '.join(sorted(map(repr, arguments)))}]"
    if origin is typing.Annotated:
        return describe(arguments[0])
    if isinstance(origin, type) and arguments:
        return f"{describe(origin)}[{', '.join(map(describe, arguments))}]"
    return None


def _none_last(name: str) -> tuple[bool, str]:
    return name == "None", name


def accepts(annotation: Any, value: object) -> bool:  # noqa: ANN401 - annotations
    """Say whether `value` is what `annotation` describes, elements included."""
    if annotation is Any or isinstance(annotation, TypeVar):
        return True
    if annotation is None:
        return value is None
    origin = get_origin(annotation)
    if origin is None:
        return _is_instance(value, annotation)
    if origin in (Union, types.UnionType):
        return any(accepts(member, value) for member in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    if origin is typing.Annotated:
        return accepts(get_args(annotation)[0], value)
    return _is_instance(value, origin) and _elements_fit(origin, annotation, value)


def is_annotation(value: object) -> bool:
    """Say whether `value` may stand for a type: it is not plain data itself."""
    return type(value) not in _DATA


def is_plain(annotation: Any) -> bool:  # noqa: ANN401 - annotations are any object
    """Say whether the class of a value alone decides if `annotation` takes it."""
    return all(
        member is Any
        or member is None
        or (
            isinstance(member, type)
            and get_origin(member) is None
            and not _is_protocol(member)
            and not typing.is_typeddict(member)
        )
        for member in alternatives(annotation)
    )


def may_flow(sent: Any, taken: Any) -> bool:  # noqa: ANN401 - annotations
    """Say whether some value of type `sent` could be one that `taken` takes.

    It errs on the side of yes: an edge is refused at build time only when no message
    can ever pass it.
    """
    return any(
        _one_may_flow(source, target)
        for source in alternatives(sent)
        for target in alternatives(taken)
    )


def elements_of(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - annotations
    """Return what the lists hold that `annotation` takes; nothing if it takes none."""
    return tuple(
        held for member in alternatives(annotation) for held in _elements_of_one(member)
    )


def _elements_of_one(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if annotation is Any:
        return (Any,)
    origin = get_origin(annotation) or annotation
    if not isinstance(origin, type) or not issubclass(list, origin):
        return ()
    return get_args(annotation) or (Any,)


def _is_instance(value: object, kind: Any) -> bool:  # noqa: ANN401 - annotations
    if typing.is_typeddict(kind):
        return isinstance(value, dict) and _fields_fit(kind, cast("Fields", value))
    kinds: Any = _WIDENED.get(kind, kind)
    try:
        return isinstance(value, kinds)
    except TypeError:  # a protocol that is not runtime-checkable, a NewType, …
        supertype = getattr(kind, "__supertype__", None)
        return True if supertype is None else accepts(supertype, value)


def _fields_fit(kind: Any, value: Fields) -> bool:  # noqa: ANN401
    """Say whether a dict has the keys of a `TypedDict`, and values of their types."""
    required, types_of = _fields_of(kind)
    return required <= value.keys() and all(
        accepts(types_of[key], item) for key, item in value.items() if key in types_of
    )


@functools.lru_cache(1024)
def _fields_of(kind: Any) -> tuple[frozenset[str], Mapping[str, Any]]:  # noqa: ANN401
    try:
        types_of = typing.get_type_hints(kind)
    except NameError:  # of names that exist where it was written only
        types_of = {}
    return kind.__required_keys__, types_of


def _elements_fit(origin: Any, annotation: Any, value: Any) -> bool:  # noqa: ANN401
    arguments = get_args(annotation)
    if origin.__module__ not in _CONTAINERS:
        return True
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return all(accepts(arguments[0], item) for item in value)
        return len(value) == len(arguments) and all(
            accepts(argument, item)
            for argument, item in zip(arguments, value, strict=True)
        )
    if issubclass(origin, Mapping):
        keys, values = (*arguments, Any)[:2]  # a Counter names its keys only
        return all(
            accepts(keys, key) and accepts(values, item) for key, item in value.items()
        )
    if issubclass(origin, collections.abc.Collection):
        return all(accepts(arguments[0], item) for item in value)
    return True


def _one_may_flow(source: Any, target: Any) -> bool:  # noqa: ANN401 - annotations
    if Any in (source, target) or isinstance(source, TypeVar):
        return True
    if source is None or target is None:
        return source in NOTHING and target in NOTHING
    source_kind = _kind(source)
    target_kind = _kind(target)
    if source_kind is None or target_kind is None:
        return True
    if not _related(source_kind, target_kind):
        return False
    arguments = tuple(zip(get_args(source), get_args(target), strict=False))
    return all(Ellipsis in pair or may_flow(pair[0], pair[1]) for pair in arguments)


def _kind(annotation: Any) -> type | None:  # noqa: ANN401 - annotations
    """Return the class behind an annotation; `None` where only a value can tell."""
    kind = get_origin(annotation) or annotation
    if typing.is_typeddict(kind):
        return dict
    if isinstance(kind, type) and not _is_protocol(kind):
        return kind
    return None


def _is_protocol(kind: type) -> bool:
    return bool(getattr(kind, "_is_protocol", False))


def _related(source: type, target: type) -> bool:
    if source in _WIDENED.get(target, ()) or target in _WIDENED.get(source, ()):
        return True
    try:
        return issubclass(source, target) or issubclass(target, source)
    except TypeError:
        return True
