"""A commit that makes durable what another epoch had staged.

The write set on the operation shows the foreign writer. That the writer is over, so
that its superstep will never finish, follows from the owner's epoch on the same
operation, or from a release that one process counted before the commit.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import LEAKED_WRITE, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Commit


def leaked_write(operation: Commit, history: History) -> tuple[Finding, ...]:
    """Judge a commit by the epochs of its write set."""
    writes = operation.writes
    if writes is None:
        return ()
    epoch = operation.run.epoch
    for _, writer in writes.pairs:
        if writer != epoch and writer not in operation.inherited:
            return _leaked(operation, history)
    return ()


def _leaked(operation: Commit, history: History) -> tuple[Finding, ...]:
    """Report one finding for each writer, since each is a victim of its own."""
    assert operation.writes is not None
    foreign = operation.writes.foreign_to(operation.run.epoch, *operation.inherited)
    found: list[Finding] = []
    for victim in sorted({writer for _, writer in foreign}):
        over = _over(operation, history, victim)
        found.append(
            report(
                LEAKED_WRITE,
                operation,
                history,
                variant=operation.cause.value.replace("_", "-"),
                certainty=Certainty.CERTAIN if over else Certainty.POSSIBLE,
                victim=victim,
                keys=tuple(key for key, writer in foreign if writer == victim),
                missing=() if over else (f"the end of epoch {victim}",),
            )
        )
    return tuple(found)


def _over(operation: Commit, history: History, writer: int) -> bool:
    """Say whether `writer` cannot be the one who ought to commit here.

    A newer epoch than the committer's never is: nobody commits ahead of himself.
    """
    if writer > operation.run.epoch:
        return True
    if operation.owner is not None and writer < operation.owner.epoch:
        return True
    return history.release_before(operation, writer) is not None
