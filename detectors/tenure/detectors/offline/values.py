"""Where the spans are in a file of JSON values, found without holding a whole value.

A value is walked token by token down to its spans, each of which is read at once. Lines
of the collector's file exporter, documents, pretty-printed or not, answers of backends
and mixtures of all these differ only in what stands around the lists called `spans`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, cast, final

from tenure.detectors.offline import jaeger, otlp_json
from tenure.detectors.offline.otlp_json import Json
from tenure.detectors.offline.reading import Source
from tenure.detectors.offline.spans import Found, Problem
from tenure.detectors.offline.text import BrokenError, Limits, Text, TornError


@dataclass(frozen=True, slots=True)
class _Around:
    """What is known of the spans in a container."""

    scope: str = ""
    service: str = ""
    wrapped: bool = False


@dataclass(slots=True)
class _Value:
    """What was met in one value."""

    spans: bool = False
    known: bool = False
    strange: list[str] = field(default_factory=list[str])
    complaint: str = ""

    def note(self, key: str) -> None:
        """Remember a key near its top, or that there was one."""
        if key in _KNOWN:
            self.known = True
        elif len(self.strange) < _FEW:
            self.strange.append(key[:_SHORT])


@final
class JsonReader:
    """Reads the spans of a file of JSON values.

    Args:
        source: The file.
        limits: How much may be held in memory.
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        self._name: Final = source.name
        self._text: Final = Text(source, limits)
        self._value: _Value = _Value()

    def __iter__(self) -> Iterator[Found | Problem]:
        """Yield every span, and every place where something could not be read."""
        text = self._text
        while text.begin():
            text.mark = text.pos + 1
            self._value = _Value()
            line = text.line
            try:
                yield from self._top()
            except BrokenError as error:
                yield self._problem(error)
                text.leave()
                continue
            reason = self._lacking()
            if reason:
                yield Problem(self._name, line, reason)

    def _problem(self, error: BrokenError) -> Problem:
        # Whatever else breaks off may never have been a trace.
        torn = isinstance(error, TornError) and (self._value.known or self._value.spans)
        return Problem(self._name, error.line, error.reason, unfinished=torn)

    def _top(self) -> Iterator[Found | Problem]:
        start = self._peek()
        if start not in "{[":
            self._decode()
            raise BrokenError("it is not an object of JSON", self._text.line)
        yield from self._container(_Around(), 0)

    def _lacking(self) -> str:
        """Say what a value that was read to its end has instead of spans."""
        value = self._value
        if value.spans:
            return ""
        if value.complaint:
            return f"a backend answered: {value.complaint}"
        if value.known or not value.strange:
            return ""
        return f"there are no spans in it, only {', '.join(value.strange)}"

    # Containers.

    def _container(self, around: _Around, depth: int) -> Iterator[Found | Problem]:
        if depth > _DEEPEST:
            raise BrokenError("it is nested too deeply", self._text.line)
        if self._peek() == "{":
            yield from self._object(around, depth)
        else:
            yield from self._array(around, depth)

    def _array(self, around: _Around, depth: int) -> Iterator[Found | Problem]:
        for _ in self._items():
            if self._peek() in "{[":
                yield from self._container(around, depth + 1)
            else:
                self._decode()

    def _object(self, around: _Around, depth: int) -> Iterator[Found | Problem]:
        line = self._text.line
        # A span that stands alone, not in a list of spans.
        alone: dict[str, object] | None = None
        for number, key in enumerate(self._keys()):
            if number == 0 and depth < _SHALLOW and key in _IDS:
                alone = {}
            if alone is not None and key != "spans":
                alone[key] = self._decode()
                continue
            alone = None
            if depth < _SHALLOW:
                self._value.note(key)
            if key in _SCOPES:
                around = replace(around, scope=otlp_json.scope_name(self._decode()))
            elif key == "resource":
                service = otlp_json.service_name(self._decode())
                around = replace(around, service=service)
            else:
                yield from self._member(key, around, depth)
        if alone is not None:
            self._value.spans = True
            yield self._found(alone, around, line)

    def _member(
        self, key: str, around: _Around, depth: int
    ) -> Iterator[Found | Problem]:
        start = self._peek()
        if key == "spans" and start == "[":
            yield from self._spans(around)
        elif start in "{[":
            inner = replace(around, wrapped=True) if key == "result" else around
            yield from self._container(inner, depth + 1)
        else:
            self._note(key, self._decode())

    def _note(self, key: str, value: object) -> None:
        if key in _COMPLAINTS and isinstance(value, str) and value:
            self._value.complaint = self._value.complaint or value[:_LONG]

    def _spans(self, around: _Around) -> Iterator[Found | Problem]:
        text = self._text
        self._value.spans = True
        for _ in self._items():
            line = text.line
            item = self._decode()
            text.mark = text.pos
            if not isinstance(item, dict):
                yield Problem(self._name, line, "a span is not an object of JSON")
                continue
            yield self._found(cast("Json", item), around, line)

    def _found(self, span: Json, around: _Around, line: int) -> Found:
        if jaeger.is_span(span):
            found = jaeger.span(span, service=around.service)
            return Found(found, "Jaeger UI JSON", line)
        found = otlp_json.span(span, scope=around.scope, service=around.service)
        kind = "Jaeger api/v3 JSON" if around.wrapped else "OTLP JSON"
        return Found(found, kind, line)

    # Tokens.

    def _keys(self) -> Iterator[str]:
        """Yield each key of an object, its value being next."""
        for _ in self._items("{}"):
            if self._peek() != '"':
                raise self._unexpected("a key")
            key = cast("str", self._decode())
            if self._peek() != ":":
                raise self._unexpected("a colon")
            self._text.pos += 1
            yield key

    def _items(self, brackets: str = "[]") -> Iterator[None]:
        """Stop at each item of an array, or of an object, until its end."""
        text = self._text
        opening, closing = brackets[0], brackets[1]
        if self._peek() != opening:
            raise self._unexpected("an object" if opening == "{" else "an array")
        text.pos += 1
        if self._peek() == closing:
            text.pos += 1
            return
        while True:
            yield
            after = self._peek()
            text.pos += 1
            if after == closing:
                return
            if after != ",":
                text.pos -= 1
                raise self._unexpected("a comma")
            self._peek()

    def _peek(self) -> str:
        """Return the next character that is not white space, without taking it."""
        text = self._text
        here = text.buffer[text.pos : text.pos + 1]
        if here > " ":
            return here
        while True:
            match = _SPACE.match(text.buffer, text.pos)
            if match is not None:
                text.pos = match.end()
            if text.pos < len(text.buffer):
                return text.buffer[text.pos]
            if not text.more():
                raise TornError(text.line)

    def _decode(self) -> object:
        """Read the next value as a whole."""
        text = self._text
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(text.buffer, text.pos)
            except json.JSONDecodeError as error:
                if not text.grow():
                    raise self._wrong(error) from None
            except ValueError:
                raise BrokenError("a number has too many digits", text.line) from None
            except RecursionError:
                raise BrokenError("it is nested too deeply", text.line) from None
            else:
                # A number that reaches the end of the buffer may go on.
                if end < len(text.buffer) or not text.grow():
                    text.pos = end
                    return cast("object", value)

    def _unexpected(self, wanted: str) -> BrokenError:
        text = self._text
        return BrokenError(
            f"it is not JSON: {wanted} was expected at column {text.column()}",
            text.line,
        )

    def _wrong(self, error: json.JSONDecodeError) -> BrokenError:
        text = self._text
        line = text.line + text.buffer.count("\n", text.pos, error.pos)
        unterminated = error.msg.startswith("Unterminated string")
        if unterminated or not text.buffer[error.pos :].strip():
            return TornError(line)
        clause = error.msg.removesuffix(" at").lower()
        return BrokenError(
            f"it is not JSON: {clause} at column {text.column(error.pos)}", line
        )


_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DEEPEST: Final = 64
_SHALLOW: Final = 2
_SHORT: Final = 40
_FEW: Final = 3
_LONG: Final = 200
_IDS: Final = frozenset({
    "traceId",
    "trace_id",
    "traceID",
    "spanId",
    "span_id",
    "spanID",
})
"""What a span that stands alone begins with."""
_SCOPES: Final = frozenset({
    "scope",
    "instrumentationLibrary",
    "instrumentation_library",
})
_KNOWN: Final = frozenset({
    "resourceSpans",
    "resource_spans",
    "resourceMetrics",
    "resourceLogs",
    "resourceProfiles",
    "batches",
    "data",
    "result",
    "trace",
    "traces",
})
"""Values with one of these may be without spans, and with other signals instead."""
_COMPLAINTS: Final = frozenset({"msg", "message", "error"})
