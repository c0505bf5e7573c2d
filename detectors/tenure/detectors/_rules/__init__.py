"""The rules, by the operation that they judge.

A rule is a pure function of one operation and the history before it. It returns `()` in
the ordinary case and allocates nothing then.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tenure.detectors._history import History
from tenure.detectors._rules.dirty_read import dirty_read
from tenure.detectors._rules.epoch_reuse import epoch_reuse
from tenure.detectors._rules.finalizer_at_shutdown import finalizer_at_shutdown
from tenure.detectors._rules.finalizer_by_gc import finalizer_by_gc
from tenure.detectors._rules.foreign_delivery import foreign_delivery
from tenure.detectors._rules.fork import fork
from tenure.detectors._rules.late_write import late_write
from tenure.detectors._rules.leaked_write import leaked_write
from tenure.detectors._rules.lost_snapshot import lost_snapshot
from tenure.detectors._rules.message_duplication import message_duplication
from tenure.detectors._rules.message_loss import message_loss
from tenure.detectors._rules.never_released import never_released
from tenure.detectors._rules.overlapping_owners import overlapping_owners
from tenure.detectors._rules.read_write_conflict import read_write_conflict
from tenure.detectors._rules.stale_commit import stale_commit
from tenure.detectors._rules.stale_discard import stale_discard
from tenure.detectors._rules.torn_checkpoint import torn_checkpoint
from tenure.detectors._rules.write_write_conflict import write_write_conflict
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    Operation,
    Receive,
    Release,
)

Rule = Callable[[Any, History], tuple[Finding, ...]]
"""Judges one kind of operation; the table below pairs it with the kinds it takes."""

RULES: Final[Mapping[type[Operation], tuple[Rule, ...]]] = MappingProxyType({
    Claim: (epoch_reuse, overlapping_owners),
    Release: (message_loss, finalizer_by_gc, finalizer_at_shutdown),
    Execute: (write_write_conflict, read_write_conflict),
    Commit: (stale_commit, leaked_write, write_write_conflict, read_write_conflict),
    Discard: (stale_discard, lost_snapshot, finalizer_by_gc, finalizer_at_shutdown),
    CheckpointSave: (torn_checkpoint, lost_snapshot, fork),
    CheckpointRestore: (torn_checkpoint,),
    Late: (late_write,),
    Receive: (message_duplication,),
    ForeignRead: (dirty_read,),
    ForeignDelivery: (foreign_delivery,),
})
"""Which rules judge which operation; an operation that is not here breaks none."""

CONFLICT_RULES: Final[tuple[Rule, ...]] = (write_write_conflict, read_write_conflict)
"""Those of them that nobody need ask while no superstep is contended: most are not, and
every superstep would pay for it."""

SILENCE_RULES: Final[tuple[Callable[[History, float], tuple[Finding, ...]], ...]] = (
    never_released,
)
"""Which rules judge an instance of which nothing has arrived for a while."""

__all__ = ["CONFLICT_RULES", "RULES", "SILENCE_RULES", "Rule"]
