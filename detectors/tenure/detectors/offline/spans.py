"""A span as a reader found it, whatever the format, and what its attributes mean.

Pure. Formats differ in how they write a number or a list; what a name of the vocabulary
stands for is the same everywhere, so it is settled here, once.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, cast, final

from tenure.instrumentation import semconv
from tenure.instrumentation.operations import SpanRef


@dataclass(frozen=True, slots=True, kw_only=True)
class RawSpan:
    """One span of a trace file.

    Attributes:
        name: Its name.
        attributes: Those of its attributes that detectors know, by name. One that could
            not be read is `MALFORMED`.
        start: When it started, in nanoseconds since 1970; 0 where that is unknown.
        end: When it ended.
        trace_id: 128-bit trace id; 0 where it could not be read.
        span_id: 64-bit span id; 0 where it could not be read.
        scope: Name of its instrumentation scope, where the format has one.
        service: Name of the service, where the format says it before the span.
        incomplete: Whether the exporter says that it dropped some of the attributes.
    """

    name: str
    attributes: Mapping[str, object]
    start: int = 0
    end: int = 0
    trace_id: int = 0
    span_id: int = 0
    scope: str = ""
    service: str = ""
    incomplete: bool = False

    @property
    def reference(self) -> SpanRef | None:
        """Which span it is; `None` where its ids could not be read."""
        if not self.trace_id or not self.span_id:
            return None
        return SpanRef(self.trace_id, self.span_id)


@dataclass(frozen=True, slots=True)
class Found:
    """A span, and where it was.

    Attributes:
        span: The span.
        format: What it was written in.
        line: Its line, from 1; 0 in formats without lines.
    """

    span: RawSpan
    format: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that could not be read.

    Attributes:
        file: In which file.
        line: In which line, from 1; 0 where there is none.
        reason: Why, as a clause.
        unfinished: Whether what is missing was never written: nothing is there, or a
            trace breaks off.
    """

    file: str
    line: int
    reason: str
    unfinished: bool = False

    @property
    def where(self) -> str:
        """The place, such as `trace.jsonl, line 3`."""
        return f"{self.file}, line {self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


@final
class Malformed:
    """What stands for a value that could not be read."""

    def __repr__(self) -> str:
        return "MALFORMED"


MALFORMED: Final = Malformed()
"""The only `Malformed`: of no type that an attribute may have."""


def is_known(name: str) -> bool:
    """Say whether detectors may want the attribute `name`."""
    return name.startswith("tenure.") or name == semconv.ERROR_TYPE


def put(found: dict[str, object], name: str, value: object) -> None:
    """Add an attribute, as what its name stands for.

    Args:
        found: The attributes so far. A second value for one name, if it is another one,
            makes both worthless.
        name: The attribute.
        value: Its value, as the format has it; a sequence is a list.
    """
    meant = as_meant(name, value)
    if name in found and found[name] != meant:
        meant = MALFORMED
    found[name] = meant


def as_meant(name: str, value: object) -> object:
    """Return `value` in the type that the vocabulary gives to `name`.

    Some backends keep numbers as strings and lists as JSON text. Nothing is guessed:
    what is not beyond doubt of the right type stays as it is, for `lift` to refuse.

    Args:
        name: The attribute.
        value: Its value, as the format has it.
    """
    meant = _MEANT.get(name)
    return value if meant is None else meant(value)


_DIGITS: Final = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_INT64: Final = range(-(2**63), 2**63)
_EXACT: Final = 2.0**53
"""Up to here a double holds every whole number."""


def whole_number(value: object) -> object:
    """Return the int64 that `value` is beyond doubt, or `value` as it is."""
    if type(value) is int:
        return value if value in _INT64 else MALFORMED
    if isinstance(value, float):
        exact = value.is_integer() and abs(value) <= _EXACT
        return int(value) if exact else value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        number = int(value)
        return number if number in _INT64 else MALFORMED
    return value


def _truth(value: object) -> object:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


def _sequence(value: object) -> object:
    if isinstance(value, str) and value.startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return MALFORMED
    return value


def _whole_numbers(value: object) -> object:
    items = _sequence(value)
    if isinstance(items, list):
        return [whole_number(item) for item in cast("list[object]", items)]
    return items


_INTS: Final = (
    semconv.RUN_EPOCH,
    semconv.OWNER_EPOCH,
    semconv.SEQ,
    semconv.END_SEQ,
    semconv.SUPERSTEP_INDEX,
    semconv.EXECUTOR_ATTEMPT,
    semconv.WRITE_COUNT,
    semconv.WRITE_OMITTED,
    semconv.READ_WRITER_EPOCH,
    semconv.LEDGER_EPOCH,
    semconv.ORIGIN_EPOCH,
    semconv.SUPERSEDED_EPOCH,
    semconv.CULPRIT_EPOCH,
    semconv.VICTIM_EPOCH,
)
_INT_LISTS: Final = (
    semconv.WRITE_EPOCHS,
    semconv.INHERITED_EPOCHS,
    semconv.CHECKPOINT_EPOCHS,
)
_STRING_LISTS: Final = (
    semconv.WRITE_KEYS,
    semconv.READ_KEYS,
    semconv.REDUCED_KEYS,
    semconv.CHECKPOINT_PARTS,
    semconv.CHECKPOINT_TAKEN,
    semconv.SNAPSHOT_KEYS,
    semconv.KEYS,
)
_BOOLS: Final = (
    semconv.DISCARD_FENCED,
    semconv.LEDGER_SHARED,
    semconv.READ_ISOLATED,
)

_MEANT: Final[Mapping[str, Callable[[object], object]]] = MappingProxyType({
    **dict.fromkeys(_INTS, whole_number),
    **dict.fromkeys(_INT_LISTS, _whole_numbers),
    **dict.fromkeys(_STRING_LISTS, _sequence),
    **dict.fromkeys(_BOOLS, _truth),
})
"""What is not here is a string, and no other type becomes one."""
