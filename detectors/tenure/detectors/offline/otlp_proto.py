"""Spans of OTLP protobuf: whole messages, or messages behind their sizes.

The wire format is walked down to the spans, so that a message that is larger than
memory, or truncated, gives up what it has; only a span is parsed as a whole. This
module needs `tenure[offline]`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, final

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tenure.detectors.offline.reading import Source
from tenure.detectors.offline.recognise import Encoding, varint
from tenure.detectors.offline.spans import (
    MALFORMED,
    Found,
    Problem,
    RawSpan,
    is_known,
    put,
)
from tenure.detectors.offline.text import BrokenError, Limits, TornError


@final
class ProtobufReader:
    """Reads the spans of a file of OTLP protobuf.

    Args:
        source: The file.
        limits: How much may be held in memory.
        encoding: How messages are told apart in it.
    """

    def __init__(self, source: Source, limits: Limits, encoding: Encoding) -> None:
        self._name: Final = source.name
        self._encoding: Final = encoding
        self._wire: Final = _Wire(source, limits)

    def __iter__(self) -> Iterator[Found | Problem]:
        """Yield every span, and every place where something could not be read."""
        wire = self._wire
        try:
            while not wire.over:
                size = self._size()
                end = None if size is None else wire.at + size
                try:
                    yield from self._message(end)
                except BrokenError as error:
                    if end is None:
                        raise
                    yield self._problem(error)
                    wire.skip(end - wire.at)  # the next message may be whole
        except BrokenError as error:
            yield self._problem(error)

    def _problem(self, error: BrokenError) -> Problem:
        torn = isinstance(error, TornError)
        return Problem(self._name, 0, error.reason, unfinished=torn)

    def _size(self) -> int | None:
        if self._encoding is Encoding.FRAMED_PROTOBUF:
            return int.from_bytes(self._wire.take(4), "big")
        if self._encoding is Encoding.DELIMITED_PROTOBUF:
            return self._wire.number()
        return None

    def _message(self, end: int | None) -> Iterator[Found | Problem]:
        for field, size in self._wire.fields(end):
            if field == _RESOURCE_SPANS:
                yield from self._resource_spans(self._wire.at + size)
            else:
                self._wire.skip(size)

    def _resource_spans(self, end: int) -> Iterator[Found | Problem]:
        service = ""
        for field, size in self._wire.fields(end):
            if field == _RESOURCE:
                service = _service(self._wire.take(size))
            elif field in _SCOPE_SPANS:
                yield from self._scope_spans(self._wire.at + size, service)
            else:
                self._wire.skip(size)

    def _scope_spans(self, end: int, service: str) -> Iterator[Found | Problem]:
        scope = ""
        for field, size in self._wire.fields(end):
            start = self._wire.at
            if field == _SCOPE:
                scope = _scope(self._wire.take(size))
            elif field == _SPAN:
                span = _span(self._wire.take(size), scope, service)
                if span is None:
                    reason = f"what is at byte {start} is not a span"
                    yield Problem(self._name, 0, reason)
                else:
                    yield Found(span, self._encoding.value)
            else:
                self._wire.skip(size)


_RESOURCE_SPANS: Final = 1
_RESOURCE: Final = 1
_SCOPE_SPANS: Final = frozenset({2, 1000})
"""The second one is what scopes were called before they had that name."""
_SCOPE: Final = 1
_SPAN: Final = 2


@final
class _Wire:
    """Bytes of the wire format, of which only a few are in memory."""

    def __init__(self, source: Source, limits: Limits) -> None:
        self._source: Final = source
        self._limits: Final = limits
        self._ahead = b""
        self._pos: int = 0
        self.at: int = 0  # how many bytes have been taken

    @property
    def over(self) -> bool:
        """Whether everything has been taken."""
        return not self._have(1)

    def fields(self, end: int | None) -> Iterator[tuple[int, int]]:
        """Stop at the content of each field: its number, and its size in bytes.

        Args:
            end: Where the message ends; at the end of all bytes if `None`.
        """
        while not self.over if end is None else self.at < end:
            start = self.at
            tag = self.number()
            kind = tag & 7
            if kind == _VARINT:
                self.number()
                continue
            size: int | None = self.number() if kind == _SIZED else _FIXED.get(kind)
            if size is None or tag >> 3 == 0 or (end and self.at + size > end):
                raise BrokenError(f"it is not OTLP protobuf from byte {start} on", 0)
            yield tag >> 3, size
        if end is not None and self.at > end:
            raise BrokenError(f"it is not OTLP protobuf before byte {end}", 0)

    def number(self) -> int:
        """Take a number of variable width."""
        self._have(10)
        value, width = varint(self._ahead[self._pos : self._pos + 10])
        if not width:
            if self._have(10):
                raise BrokenError(f"it is not OTLP protobuf at byte {self.at}", 0)
            raise self._early()
        self._pos += width
        self.at += width
        return value

    def take(self, size: int) -> bytes:
        """Take `size` bytes as a whole."""
        if size > self._limits.value:
            limit = self._limits.value / (1 << 20)
            raise BrokenError(
                f"one value has more than {limit:g} MiB, at byte {self.at}", 0
            )
        if not self._have(size):
            raise self._early()
        taken = self._ahead[self._pos : self._pos + size]
        self._pos += size
        self.at += size
        return taken

    def skip(self, size: int) -> None:
        """Pass over `size` bytes, of which memory never holds more than a few."""
        while size > 0:
            if not self._have(1):
                raise self._early()
            step = min(size, len(self._ahead) - self._pos)
            self._pos += step
            self.at += step
            size -= step

    def _have(self, size: int) -> bool:
        missing = size - len(self._ahead) + self._pos
        if missing <= 0:
            return True
        pieces = [self._ahead[self._pos :]]
        while missing > 0 and (piece := self._source.read()):
            pieces.append(piece)
            missing -= len(piece)
        self._ahead, self._pos = b"".join(pieces), 0
        return missing <= 0

    def _early(self) -> BrokenError:
        end = self.at + len(self._ahead) - self._pos
        return TornError(0, f", at byte {end}")


_VARINT: Final = 0
_SIZED: Final = 2
_FIXED: Final = {1: 8, 5: 4}


# Messages.


def _span(data: bytes, scope: str, service: str) -> RawSpan | None:
    try:
        found = Span.FromString(data)
    except DecodeError:
        return None
    return span(found, scope=scope, service=service)


def span(found: Span, *, scope: str = "", service: str = "") -> RawSpan | None:
    """Read one span.

    Args:
        found: A span of OTLP protobuf.
        scope: Name of its instrumentation scope.
        service: Name of its service.

    Returns:
        The span; `None` for what has no ids of a span.
    """
    # Metrics and logs have the same shape around them and other ids, or none.
    if len(found.trace_id) not in _TRACE_ID or len(found.span_id) != _SPAN_ID:
        return None
    attributes: dict[str, object] = {}
    for pair in found.attributes:
        if is_known(pair.key):
            put(attributes, pair.key, _value(pair.value))
    start: int = found.start_time_unix_nano
    return RawSpan(
        name=found.name,
        attributes=attributes,
        start=start,
        end=found.end_time_unix_nano or start,
        trace_id=int.from_bytes(found.trace_id, "big"),
        span_id=int.from_bytes(found.span_id, "big"),
        scope=scope,
        service=service,
        incomplete=bool(found.dropped_attributes_count),
    )


_TRACE_ID: Final = (8, 16)
_SPAN_ID: Final = 8


def _value(found: AnyValue) -> object:
    kind = found.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in found.array_value.values]
    return getattr(found, kind) if kind in _SCALARS else MALFORMED


_SCALARS: Final = frozenset({"string_value", "bool_value", "int_value", "double_value"})


def _service(data: bytes) -> str:
    resource = _parsed(Resource.FromString, data)
    for pair in () if resource is None else resource.attributes:
        if pair.key == "service.name":
            return str(pair.value.string_value)
    return ""


def _scope(data: bytes) -> str:
    scope = _parsed(InstrumentationScope.FromString, data)
    return "" if scope is None else str(scope.name)


def _parsed(parse: Callable[[bytes], Any], data: bytes) -> Any:  # noqa: ANN401 - a message
    try:
        return parse(data)
    except DecodeError:
        return None
