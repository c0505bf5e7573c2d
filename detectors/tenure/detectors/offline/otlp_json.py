"""Spans of OTLP JSON, read tolerantly: by what is there, not by what should be.

Protobuf's own JSON parser reads hexadecimal ids as base64 and refuses fields that it
does not know; this reader takes either kind of id, camel case or snake case, and
numbers that are strings or the other way round.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, cast

from tenure.detectors.offline.spans import (
    MALFORMED,
    RawSpan,
    is_known,
    put,
    whole_number,
)

Json = Mapping[str, object]
"""An object of JSON."""

_DEEPEST: Final = 32


def span(found: Json, *, scope: str = "", service: str = "") -> RawSpan:
    """Read one span.

    Args:
        found: A span of OTLP JSON.
        scope: Name of its instrumentation scope.
        service: Name of its service.

    Returns:
        The span. What cannot be read in it is left out, or marked where it matters.
    """
    name = found.get("name")
    start = _time(found, "startTimeUnixNano", "start_time_unix_nano")
    return RawSpan(
        name=name if isinstance(name, str) else "",
        attributes=attributes(found.get("attributes")),
        start=start,
        # A span that was exported has ended, be its end readable or not.
        end=_time(found, "endTimeUnixNano", "end_time_unix_nano") or start,
        trace_id=identity(_either(found, "traceId", "trace_id"), 16),
        span_id=identity(_either(found, "spanId", "span_id"), 8),
        scope=scope,
        service=service,
        incomplete=_dropped(found),
    )


def attributes(found: object) -> dict[str, object]:
    """Read a list of keys and values, or a plain mapping, which some backends make."""
    read: dict[str, object] = {}
    if isinstance(found, dict):
        for name, value in cast("Json", found).items():
            if is_known(name):
                put(read, name, value)
    elif isinstance(found, list):
        for item in cast("list[object]", found):
            if isinstance(item, dict):
                pair = cast("Json", item)
                key = pair.get("key")
                if isinstance(key, str) and is_known(key):
                    put(read, key, _value(pair.get("value"), 0))
    return read


def scope_name(found: object) -> str:
    """Return the name of an instrumentation scope; empty if it has none."""
    name = cast("Json", found).get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""


def service_name(found: object) -> str:
    """Return the name of the service of a resource; empty if it has none."""
    pairs = cast("Json", found).get("attributes") if isinstance(found, dict) else None
    for pair in cast("list[object]", pairs) if isinstance(pairs, list) else ():
        if isinstance(pair, dict) and cast("Json", pair).get("key") == "service.name":
            name = _value(cast("Json", pair).get("value"), 0)
            return name if isinstance(name, str) else ""
    return ""


# Ids.

_HEXADECIMAL: Final = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_URL_SAFE: Final = str.maketrans("-_", "+/")


def identity(value: object, width: int) -> int:
    """Read a trace id or a span id.

    Args:
        value: Hexadecimal digits, with or without leading zeros, or base64.
        width: How many bytes it has at most.

    Returns:
        The id; 0 if it is none.
    """
    if not isinstance(value, str) or not value:
        return 0
    if _HEXADECIMAL.fullmatch(value):
        return int(value, 16) if len(value) <= 2 * width else 0
    try:
        raw = base64.b64decode(
            value.translate(_URL_SAFE) + "=" * (-len(value) % 4), validate=True
        )
    except (binascii.Error, ValueError):
        return 0
    return int.from_bytes(raw, "big") if len(raw) <= width else 0


# Values.


def _either(found: Json, camel: str, snake: str) -> object:
    value = found.get(camel)
    return found.get(snake) if value is None else value


def _time(found: Json, camel: str, snake: str) -> int:
    value = whole_number(_either(found, camel, snake))
    return value if isinstance(value, int) and value > 0 else 0


def _dropped(found: Json) -> bool:
    count = _either(found, "droppedAttributesCount", "dropped_attributes_count")
    return count is not None and whole_number(count) != 0


def _value(found: object, depth: int) -> object:
    """Read a value, which is an object with one field named after its type."""
    if not isinstance(found, dict):
        return MALFORMED if found is None else found
    for kind, value in cast("Json", found).items():
        read = _VALUES.get(kind)
        if read is not None:
            return read(value, depth)
    return MALFORMED


def _int(value: object, _depth: int) -> object:
    number = whole_number(value)
    return number if type(number) is int else MALFORMED


def _of(kind: type) -> "_Read":
    def read(value: object, _depth: int) -> object:
        return value if type(value) is kind else MALFORMED

    return read


def _array(value: object, depth: int) -> object:
    if isinstance(value, dict):
        value = cast("Json", value).get("values", [])
    if not isinstance(value, list) or depth >= _DEEPEST:
        return MALFORMED
    return [_value(item, depth + 1) for item in cast("list[object]", value)]


def _unused(_value: object, _depth: int) -> object:
    return MALFORMED  # no attribute of the vocabulary has such a type


_Read = Callable[[object, int], object]

_VALUES: Final[Mapping[str, _Read]] = MappingProxyType({
    "stringValue": _of(str),
    "string_value": _of(str),
    "boolValue": _of(bool),
    "bool_value": _of(bool),
    "intValue": _int,
    "int_value": _int,
    "doubleValue": _of(float),
    "double_value": _of(float),
    "arrayValue": _array,
    "array_value": _array,
    "kvlistValue": _unused,
    "kvlist_value": _unused,
    "bytesValue": _unused,
    "bytes_value": _unused,
})
