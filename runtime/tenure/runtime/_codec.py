"""Values as bytes for checkpoints: registered data types only, never code.

Loading builds what is registered here and nothing else: no import by name, no callable,
no pickle. Values that a checkpoint cannot hold are refused when they are staged, so
that the executor which made a bad value fails, and not the barrier.

msgpack has fewer types than Python. What it lacks is written as an extension whose
payload is msgpack again. Most values need none of this: lists and dicts of plain values
are told by their types alone and handed to msgspec as they are.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from tenure.runtime._scalars import SCALARS, read_scalar
from tenure.runtime._state_types import (
    besides_fields,
    build,
    fields_of,
    registered,
)
from tenure.runtime.errors import CheckpointError, StateTypeError

_TUPLE, _SET, _FROZENSET, _REGISTERED, _PAIRS, _INTEGER, _SCALAR = range(1, 8)
_PLAIN: Final = frozenset({type(None), bool, float, bytes})
# Checked for what they hold, if msgspec does not take them as they are.
_ALMOST_PLAIN: Final = frozenset({*_PLAIN, int, str})
_JUST_STR: Final = frozenset({str})
_INT64: Final = range(-(2**63), 2**64)
_encode: Final = msgspec.msgpack.Encoder().encode


def check_value(value: object, what: str) -> None:
    """Refuse a value that a checkpoint could not hold.

    Args:
        value: Any value.
        what: What it is for, such as `state key 'cart'`.

    Raises:
        StateTypeError: Its type, or that of something in it, is not registered.
    """
    if type(value) not in _PLAIN:
        lower(value, what)


def encode(value: object, what: str) -> bytes:
    """Return `value` as bytes.

    Args:
        value: Any value that `check_value` lets pass.
        what: What it is for, for the error.

    Raises:
        StateTypeError: It cannot be held.
    """
    return pack(lower(value, what), what)


def pack(lowered: Any, what: str) -> bytes:  # noqa: ANN401 - any lowered value
    """Return as bytes what `lower` returned, or a dict or list of such."""
    try:
        return _encode(lowered)
    except (RecursionError, OverflowError, ValueError) as exc:
        raise StateTypeError(what, f"{type(lowered).__qualname__} ({exc})") from exc


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
    except Exception as exc:
        # Whatever damaged bytes lead to, in msgspec or in the constructor of a
        # registered type, says the same.
        raise CheckpointError(
            "a value cannot be read", f"{type(exc).__name__}: {exc}"
        ) from exc


def lower(value: Any, what: str) -> Any:  # noqa: ANN401 - any value
    """Return `value` as msgpack can say it.

    Args:
        value: Any value.
        what: What it is for, for the error.

    Raises:
        StateTypeError: Its type, or that of something in it, is not registered.
    """
    try:
        return _lower(value, what)
    except RecursionError as exc:
        kind = f"{type(value).__qualname__} (nested too deeply, or in itself)"
        raise StateTypeError(what, kind) from exc


def _lower(value: object, what: str) -> Any:  # noqa: ANN401 - any value
    # Never `__class__`, which a proxy may make up.
    kind = type(value)
    if kind in _PLAIN:
        return value
    lowering = _LOWERING.get(kind)
    if lowering is not None:
        return lowering(value, what)
    if kind in SCALARS:
        name, write, _ = SCALARS[kind]
        written = write(value)
        if written is None:
            zone = type(getattr(value, "tzinfo", None)).__qualname__
            raise StateTypeError(what, f"{kind.__qualname__} with a {zone}")
        return _extension(_SCALAR, [name, written], what)
    return _lower_registered(value, kind, what)


def _lower_str(value: str, what: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as exc:
            raise StateTypeError(what, "str (with half of a surrogate pair)") from exc
    return value


def _lower_int(value: int, what: str) -> Any:  # noqa: ANN401
    if -(2**63) <= value < 2**64:
        return value
    return _extension(_INTEGER, hex(value), what)


def _lower_list(value: list[Any], what: str) -> Any:  # noqa: ANN401
    if _as_it_is(value):
        return value
    return [_lower(item, what) for item in value]


def _lower_dict(value: dict[Any, Any], what: str) -> Any:  # noqa: ANN401
    if not _JUST_STR.issuperset(map(type, value)):
        pairs = [[_lower(key, what), _lower(item, what)] for key, item in value.items()]
        return _extension(_PAIRS, pairs, what)
    if _as_it_is(value.values()) and all(map(str.isascii, value)):
        return value
    return {_lower_str(key, what): _lower(item, what) for key, item in value.items()}


def _lower_tuple(value: tuple[Any, ...], what: str) -> Any:  # noqa: ANN401
    return _extension(_TUPLE, _lower_list(list(value), what), what)


def _lower_set(value: set[Any], what: str) -> Any:  # noqa: ANN401
    return _extension(_SET, _lower_list(list(value), what), what)


def _lower_frozenset(value: frozenset[Any], what: str) -> Any:  # noqa: ANN401
    return _extension(_FROZENSET, _lower_list(list(value), what), what)


_LOWERING: Final[Mapping[type, Any]] = {
    str: _lower_str,
    int: _lower_int,
    list: _lower_list,
    dict: _lower_dict,
    tuple: _lower_tuple,
    set: _lower_set,
    frozenset: _lower_frozenset,
}


def _as_it_is(items: Iterable[Any]) -> bool:
    """Say whether msgpack can say each of `items` as it is."""
    kinds = set(map(type, items))
    if kinds <= _PLAIN:
        return True
    if not kinds <= _ALMOST_PLAIN:
        return False
    return all(
        item.isascii() if type(item) is str else type(item) is not int or item in _INT64
        for item in items
    )


def _lower_registered(value: Any, kind: type[Any], what: str) -> Any:  # noqa: ANN401
    entry = registered(kind)
    if entry is None:
        raise StateTypeError(what, kind.__qualname__)
    inside = f"{what}: {entry.tag}"
    lowered = {
        name: _lower(item, f"{inside}.{name}")
        for name, item in fields_of(value, entry).items()
    }
    payload: list[Any] = [entry.tag, entry.version, lowered]
    besides = besides_fields(value, entry)
    if besides:
        payload.append({
            name: _lower(item, f"{inside}.{name}") for name, item in besides.items()
        })
    return _extension(_REGISTERED, payload, what)


def _extension(code: int, payload: object, what: str) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(code, pack(payload, what))


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
            return build(*payload)
        case 5:
            return dict(payload)
        case 6:
            return int(payload, 16)
        case 7:
            return read_scalar(*payload)
        case _:
            raise CheckpointError("a value cannot be read", f"extension {code}")


_decoder: Final = msgspec.msgpack.Decoder(ext_hook=_raise)
