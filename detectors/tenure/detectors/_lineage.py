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

    __slots__ = ("_children", "_dropped", "_lost", "_saves", "_unseen")

    def __init__(self) -> None:
        # For each parent, the child of the greatest epoch.
        self._children: Final[OrderedDict[str, CheckpointSave]] = OrderedDict()
        # By name; `None` for a name that two checkpoints have, which proves nothing.
        self._saves: Final[OrderedDict[str, CheckpointSave | None]] = OrderedDict()
        # Parents that were named before they had been seen.
        self._unseen: Final[OrderedDict[str, None]] = OrderedDict()
        # Whether children have been forgotten, and whether one of them may have had a
        # sibling that went unseen.
        self._dropped = False
        self._lost = False

    def saved(self, save: CheckpointSave) -> None:
        """Remember a checkpoint, after it has been judged."""
        self._look_for_siblings(save)
        known = self._saves.setdefault(save.checkpoint, save)
        if known is not save:
            self._saves[save.checkpoint] = None
            self._lost = True
        if len(self._saves) > MAX_CHECKPOINTS:
            self._saves.popitem(last=False)
        if save.parent is None:
            return
        child = self._children.setdefault(save.parent, save)
        if child.run.epoch < save.run.epoch:
            self._children[save.parent] = save
        if len(self._children) > MAX_CHECKPOINTS:
            self._children.popitem(last=False)
            self._dropped = True

    def _look_for_siblings(self, save: CheckpointSave) -> None:
        """Note whether `save` may have a sibling that was forgotten.

        Invariant: of a parent that is among the remembered checkpoints, its child is
        remembered too. A checkpoint adds one parent at most, after itself.
        """
        name, parent = save.checkpoint, save.parent
        if name in self._unseen:
            del self._unseen[name]
            if name in self._children:
                self._children.move_to_end(name)
            else:
                self._lost = True
        if parent is None or parent in self._children or parent in self._saves:
            return
        if parent in self._unseen:  # somebody named it before, and is forgotten
            self._lost = True
        self._unseen[parent] = None
        if len(self._unseen) > MAX_CHECKPOINTS:
            self._unseen.popitem(last=False)
            self._lost = True

    @property
    def doubtful(self) -> bool:
        """Whether two checkpoints may have had one parent unseen.

        Children have been forgotten, and since then a parent was named of which it is
        not known whether it had one. It may be all right once that parent arrives.
        """
        return self._lost or (self._dropped and bool(self._unseen))

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
