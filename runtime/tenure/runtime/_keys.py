"""State keys: names, their types and how siblings' writes are joined."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")
Reducer = Callable[[Any, Any], Any]
"""Takes the value so far (`None` at first) and a staged one; returns the joined one."""


@dataclass(frozen=True)  # with slots, StateKey[list[str]]("name") fails (CPython 3.11)
class StateKey(Generic[T]):
    """A state key that knows the type of its value and, if asked, how to join writes.

    Attributes:
        name: Name of the key; a plain string with this name means the same key.
        reduce: Joins what siblings stage in one superstep, and the committed value, in
            graph order. Without one, two siblings that stage the key conflict, and so
            do two that declare different ones.
    """

    name: str
    reduce: Callable[[Any, Any], Any] | None = None


def append(committed: Sequence[Any] | None, staged: Sequence[Any]) -> list[Any]:
    """Join two sequences, the committed one first."""
    return [*(committed or ()), *staged]


def last(_committed: object, staged: T) -> T:
    """Keep the value of the executor that comes last in the graph."""
    return staged


PURE: Final[tuple[Reducer, ...]] = (append, last)
"""Reducers that are known to leave their arguments as they are."""


class _Deleted:
    """What stands in a ledger for a key that is to go."""

    __slots__ = ()

    def __deepcopy__(self, _memo: object) -> "_Deleted":
        return self


DELETED: Final = _Deleted()
"""The staged value of a key that is to go."""

MISSING: Final = _Deleted()
"""What a look-up finds where there is no value."""
