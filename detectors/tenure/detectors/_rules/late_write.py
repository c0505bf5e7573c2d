"""A stage, send or output by an epoch that no longer owns the instance.

On a map that all runs share it is a violation in waiting, hence a warning: the next
commit may carry it, also where the writer has released and nobody has claimed since. In
the writer's own ledger it reaches nobody: averted.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import LATE_WRITE, Certainty
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
    return (_late(operation, history, owner, witnesses, missing),)


def _late(
    operation: Late,
    history: History,
    owner: int | None,
    witnesses: tuple[Operation, ...],
    missing: list[str],
) -> Finding:
    own = operation.ledger == operation.run.epoch and not operation.shared
    if operation.ledger is None and not operation.shared:
        missing.append("whose ledger took the write")
    return report(
        LATE_WRITE,
        operation,
        history,
        variant="own-ledger" if own else "reaches-others",
        certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
        owner=owner,
        keys=() if operation.writes is None else operation.writes.keys,
        witnesses=witnesses,
        missing=tuple(missing),
    )
