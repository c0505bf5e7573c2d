"""Committed state: changed only by commits, read through unchanging snapshots."""

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from tenure.runtime._isolation import isolate
from tenure.runtime._keys import DELETED


class StateSnapshot(Mapping[str, Any]):
    """Committed state as of one moment: read-only, and it stays as it is.

    Reading returns a value of its own: changing it changes nothing else. Safe to share
    between threads.

    Args:
        values: The committed values.
    """

    __slots__ = ("__weakref__", "_values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 - state holds any value
        return isolate(self._values[key], f"state key {key!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"StateSnapshot({dict(self._values)!r})"


class CommittedState:
    """The committed state of one instance.

    Not safe to share between threads: its instance holds a lock around each call.
    """

    __slots__ = ("_snapshot", "_values")

    def __init__(self) -> None:
        # Invariant: no live snapshot and no stale run looks at `_values` when it
        # changes; `commit` and `branch` copy it for them first.
        self._values: dict[str, Any] = {}
        self._snapshot: weakref.ref[StateSnapshot] | None = None

    @property
    def values(self) -> Mapping[str, Any]:
        """The current values, for the owner; the next commit may change them."""
        return self._values

    def branch(self) -> None:
        """Leave the current values to whoever looks at them, and go on with a copy."""
        self._values = dict(self._values)
        self._snapshot = None

    def replace(self, values: dict[str, Any]) -> None:
        """Hold other values; whoever looks at the current ones keeps them."""
        self._values = values
        self._snapshot = None

    def snapshot(self) -> StateSnapshot:
        """Return the current values as a mapping that later commits do not change."""
        known = None if self._snapshot is None else self._snapshot()
        if known is not None:
            return known
        snapshot = StateSnapshot(self._values)
        self._snapshot = weakref.ref(snapshot)
        return snapshot

    def commit(self, writes: Mapping[str, Any]) -> None:
        """Make `writes` visible, in time proportional to them.

        Args:
            writes: Each key and its isolated value, or `DELETED`.
        """
        if not writes:
            return
        if self._snapshot is not None:
            if self._snapshot() is not None:
                self.branch()
            self._snapshot = None
        self._values.update(writes)
        for key in [key for key, value in writes.items() if value is DELETED]:
            del self._values[key]
