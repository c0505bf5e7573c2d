"""A commit by an epoch that no longer owns the instance."""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import STALE_COMMIT, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Commit


def stale_commit(operation: Commit, history: History) -> tuple[Finding, ...]:
    """Judge a commit by the owner's epoch."""
    owner = operation.owner
    if owner is None:
        return _without_owner(operation, history)
    if operation.run.epoch >= owner.epoch:
        return ()
    return (_stale(operation, history, owner.epoch, proven=True),)


def _without_owner(operation: Commit, history: History) -> tuple[Finding, ...]:
    newer, proven = history.newer_claim(operation)
    if newer is None:
        return ()
    return (_stale(operation, history, newer.run.epoch, proven=proven),)


def _stale(operation: Commit, history: History, owner: int, *, proven: bool) -> Finding:
    """Report it; what is not known to have been written harmed nobody for certain."""
    writes = operation.writes
    missing: list[str] = []
    if writes is None:
        missing.append("the committed keys and who staged them")
    if not proven:
        missing.append("the owner's epoch at the commit")
    wrote = writes is not None and writes.count > 0
    return report(
        STALE_COMMIT,
        operation,
        history,
        variant="written" if wrote else "empty",
        certainty=Certainty.CERTAIN if proven else Certainty.POSSIBLE,
        owner=owner,
        victim=owner if wrote else None,
        keys=() if writes is None else writes.keys,
        missing=tuple(missing),
    )
