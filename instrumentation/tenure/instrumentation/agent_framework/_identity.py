"""What is known of objects that are neither kept alive nor asked to be hashable."""

import weakref
from typing import Any, Final, Generic, TypeVar

_T = TypeVar("_T")


class _Reference(weakref.ref[Any]):
    """A weak reference that remembers the identity of what it referred to."""

    __slots__ = ("identity",)

    identity: int


class WeakIdentityMap(Generic[_T]):
    """A mapping by identity, whose entries go with their objects.

    Messages compare by value and events are many: `WeakKeyDictionary` would not take
    the ones and is slow for the others. Safe to use from threads and finalizers, as
    each method changes at most one entry of a dictionary.
    """

    __slots__ = ("_entries", "_forget")

    def __init__(self) -> None:
        entries: dict[int, tuple[_Reference, _T]] = {}

        def forget(reference: _Reference) -> None:
            # Before the identity can be another object's: this object is not freed yet.
            entries.pop(reference.identity, None)

        self._entries: Final = entries
        self._forget: Final = forget

    def put(self, thing: object, known: _T) -> None:
        """Note what is known of `thing`; it must be weakly referable.

        Args:
            thing: The object.
            known: What is known of it, replacing what was.
        """
        identity = id(thing)
        reference = _Reference(thing, self._forget)
        reference.identity = identity
        self._entries[identity] = (reference, known)

    def get(self, thing: object) -> _T | None:
        """Return what is known of `thing`, or `None`."""
        entry = self._entries.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def drop(self, thing: object) -> None:
        """Forget what is known of `thing`, if anything is."""
        if self.get(thing) is not None:
            self._entries.pop(id(thing), None)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
