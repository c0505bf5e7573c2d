"""Spans of the JSON that Jaeger's user interface reads and downloads.

Its trace ids may lack leading zeros, its times are in microseconds, its lists are JSON
text inside strings, and what it has of status and scope stands among the tags.
"""

from collections.abc import Iterator
from typing import Final, cast

from tenure.detectors.offline.otlp_json import Json, identity
from tenure.detectors.offline.spans import (
    MALFORMED,
    RawSpan,
    is_known,
    put,
    whole_number,
)

_SCOPES: Final = ("otel.scope.name", "otel.library.name")
_DROPPED: Final = "otel.dropped_attributes_count"


def is_span(found: Json) -> bool:
    """Say whether a span is Jaeger's; OTLP has no `operationName`."""
    return "operationName" in found


def span(found: Json, *, service: str = "") -> RawSpan:
    """Read one span.

    Args:
        found: A span of a trace of Jaeger.
        service: Name of its service.

    Returns:
        The span. What cannot be read in it is left out, or marked where it matters.
    """
    attributes: dict[str, object] = {}
    scope = ""
    incomplete = False
    for key, value in _tags(found):
        if is_known(key):
            put(attributes, key, value)
        elif key in _SCOPES and isinstance(value, str):
            scope = value
        elif key == _DROPPED:
            incomplete = whole_number(value) != 0
    name = found.get("operationName")
    start = _microseconds(found.get("startTime"))
    return RawSpan(
        name=name if isinstance(name, str) else "",
        attributes=attributes,
        start=start,
        end=start + _microseconds(found.get("duration")),
        trace_id=identity(found.get("traceID"), 16),
        span_id=identity(found.get("spanID"), 8),
        scope=scope,
        service=service,
        incomplete=incomplete,
    )


def _tags(found: Json) -> Iterator[tuple[str, object]]:
    tags = found.get("tags")
    for tag in cast("list[object]", tags) if isinstance(tags, list) else ():
        if isinstance(tag, dict):
            pair = cast("Json", tag)
            key, value = pair.get("key"), pair.get("value")
            if isinstance(key, str):
                yield key, MALFORMED if value is None else value


def _microseconds(value: object) -> int:
    number = whole_number(value)
    return number * 1000 if isinstance(number, int) and number > 0 else 0
