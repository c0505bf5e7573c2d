"""Values as bytes for checkpoints: registered data types only, never code.

Loading builds what is registered here and nothing else: no import by name, no callable,
no pickle. Values that a checkpoint cannot hold are refused when they are staged, so
that the executor which made a bad value fails, and not the barrier.

msgpack has fewer types than Python. What it lacks is written as an extension whose
payload is msgpack again.
"""

import dataclasses
import datetime
import decimal
import enum
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from tenure.runtime.errors import CheckpointError, StateTypeError

C = TypeVar("C", bound=type)

_TUPLE, _SET, _FROZENSET, _REGISTERED, _PAIRS, _INTEGER, _MOMENT = range(1, 8)
_PLAIN: Final = frozenset({type(None), bool, float, str, bytes})
_INT64: Final = range(-(2**63), 2**64)
_encode: Final = msgspec.msgpack.Encoder().encode


@dataclasses.dataclass(frozen=True, slots=True)
class _Registered:
    """A data type that checkpoints may hold."""

    cls: type[Any]
    tag: str
    version: int
    upgrade: Callable[[int, dict[str, Any]], dict[str, Any]] | None


_MOMENTS: Final[dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]]] = {
    datetime.datetime: ("datetime", str, datetime.datetime.fromisoformat),
    datetime.date: ("date", str, datetime.date.fromisoformat),
    datetime.time: ("time", str, datetime.time.fromisoformat),
    datetime.timedelta: (
        "timedelta",
        lambda value: f"{value.days} {value.seconds} {value.microseconds}",
        lambda text: datetime.timedelta(*map(int, text.split())),
    ),
    decimal.Decimal: ("decimal", str, decimal.Decimal),
    uuid.UUID: ("uuid", str, uuid.UUID),
    complex: ("complex", repr, complex),
}
_MOMENT_READERS: Final = {name: read for name, _, read in _MOMENTS.values()}

_registering: Final = threading.Lock()
_by_class: Final[dict[type, _Registered]] = {}
_by_tag: Final[dict[str, _Registered]] = {}


def register_state_type(
    cls: C,
    tag: str | None = None,
    *,
    version: int = 1,
    upgrade: Callable[[int, dict[str, Any]], dict[str, Any]] | None = None,
) -> C:
    """Let checkpoints hold values of a data type. May be used as a decorator.

    Args:
        cls: A dataclass, a `msgspec.Struct`, an enumeration, or a class with pydantic's
            `model_dump` and `model_validate`.
        tag: Its name in checkpoints; it must stay the same when the class is renamed.
            The class's name by default.
        version: Version of its fields, written beside every value.
        upgrade: Called with an older version and that version's fields; returns the
            current ones.

    Returns:
        The class.

    Raises:
        ValueError: The tag is another class's.
        TypeError: It is not a data type.
    """
    entry = _Registered(cls, tag or cls.__name__, version, upgrade)
    if not _is_data(cls):
        raise TypeError(
            f"{cls!r} is not a data type: use a dataclass, a msgspec.Struct, an "
            f"enumeration or a pydantic model"
        )
    with _registering:
        known = _by_tag.get(entry.tag)
        if known is not None and known.cls is not cls:
            raise ValueError(
                f"tag {entry.tag!r} is that of {known.cls!r}: pass another tag="
            )
        _by_class[cls] = entry
        _by_tag[entry.tag] = entry
    return cls


def check_value(value: object, what: str) -> None:
    """Refuse a value that a checkpoint could not hold.

    Args:
        value: Any value.
        what: What it is for, such as `state key 'cart'`.

    Raises:
        StateTypeError: Its type, or that of something in it, is not registered.
    """
    if type(value) not in _PLAIN:
        _lower(value, what)


def encode(value: object, what: str) -> bytes:
    """Return `value` as bytes.

    Args:
        value: Any value that `check_value` lets pass.
        what: What it is for, for the error.

    Raises:
        StateTypeError: It cannot be held.
    """
    return _encode(_lower(value, what))


def decode(data: bytes) -> Any:  # noqa: ANN401 - checkpoints hold any registered value
    """Return the value that `encode` was given.

    Args:
        data: What `encode` returned.

    Raises:
        CheckpointError: It is damaged, or holds a type that is not registered here.
    """
    try:
        return _decoder.decode(data)
    except CheckpointError:
        raise
    except (msgspec.DecodeError, ValueError, TypeError, KeyError) as exc:
        raise CheckpointError("a value cannot be read", str(exc)) from exc


