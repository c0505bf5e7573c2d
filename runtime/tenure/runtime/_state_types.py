"""The data types that checkpoints may hold, registered by their users."""

import dataclasses
import enum
import inspect
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from tenure.runtime.errors import CheckpointError

C = TypeVar("C", bound=type)
Upgrade = Callable[[int, dict[str, Any]], dict[str, Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class Registered:
    """A data type that checkpoints may hold.

    Attributes:
        cls: The class.
        tag: Its name in checkpoints.
        version: Version of its fields.
        upgrade: Makes fields of an older version current.
    """

    cls: type[Any]
    tag: str
    version: int
    upgrade: Upgrade | None


_BY_NAME: Final = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_registering: Final = threading.Lock()
_by_class: Final[dict[type, Registered]] = {}
_by_tag: Final[dict[str, Registered]] = {}


def register_state_type(
    cls: C,
    tag: str | None = None,
    *,
    version: int = 1,
    upgrade: Upgrade | None = None,
) -> C:
    """Let checkpoints hold values of a data type. May be used as a decorator.

    A value is written field by field and built again by its class: a dataclass and a
    `msgspec.Struct` by their constructor, a pydantic model without running its
    validators again, with its private attributes. Fields may hold whatever checkpoints
    may.

    Args:
        cls: A dataclass, a named tuple, a `msgspec.Struct`, an enumeration, or a
            pydantic model.
        tag: Its name in checkpoints; it must stay the same when the class is renamed.
            The class's name by default.
        version: Version of its fields, written beside every value.
        upgrade: Called with an older version and that version's fields; returns the
            current ones.

    Returns:
        The class.

    Raises:
        ValueError: The tag is another class's.
        TypeError: It is not a data type, or its values could not be built again.
    """
    entry = Registered(cls, tag or cls.__name__, version, upgrade)
    if not _is_data(cls):
        raise TypeError(
            f"{cls!r} is not a data type: use a dataclass, a named tuple, a "
            f"msgspec.Struct, an enumeration or a pydantic model"
        )
    _refuse_unbuildable(cls)
    with _registering:
        known = _by_tag.get(entry.tag)
        if known is not None and not _same(known.cls, cls):
            raise ValueError(
                f"tag {entry.tag!r} is that of {known.cls!r}: pass another tag="
            )
        _by_class[cls] = entry
        _by_tag[entry.tag] = entry
    return cls


def registered(cls: type[Any]) -> Registered | None:
    """Return how a class is registered; `None` if it is not."""
    return _by_class.get(cls)


def fields_of(value: Any, entry: Registered) -> dict[str, Any]:  # noqa: ANN401
    """Return what a registered value consists of."""
    cls = entry.cls
    if issubclass(cls, enum.Flag):
        return {"value": value.value}
    if issubclass(cls, enum.Enum):
        return {"name": value.name}
    if issubclass(cls, tuple):
        return dict(value._asdict())
    if issubclass(cls, msgspec.Struct):
        names = cls.__struct_fields__
    elif dataclasses.is_dataclass(cls):
        names = tuple(field.name for field in dataclasses.fields(cls))
    else:
        names = (*cls.model_fields, *(value.model_extra or ()))
    return {name: getattr(value, name) for name in names}


def besides_fields(value: Any, entry: Registered) -> dict[str, Any]:  # noqa: ANN401
    """Return what a registered value is besides its fields: a pydantic model alone.

    Private attributes, by their names, and under an empty name those of its fields that
    were set, if not all were.
    """
    if not hasattr(entry.cls, "model_construct"):
        return {}
    besides: dict[str, Any] = dict(value.__pydantic_private__ or {})
    given = value.model_fields_set
    if not given.issuperset(fields_of(value, entry)):
        besides[""] = sorted(given)
    return besides


def build(
    tag: str,
    version: int,
    fields: dict[str, Any],
    besides: dict[str, Any] | None = None,
) -> Any:  # noqa: ANN401
    """Return the value that consists of `fields`.

    Args:
        tag: What its class is registered as.
        version: Version of the fields.
        fields: What `fields_of` returned.
        besides: What `besides_fields` returned, if anything.

    Raises:
        CheckpointError: The class is not registered here, or not in that version.
    """
    entry = _by_tag.get(tag)
    if entry is None:
        raise CheckpointError(
            f"type {tag!r} is not registered",
            "call register_state_type for it before the checkpoint is loaded",
        )
    if version == entry.version:
        if hasattr(entry.cls, "model_construct"):
            return _construct_model(entry.cls, fields, besides or {})
        return _construct(entry.cls, fields)
    problem = (
        f"type {tag!r} has version {version} in the checkpoint and {entry.version} here"
    )
    if version > entry.version:
        raise CheckpointError(problem, "load it with the newer code")
    if entry.upgrade is None:
        raise CheckpointError(problem, "pass upgrade= to register_state_type")
    upgraded = entry.upgrade(version, fields)
    if hasattr(entry.cls, "model_validate"):
        return entry.cls.model_validate(upgraded)
    return _construct(entry.cls, upgraded)


def _construct(cls: type[Any], fields: dict[str, Any]) -> Any:  # noqa: ANN401
    if issubclass(cls, enum.Flag):
        return cls(fields["value"])
    if issubclass(cls, enum.Enum):
        return cls[fields["name"]]
    if dataclasses.is_dataclass(cls):
        return _construct_dataclass(cls, fields)
    if issubclass(cls, tuple):
        return _construct_tuple(cls, fields)
    return cls(**fields)


def _construct_tuple(cls: Any, fields: dict[str, Any]) -> Any:  # noqa: ANN401
    names: tuple[str, ...] = cls._fields
    if fields.keys() == set(names):
        # Whatever its own `__new__` takes.
        return cls._make(fields[name] for name in names)
    return cls(**fields)


def _construct_model(
    cls: Any,  # noqa: ANN401 - pydantic need not be installed
    fields: dict[str, Any],
    besides: dict[str, Any],
) -> Any:  # noqa: ANN401
    given = besides.pop("", None)
    made = cls.model_construct(
        _fields_set=None if given is None else set(given), **fields
    )
    # By name: it takes what has the alias of another field for that one.
    made.__dict__.update({
        name: item for name, item in fields.items() if name in cls.model_fields
    })
    if besides:
        private: dict[str, Any] = made.__pydantic_private__ or {}
        object.__setattr__(made, "__pydantic_private__", {**private, **besides})
    return made


def _construct_dataclass(cls: type[Any], fields: dict[str, Any]) -> Any:  # noqa: ANN401
    wanted = {field.name: field.init for field in dataclasses.fields(cls)}
    strange = fields.keys() - wanted.keys()
    if strange:
        raise CheckpointError(
            f"{cls.__qualname__} has no fields {sorted(strange)}",
            "give register_state_type a greater version= and an upgrade=",
        )
    made = cls(**{name: item for name, item in fields.items() if wanted[name]})
    for name, item in fields.items():
        if not wanted[name]:
            object.__setattr__(made, name, item)
    return made


def _is_data(cls: type[Any]) -> bool:
    names = set(dir(cls))
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct | enum.Enum)
        or (issubclass(cls, tuple) and "_fields" in names)
        or {"model_construct", "model_fields", "model_validate"} <= names
    )


