"""A claim while the previous owner was neither released nor superseded by policy.

Needs history: it is certain only if one process counted both claims and every operation
between them has arrived, for then the release is known never to have been there. Nor
may an epoch lie between the two: another process may have superseded the owner with it.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors._tenure import Tenure, precedes
from tenure.detectors.anomalies import OVERLAPPING_OWNERS, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Claim


def overlapping_owners(operation: Claim, history: History) -> tuple[Finding, ...]:
    """Judge a claim against the epochs next to it.

    The one above matters only where a claim arrives late.
    """
    epoch, tenures = operation.run.epoch, history.tenures
    if history.has_forgotten(epoch):
        # Of the next epoch nothing is known any more, and only its claim could accuse.
        return ()
    lower = max((known for known in tenures if known < epoch), default=None)
    upper = min((known for known in tenures if known > epoch), default=None)
    found: tuple[Finding, ...] = ()
    if lower is not None:
        found += _judge(tenures[lower], operation, history)
    own = tenures.get(epoch, Tenure())
    above = None if upper is None else tenures[upper].claim
    if above is not None and own.claim is None:
        found += _judge(_arrived(operation, own), above, history)
    return found


def _arrived(claim: Claim, own: Tenure) -> Tenure:
    """What will be known of the claim's epoch once the claim is remembered."""
    other = own.release is not None and own.release.run.run_id != claim.run.run_id
    return Tenure(claim, own.release, own.superseded, own.ambiguous or other)


def _judge(before: Tenure, claim: Claim, history: History) -> tuple[Finding, ...]:
    earlier = before.claim
    if earlier is None or _over(before, claim) or precedes(claim, earlier):
        return ()
    missing = history.missing_between(earlier, claim)
    if before.ambiguous:
        missing = (*missing, f"which run had epoch {earlier.run.epoch}")
    if claim.run.epoch > earlier.run.epoch + 1:
        missing = (*missing, f"whether a run followed epoch {earlier.run.epoch}")
    return (
        report(
            OVERLAPPING_OWNERS,
            claim,
            history,
            variant="claimed",
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            victim=earlier.run.epoch,
            witnesses=(earlier,),
            missing=missing,
        ),
    )


def _over(before: Tenure, claim: Claim) -> bool:
    """Say whether `before` was over at `claim`, or may have been for all one knows."""
    assert before.claim is not None
    if before.superseded:
        return True
    # A claim that replaced a newer epoch says that `before` was not the owner any more.
    if claim.superseded is not None and claim.superseded >= before.claim.run.epoch:
        return True
    return before.release is not None and not precedes(claim, before.release)
