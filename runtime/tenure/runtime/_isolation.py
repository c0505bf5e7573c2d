"""Values that cross a border are copied, unless nobody can change them."""

import copy
import datetime
import decimal
import enum
import fractions
import types
import uuid
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final, cast

from tenure.runtime.errors import IsolationError

IMMUTABLE: Final[frozenset[type]] = frozenset({
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    types.FunctionType,
    types.BuiltinFunctionType,
    type,
})
"""Types whose values are passed as they are. Exact types: a subclass may be mutable."""


def isolate(value: Any, what: str) -> Any:  # noqa: ANN401 - any value may be isolated
    """Return a value that shares nothing changeable with `value`.

    Args:
        value: Any value.
        what: What it is for, for the error.

    Returns:
        `value` itself where nobody can change it, else a deep copy.

    Raises:
        IsolationError: It cannot be copied.
    """
    kind = cast("type[object]", type(value))
    if kind in IMMUTABLE or isinstance(value, enum.Enum | PurePath):
        return value
    if kind is list and _unchanging(value):
        return value.copy()
    if kind is dict and _unchanging(value) and _unchanging(value.values()):
        return value.copy()
    try:
        return copy.deepcopy(value)
    except Exception as exc:
        raise IsolationError(what, kind.__qualname__, explain(exc)) from exc


def _unchanging(items: Iterable[object]) -> bool:
    return IMMUTABLE.issuperset(map(type, items))


def explain(error: Exception) -> str:
    """Return what an error says, or else its type."""
    return str(error) or type(error).__name__