def _is_data(cls: type[Any]) -> bool:
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, msgspec.Struct | enum.Enum)
        or hasattr(cls, "model_validate")
    )


def _lower(value: Any, what: str) -> Any:  # noqa: ANN401 - any value
    kind: type[Any] = value.__class__
    if kind in _PLAIN:
        return value
    if kind is int:
        return value if value in _INT64 else _ext(_INTEGER, hex(value))
    if kind is list:
        return [_lower(item, what) for item in value]
    if kind is dict:
        return _lower_dict(value, what)
    if kind is tuple:
        return _ext(_TUPLE, [_lower(item, what) for item in value])
    if kind in (set, frozenset):
        code = _SET if kind is set else _FROZENSET
        return _ext(code, [_lower(item, what) for item in value])
    if kind in _MOMENTS:
        name, write, _ = _MOMENTS[kind]
        return _ext(_MOMENT, [name, write(value)])
    return _lower_registered(value, kind, what)


def _lower_dict(value: Mapping[Any, Any], what: str) -> Any:  # noqa: ANN401
    if all(type(key) is str for key in value):
        return {key: _lower(item, what) for key, item in value.items()}
    pairs = [[_lower(key, what), _lower(item, what)] for key, item in value.items()]
    return _ext(_PAIRS, pairs)


def _lower_registered(value: Any, kind: type[Any], what: str) -> Any:  # noqa: ANN401
    entry = _by_class.get(kind)
    if entry is None:
        raise StateTypeError(what, kind.__qualname__)
    if isinstance(value, enum.Enum):
        fields: Any = {"name": value.name}
    elif isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
    elif dataclasses.is_dataclass(value):
        fields = {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
        }
    else:
        fields = value.model_dump()
    inside = f"{what}: {entry.tag}"
    lowered = {name: _lower(item, inside) for name, item in fields.items()}
    return _ext(_REGISTERED, [entry.tag, entry.version, lowered])


def _ext(code: int, payload: object) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, _encode(payload))


def _raise(code: int, data: memoryview) -> Any:  # noqa: ANN401 - any value
    payload = _decoder.decode(data)
    match code:
        case 1:
            return tuple(payload)
        case 2:
            return set(payload)
        case 3:
            return frozenset(payload)
        case 4:
            return _build(*payload)
        case 5:
            return dict(payload)
        case 6:
            return int(payload, 16)
        case 7:
            name, text = payload
            return _MOMENT_READERS[name](text)
        case _:
            raise CheckpointError("a value cannot be read", f"extension {code}")


def _build(tag: str, version: int, fields: dict[str, Any]) -> Any:  # noqa: ANN401
    entry = _by_tag.get(tag)
    if entry is None:
        raise CheckpointError(
            f"type {tag!r} is not registered",
            "call register_state_type for it before the checkpoint is loaded",
        )
    if version > entry.version:
        raise CheckpointError(
            f"type {tag!r} has version {version} in the checkpoint and "
            f"{entry.version} here",
            "load it with the newer code",
        )
    if version < entry.version:
        if entry.upgrade is None:
            raise CheckpointError(
                f"type {tag!r} has version {version} in the checkpoint and "
                f"{entry.version} here",
                "pass upgrade= to register_state_type",
            )
        fields = entry.upgrade(version, fields)
    if issubclass(entry.cls, enum.Enum):
        return entry.cls[fields["name"]]
    if hasattr(entry.cls, "model_validate"):
        return entry.cls.model_validate(fields)
    return _construct(entry.cls, fields)


def _construct(cls: type[Any], fields: dict[str, Any]) -> Any:  # noqa: ANN401
    if not dataclasses.is_dataclass(cls):
        return cls(**fields)
    wanted = {field.name: field.init for field in dataclasses.fields(cls)}
    made = cls(**{name: item for name, item in fields.items() if wanted.get(name)})
    for name, item in fields.items():
        if wanted.get(name) is False:
            object.__setattr__(made, name, item)
    return made


_decoder: Final = msgspec.msgpack.Decoder(ext_hook=_raise)

__all__ = ["check_value", "decode", "encode", "register_state_type"]
