"""A stage, send or output by an epoch that no longer owns the instance.

On a map that all runs share it is a violation in waiting, hence a warning: the owner's
next commit may carry it. In the writer's own ledger it reaches nobody: averted.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import LATE_WRITE, Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Late, Operation


def late_write(operation: Late, history: History) -> tuple[Finding, ...]:
    """Judge a late stage, send or output."""
    epoch = operation.run.epoch
    owner = None if operation.owner is None else operation.owner.epoch
    witnesses: tuple[Operation, ...] = ()
    missing: list[str] = []
    superseded = owner is not None and epoch < owner
    if owner is None:
        newer, proven = history.newer_claim(operation)
        if newer is not None and proven:
            superseded, owner, witnesses = True, newer.run.epoch, (newer,)
    if not superseded:
        release = history.release_before(operation, epoch)
        if release is None:
            missing.append(f"the release of epoch {epoch}")
        else:
            witnesses = (release,)
    return (
        _late(operation, history, owner, witnesses, missing, superseded=superseded),
    )


def _late(
    operation: Late,
    history: History,
    owner: int | None,
    witnesses: tuple[Operation, ...],
    missing: list[str],
    *,
    superseded: bool,
) -> Finding:
    own = operation.ledger == operation.run.epoch
    if operation.ledger is None:
        missing.append("whose ledger took the write")
    elif own and not superseded:
        # A shared map is the owner's, and the newest claim is this run's own: the
        # ledger's epoch does not tell the two apart.
        missing.append("whether later runs share the ledger")
    return report(
        LATE_WRITE,
        operation,
        history,
        severity=Severity.AVERTED if own else Severity.WARNING,
        certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
        owner=owner,
        keys=() if operation.writes is None else operation.writes.keys,
        witnesses=witnesses,
        missing=tuple(missing),
    )
