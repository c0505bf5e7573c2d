"""A claim whose epoch is not greater than every epoch claimed before it.

Two runs with one epoch prove it in any order. That the epoch went back is proven only
by positions that one process counted: an old claim that arrives late proves nothing.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors._tenure import precedes
from tenure.detectors.anomalies import EPOCH_REUSE, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Claim


def epoch_reuse(operation: Claim, history: History) -> tuple[Finding, ...]:
    """Judge a claim against the other claims that are remembered."""
    claims = [
        tenure.claim for tenure in history.tenures.values() if tenure.claim is not None
    ]
    for other in claims:
        if other.run.epoch == operation.run.epoch and _two(operation, other):
            later, earlier = _in_order(operation, other)
            return (_reused(later, earlier, history),)
    for other in claims:
        if other.run.epoch > operation.run.epoch and precedes(other, operation):
            return (_reused(operation, other, history),)
        if other.run.epoch < operation.run.epoch and precedes(operation, other):
            return (_reused(other, operation, history),)
    return _unnumbered(operation, claims, history)


def _two(operation: Claim, other: Claim) -> bool:
    """Say whether the two are different claims, not one that has come twice."""
    if operation.run.run_id != other.run.run_id:
        return True
    if operation.run.process != other.run.process:
        return True
    return (
        operation.seq is not None
        and other.seq is not None
        and operation.seq != other.seq
    )


def _in_order(operation: Claim, other: Claim) -> tuple[Claim, Claim]:
    return (other, operation) if precedes(operation, other) else (operation, other)


def _unnumbered(
    operation: Claim, claims: list[Claim], history: History
) -> tuple[Finding, ...]:
    """Judge by arrival, as a possibility, where positions are not counted."""
    for other in claims:
        if other.run.epoch <= operation.run.epoch:
            continue
        if other.run.process != operation.run.process:
            continue
        if operation.seq is None or other.seq is None:
            return (_reused(operation, other, history, proven=False),)
    return ()


def _reused(
    later: Claim, earlier: Claim, history: History, *, proven: bool = True
) -> Finding:
    same = earlier.run.epoch == later.run.epoch
    return report(
        EPOCH_REUSE,
        later,
        history,
        variant="shared" if same else "backward",
        certainty=Certainty.CERTAIN if proven else Certainty.POSSIBLE,
        victim=None if same else earlier.run.epoch,
        witnesses=(earlier,),
        missing=() if proven else history.missing_between(earlier, later),
    )
