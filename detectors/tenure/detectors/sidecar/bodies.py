"""Messages of OTLP as operations: unpacked within a bound, then read.

Pure. What a span means is read where trace files are read as well.
"""

import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, cast

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from tenure.detectors.offline import otlp_json, otlp_proto
from tenure.detectors.offline.checking import DROPPED, lift_raw
from tenure.detectors.offline.otlp_json import Json
from tenure.detectors.offline.spans import RawSpan
from tenure.detectors.sidecar.intake import Format
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import Operation

GZIP: Final = b"\x1f\x8b"
"""How gzip begins; neither JSON nor a message of protobuf can begin so."""

_WITH_GZIP_HEADER: Final = 16 + zlib.MAX_WBITS
_PIECE: Final = 1 << 16
_IDS: Final = "trace id or span id"
_REASONS: Final = 5
"""How many kinds of unreadable spans are told apart in one answer."""


class TooLargeError(Exception):
    """A body unpacks to more than the limit; never leaves this package."""


class NoRoomError(Exception):
    """There is no room for what a body unpacks to; never leaves this package."""


class UnreadableError(Exception):
    """A body is not what it is said to be; never leaves this package.

    Args:
        reason: Why, as a clause.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message of spans says.

    Attributes:
        operations: The operations, in the order of the spans that carry them.
        spans: How many spans it has, whoever emitted them.
        rejected: How many of them carry an operation that cannot be read.
        reasons: What is wrong with these, in a few kinds.
        doubts: What is missing from what was read, as reasons not to call it clean.
    """

    operations: tuple[Operation, ...]
    spans: int
    rejected: int = 0
    reasons: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def gunzip(
    packed: bytes, limit: int, grow: Callable[[int], bool] | None = None
) -> bytes:
    """Unpack `packed`, holding no more than `limit` bytes and a piece at any time.

    Args:
        packed: One or more members of gzip.
        limit: How many bytes they may unpack to.
        grow: Asked for room for each piece, where room is scarce.

    Raises:
        TooLargeError: They unpack to more.
        NoRoomError: There was no room.
        UnreadableError: They are not gzip, or damaged, or end too early.
    """
    pieces: list[bytes] = []
    size = 0
    for piece in _unpacked(packed):
        size += len(piece)
        if size > limit:
            raise TooLargeError
        if grow is not None and not grow(len(piece)):
            raise NoRoomError
        pieces.append(piece)
    return b"".join(pieces)


def _unpacked(packed: bytes) -> Iterator[bytes]:
    while packed:
        member = zlib.decompressobj(_WITH_GZIP_HEADER)
        while not member.eof:
            try:
                piece = member.decompress(packed, _PIECE)
            except zlib.error:
                raise UnreadableError("its gzip data is damaged") from None
            packed = member.unconsumed_tail
            if not (piece or packed or member.eof):
                raise UnreadableError("its gzip data ends too early")
            yield piece
        packed = member.unused_data


def read(body: bytes, written: Format) -> Reading:
    """Read the operations in a message of spans.

    Args:
        body: The message, unpacked.
        written: How it is written.

    Raises:
        UnreadableError: It is not a message of spans.
    """
    spans = _of_json(body) if written is Format.JSON else _of_protobuf(body)
    operations: list[Operation] = []
    wrong: Counter[str] = Counter()
    count = 0
    for span in spans:
        count += 1
        missing = _IDS if span is None else _lift_into(operations, span)
        if missing:
            wrong[missing] += 1
    return Reading(
        tuple(operations),
        count,
        wrong.total(),
        tuple(
            f"{number} without a readable {what}"
            for what, number in wrong.most_common(_REASONS)
        ),
        tuple(f"spans without a readable {what}" for what in sorted(wrong)),
    )


def _lift_into(operations: list[Operation], span: RawSpan) -> str:
    """Add what `span` carries; return that for want of which it is not all there."""
    if span.scope == semconv.DETECTORS_SCOPE:
        return ""
    lifted = lift_raw(span)
    if span.incomplete and (lifted.operations or lifted.unreadable):
        return DROPPED
    operations.extend(lifted.operations)
    return lifted.unreadable[0] if lifted.unreadable else ""


# Protobuf.


def _of_protobuf(body: bytes) -> Iterator[RawSpan | None]:
    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError:
        raise UnreadableError("it is not OTLP protobuf") from None
    return _spans_of(request)


def _spans_of(request: ExportTraceServiceRequest) -> Iterator[RawSpan | None]:
    for resource_spans in request.resource_spans:
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                yield otlp_proto.span(span, scope=scope)


# JSON.


def _of_json(body: bytes) -> Iterator[RawSpan | None]:
    try:
        document: object = json.loads(body)
    except RecursionError:
        raise UnreadableError("it is nested too deeply") from None
    except ValueError:
        raise UnreadableError("it is not JSON") from None
    return _spans_in(_object(document, "the message"))


def _spans_in(request: Json) -> Iterator[RawSpan | None]:
    for resource_spans in _objects(request, "resourceSpans", "resource_spans"):
        for scope_spans in _objects(resource_spans, "scopeSpans", "scope_spans"):
            scope = otlp_json.scope_name(scope_spans.get("scope"))
            for span in _objects(scope_spans, "spans", "spans"):
                found = otlp_json.span(span, scope=scope)
                yield None if found.reference is None else found


def _objects(holder: Json, camel: str, snake: str) -> list[Json]:
    found = holder.get(camel, holder.get(snake))
    if found is None:
        return []
    if not isinstance(found, list):
        raise UnreadableError(f"{camel} is not an array")
    return [
        _object(item, f"an item of {camel}") for item in cast("list[object]", found)
    ]


def _object(found: object, what: str) -> Json:
    if not isinstance(found, dict):
        raise UnreadableError(f"{what} is not an object")
    return cast("Json", found)
