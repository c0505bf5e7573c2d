"""A discard by another epoch than the owner's.

The write set on the operation is the whole proof of a victim: a newer epoch's write was
thrown away, whatever else was lost. Without a victim the owner's epoch decides.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import STALE_DISCARD, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Discard


def stale_discard(operation: Discard, history: History) -> tuple[Finding, ...]:
    """Judge a discard."""
    if not operation.fenced and operation.writes is not None:
        epoch = operation.run.epoch
        for _, writer in operation.writes.pairs:
            if writer > epoch:
                return _with_victim(operation, history)
    if operation.owner is None:
        return _without_owner(operation, history)
    if operation.run.epoch < operation.owner.epoch:
        return _without_victim(operation, history)
    # The owner's own sweep, or a run that drops what it staged: no anomaly.
    return ()


def _with_victim(operation: Discard, history: History) -> tuple[Finding, ...]:
    assert operation.writes is not None
    epoch = operation.run.epoch
    victim = max(writer for _, writer in operation.writes.pairs)
    keys = tuple(key for key, writer in operation.writes.pairs if writer > epoch)
    return (
        report(
            STALE_DISCARD,
            operation,
            history,
            variant="victim",
            victim=victim,
            keys=keys,
        ),
    )


def _without_victim(operation: Discard, history: History) -> tuple[Finding, ...]:
    variant, missing = _harm(operation)
    return (
        report(
            STALE_DISCARD,
            operation,
            history,
            variant=variant,
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            keys=() if operation.writes is None else operation.writes.keys,
            missing=missing,
        ),
    )


def _without_owner(operation: Discard, history: History) -> tuple[Finding, ...]:
    """Judge by history a discard that does not say who owned the instance."""
    newer, proven = history.newer_claim(operation)
    if newer is None:
        return ()
    variant, missing = _harm(operation)
    if not proven:
        missing = (*missing, "the owner's epoch at the discard")
    return (
        report(
            STALE_DISCARD,
            operation,
            history,
            variant=variant,
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            owner=newer.run.epoch,
            keys=() if operation.writes is None else operation.writes.keys,
            missing=missing,
        ),
    )


def _harm(operation: Discard) -> tuple[str, tuple[str, ...]]:
    """Weigh a stale discard without a listed victim, and name what is not known.

    A discard of one's own ledger is the one thing that a stale epoch may do: where
    every epoch has a ledger, it reaches nobody else.
    """
    if operation.fenced:
        return "fenced", ()
    writes, epoch = operation.writes, operation.run.epoch
    own = operation.ledger == epoch and not operation.shared
    if own and (writes is None or not writes.foreign_to(epoch)):
        return "own-ledger", ()
    if writes is None:
        return "no-victim", ("the discarded keys and who staged them",)
    if not writes.lists_all_foreign_to(epoch):
        return "no-victim", (f"{writes.omitted} of the discarded keys",)
    return "no-victim", ()
