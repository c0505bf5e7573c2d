"""Values out of span attributes, or the name of the one that cannot be read. Pure."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, cast

from tenure.instrumentation import semconv
from tenure.instrumentation.operations import WriteSet

_T = TypeVar("_T")
_E = TypeVar("_E", bound=StrEnum)
Attributes = Mapping[str, Any]


class UnreadableError(Exception):
    """An attribute is missing or malformed; never leaves the detectors.

    Args:
        name: The attribute.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def typed(attributes: Attributes, name: str, kind: type[_T]) -> _T | None:
    """Return an attribute of one class; `None` where it is missing."""
    value = attributes.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnreadableError(name)
    return value


def integer(attributes: Attributes, name: str) -> int | None:
    """Return a whole number; `None` where it is missing."""
    return typed(attributes, name, int)


def text(attributes: Attributes, name: str) -> str | None:
    """Return a text; `None` where it is missing."""
    return typed(attributes, name, str)


def flag(attributes: Attributes, name: str) -> bool:
    """Return a truth value; false where it is missing."""
    return typed(attributes, name, bool) or False


def need(value: _T | None, name: str) -> _T:
    """Insist on a value of the attribute `name`."""
    if value is None:
        raise UnreadableError(name)
    return value


def array(attributes: Attributes, name: str, kind: type[_T]) -> tuple[_T, ...] | None:
    """Return an array of one class; `None` where it is missing."""
    value = attributes.get(name)
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UnreadableError(name)
    items = cast("Sequence[object]", value)
    found = tuple(
        item
        for item in items
        if isinstance(item, kind) and not (kind is int and isinstance(item, bool))
    )
    if len(found) != len(items):
        raise UnreadableError(name)
    return found


def choice(attributes: Attributes, name: str, choices: type[_E]) -> _E | None:
    """Return a member of an enumeration; `None` where it is missing."""
    value = text(attributes, name)
    if value is None:
        return None
    try:
        return choices(value)
    except ValueError:
        raise UnreadableError(name) from None


def pairs(
    attributes: Attributes, keys: str, epochs: str
) -> tuple[tuple[str, int], ...] | None:
    """Return two parallel arrays as pairs; `None` where both are missing."""
    named = array(attributes, keys, str)
    numbered = array(attributes, epochs, int)
    if named is None and numbered is None:
        return None
    if named is None or numbered is None or len(named) != len(numbered):
        raise UnreadableError(epochs)
    return tuple(zip(named, numbered, strict=True))


def write_set(attributes: Attributes) -> WriteSet | None:
    """Return what was written; `None` where nothing says."""
    listed = pairs(attributes, semconv.WRITE_KEYS, semconv.WRITE_EPOCHS)
    count = integer(attributes, semconv.WRITE_COUNT)
    omitted = integer(attributes, semconv.WRITE_OMITTED) or 0
    if listed is None and count is None and omitted == 0:
        return None
    # Empty sequences are not told; then the count must say that nothing is listed.
    found = WriteSet(listed or (), omitted)
    if omitted < 0:
        raise UnreadableError(semconv.WRITE_OMITTED)
    if count != found.count and not (listed and count is None):
        missing = semconv.WRITE_KEYS if listed is None else semconv.WRITE_COUNT
        raise UnreadableError(missing)
    return found
