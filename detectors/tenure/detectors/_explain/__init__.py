"""Let, then, however: the sentence that makes a finding a proof.

Pure text over the facts of a finding; it decides nothing.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tenure.detectors import anomalies
from tenure.detectors._explain import (
    _checkpoints,
    _messages,
    _staged,
    _supersteps,
    _tenures,
)
from tenure.detectors._explain._words import Explicable, joined, run_named


def sentence(finding: Explicable) -> str:
    """Return the proof of `finding` as `let …; then …; however, …`."""
    then, however = CLAUSES[finding.anomaly](finding)
    return f"let {_let(finding)}; then {then}; however, {however}"


def _let(finding: Explicable) -> str:
    """Introduce every epoch that the other two clauses speak of."""
    if finding.anomaly == anomalies.EPOCH_REUSE.slug:
        second, first = finding.evidence[0].run, finding.evidence[1].run
        return (
            f"{run_named(first.run_id)} and {run_named(second.run_id)} drive one "
            "instance"
        )
    runs: dict[int, str] = {}
    for operation in finding.evidence:
        runs.setdefault(operation.run.epoch, operation.run.run_id)
        owner = operation.owner
        if owner is not None and owner.run_id:
            runs.setdefault(owner.epoch, owner.run_id)
    spoken = {finding.culprit_epoch, finding.owner_epoch, finding.victim_epoch}
    return joined(
        f"epoch {epoch} be {run_named(runs.get(epoch))}"
        for epoch in sorted(epoch for epoch in spoken if epoch is not None)
    )


CLAUSES: Final[Mapping[str, Callable[[Explicable], tuple[str, str]]]] = (
    MappingProxyType({
        anomalies.STALE_DISCARD.slug: _staged.stale_discard,
        anomalies.LEAKED_WRITE.slug: _staged.leaked_write,
        anomalies.DIRTY_READ.slug: _staged.dirty_read,
        anomalies.STALE_COMMIT.slug: _staged.stale_commit,
        anomalies.LATE_WRITE.slug: _staged.late_write,
        anomalies.TORN_CHECKPOINT.slug: _checkpoints.torn_checkpoint,
        anomalies.LOST_SNAPSHOT.slug: _checkpoints.lost_snapshot,
        anomalies.FORK.slug: _checkpoints.fork,
        anomalies.OVERLAPPING_OWNERS.slug: _tenures.overlapping_owners,
        anomalies.EPOCH_REUSE.slug: _tenures.epoch_reuse,
        anomalies.NEVER_RELEASED.slug: _tenures.never_released,
        anomalies.FINALIZER_BY_GC.slug: _tenures.finalizer_by_gc,
        anomalies.FINALIZER_AT_SHUTDOWN.slug: _tenures.finalizer_at_shutdown,
        anomalies.WRITE_WRITE_CONFLICT.slug: _supersteps.write_write_conflict,
        anomalies.READ_WRITE_CONFLICT.slug: _supersteps.read_write_conflict,
        anomalies.MESSAGE_LOSS.slug: _messages.message_loss,
        anomalies.MESSAGE_DUPLICATION.slug: _messages.message_duplication,
        anomalies.FOREIGN_DELIVERY.slug: _messages.foreign_delivery,
    })
)
"""What each anomaly's second and third clause say."""
