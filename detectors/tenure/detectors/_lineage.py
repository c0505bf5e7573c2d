"""What is remembered of checkpoints: which follows which, and which came first.

Pure and bounded. Arrival order is no evidence here either: a checkpoint comes after its
ancestors, and after what its own process had counted before it.
"""

from collections import OrderedDict
from typing import Final

from tenure.detectors._tenure import precedes
from tenure.instrumentation.operations import CheckpointSave

MAX_CHECKPOINTS: Final = 64
"""How many of the newest checkpoints, and of their parents, are remembered."""


class Lineage:
    """The checkpoints of one instance.

    Not safe to share between threads.
    """

    __slots__ = ("_children", "_saves", "lost_parents")

    def __init__(self) -> None:
        # For each parent, the child of the greatest epoch.
        self._children: Final[OrderedDict[str, CheckpointSave]] = OrderedDict()
        # By name; `None` for a name that two checkpoints have, which proves nothing.
        self._saves: Final[OrderedDict[str, CheckpointSave | None]] = OrderedDict()
        # Whether parents have been forgotten: another process may branch from them.
        self.lost_parents = False

    def saved(self, save: CheckpointSave) -> None:
        """Remember a checkpoint, after it has been judged."""
        known = self._saves.setdefault(save.checkpoint, save)
        if known is not save:
            self._saves[save.checkpoint] = None
        if len(self._saves) > MAX_CHECKPOINTS:
            self._saves.popitem(last=False)
        if save.parent is None:
            return
        child = self._children.setdefault(save.parent, save)
        if child.run.epoch < save.run.epoch:
            self._children[save.parent] = save
        if len(self._children) > MAX_CHECKPOINTS:
            self._children.popitem(last=False)
            self.lost_parents = True

    def child_of(self, parent: str) -> CheckpointSave | None:
        """Return the child of the greatest epoch that a checkpoint has had so far."""
        return self._children.get(parent)

    def reaches(self, save: CheckpointSave, checkpoint: str | None) -> bool:
        """Say whether `save` is known to have been made no later than a checkpoint.

        Args:
            save: A checkpoint.
            checkpoint: Name of another, or its own.
        """
        for _ in range(len(self._saves) + 1):  # whoever says so may go in circles
            if checkpoint is None:
                break
            itself = save if checkpoint == save.checkpoint else None
            known = self._saves.get(checkpoint, itself)
            if known is None:
                break
            if known is save or precedes(save, known):
                return True
            checkpoint = known.parent
        return False