def _refuse_unbuildable(cls: type[Any]) -> None:
    """Refuse a class whose values could be saved and not loaded."""
    if not dataclasses.is_dataclass(cls):
        return
    everything = cls.__dataclass_fields__
    real = {field.name: field.init for field in dataclasses.fields(cls)}
    for name, field in everything.items():
        if name not in real and str(field.type).find("InitVar") >= 0:
            raise TypeError(
                f"{cls!r} cannot be built again: {name} is an InitVar, which its "
                f"values do not hold"
            )
    taken = inspect.signature(cls).parameters.values()
    known = {name for name, init in real.items() if init}
    by_name = {one.name for one in taken if one.kind in _BY_NAME}
    whatever = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken)
    missing: set[str] = set() if whatever else known - by_name
    asked = {
        one.name
        for one in taken
        if one.kind not in _VARIABLE and one.default is one.empty
    }
    if missing or asked - known:
        raise TypeError(
            f"{cls!r} cannot be built again: its __init__ takes {sorted(by_name)}, and "
            f"its fields are {sorted(known)}"
        )


def _same(known: type[Any], cls: type[Any]) -> bool:
    """Say whether a class is another one, or the same after its code ran again."""
    if known is cls:
        return True
    place = (cls.__module__, cls.__qualname__)
    return (known.__module__, known.__qualname__) == place
