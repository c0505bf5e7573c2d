"""Which epoch took each part of a checkpoint: executor snapshots and edge buffers."""

from collections import OrderedDict
from collections.abc import Container, Iterable
from typing import Final

_REMEMBERED: Final = 64
"""How many saved checkpoints of an instance are remembered, to tell their restore."""

UNKNOWN_EPOCH: Final = 0
"""Epoch of what was restored and not saved by this process: before any epoch of it."""


class Parts:
    """The parts that an instance would put into its next checkpoint.

    The engine keeps snapshots as two reserved keys of its state, so that they are
    staged, committed and discarded as those keys are.
    """

    def __init__(self) -> None:
        self._committed: dict[str, dict[str, int]] = {}
        self._staged: dict[str, dict[str, int]] = {}
        self._saved: Final[OrderedDict[str, dict[str, int]]] = OrderedDict()

    def add(self, key: str, part: str, epoch: int, *, staged: bool) -> None:
        """Note that one snapshot was added to those under a reserved key.

        Args:
            key: The reserved key.
            part: Name of the part.
            epoch: Epoch that took it.
            staged: Whether the key was staged before: else the committed parts were
                read, and are staged again together with the new one.
        """
        before = self._staged.get(key) if staged else None
        if before is None:
            before = self._committed.get(key, {})
        self._staged[key] = {**before, part: epoch}

    def replace(self, key: str, parts: Iterable[str], epoch: int) -> None:
        """Note that all parts under a reserved key were staged anew by `epoch`."""
        self._staged[key] = dict.fromkeys(parts, epoch)

    def commit(self, keys: Iterable[str], kept: Container[str]) -> None:
        """Note that reserved keys became committed.

        Args:
            keys: The keys.
            kept: What is committed now; a key that is not there was deleted.
        """
        for key in keys:
            staged = self._staged.pop(key, None)
            if key not in kept:
                self._committed.pop(key, None)
            elif staged is not None:
                self._committed[key] = staged

    def discard(self) -> None:
        """Note that nothing is staged any more."""
        self._staged.clear()

    def snapshot(self) -> dict[str, int]:
        """Return the parts that a checkpoint made now would have."""
        return {
            part: epoch
            for parts in self._committed.values()
            for part, epoch in parts.items()
        }

    def remember(self, checkpoint: str, parts: dict[str, int]) -> None:
        """Remember the parts of a checkpoint, so that its restore can name them."""
        self._saved[checkpoint] = parts
        while len(self._saved) > _REMEMBERED:
            self._saved.popitem(last=False)

    def restored(
        self, checkpoint: str, found: dict[str, tuple[str, ...]]
    ) -> dict[str, int] | None:
        """Note that a checkpoint was restored.

        Args:
            checkpoint: Its identity.
            found: For each reserved key, the names of the parts in it.

        Returns:
            Its parts, where this process saved it; else `None`.
        """
        known = self._saved.get(checkpoint)
        self._staged.clear()
        self._committed = {
            key: {part: (known or {}).get(part, UNKNOWN_EPOCH) for part in parts}
            for key, parts in found.items()
        }
        return known
