"""Single values of the standard library that msgpack has no type for. Pure."""

import datetime
import decimal
import fractions
import uuid
import zoneinfo
from collections.abc import Callable, Mapping
from typing import Any, Final

Writer = Callable[[Any], Any]
Reader = Callable[[Any], Any]


def _write_moment(value: datetime.datetime | datetime.time) -> list[Any] | None:
    """Return a date and time, or a time, with its zone by name where it has one.

    `None` if the zone is of a type that only code can make again.
    """
    zone = value.tzinfo
    if zone is None or type(zone) is datetime.timezone:
        return [value.isoformat(), value.fold, None]
    if type(zone) is zoneinfo.ZoneInfo and zone.key:
        return [value.replace(tzinfo=None).isoformat(), value.fold, zone.key]
    return None


def _read_moment(kind: type[Any]) -> Reader:
    def read(written: Any) -> Any:  # noqa: ANN401 - whatever the bytes hold
        text, fold, zone = written
        value = kind.fromisoformat(text)
        if zone is not None:
            value = value.replace(tzinfo=zoneinfo.ZoneInfo(zone))
        return value.replace(fold=fold)

    return read


def _write_span(value: datetime.timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _read_span(written: Any) -> datetime.timedelta:  # noqa: ANN401
    return datetime.timedelta(*written)


# Integers as hexadecimal text: they may be longer than 64 bits say, and Python refuses
# to write or read very long ones in decimal.


def _write_range(value: range) -> list[str]:
    return [hex(value.start), hex(value.stop), hex(value.step)]


def _read_range(written: Any) -> range:  # noqa: ANN401
    return range(*(int(one, 16) for one in written))


def _write_fraction(value: fractions.Fraction) -> list[str]:
    return [hex(value.numerator), hex(value.denominator)]


def _read_fraction(written: Any) -> fractions.Fraction:  # noqa: ANN401
    above, below = written
    return fractions.Fraction(int(above, 16), int(below, 16))


SCALARS: Final[Mapping[type, tuple[str, Writer, Reader]]] = {
    datetime.datetime: (
        "datetime",
        _write_moment,
        _read_moment(datetime.datetime),
    ),
    datetime.time: ("time", _write_moment, _read_moment(datetime.time)),
    datetime.date: (
        "date",
        datetime.date.isoformat,
        datetime.date.fromisoformat,
    ),
    datetime.timedelta: ("timedelta", _write_span, _read_span),
    decimal.Decimal: ("decimal", str, decimal.Decimal),
    fractions.Fraction: ("fraction", _write_fraction, _read_fraction),
    uuid.UUID: ("uuid", str, uuid.UUID),
    complex: ("complex", repr, complex),
    range: ("range", _write_range, _read_range),
}
"""For each type its name in checkpoints, and how its values are written and read."""

_READERS: Final = {name: read for name, _, read in SCALARS.values()}


def read_scalar(name: str, written: Any) -> Any:  # noqa: ANN401 - any of the types
    """Return the value that was written under the name of its type."""
    return _READERS[name](written)
