"""A claim while the previous owner was neither released nor superseded by policy.

Needs history: it is certain only if one process counted both claims and every operation
between them has arrived, for then the release is known never to have been there. Nor
may an epoch lie between the two: another process may have superseded the owner with it.
"""

from tenure.detectors._history import History, Tenure, precedes
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import OVERLAPPING_OWNERS, Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Claim


def overlapping_owners(operation: Claim, history: History) -> tuple[Finding, ...]:
    """Judge a claim against the epochs next to it.

    The one above matters only where a claim arrives late.
    """
    epoch = operation.run.epoch
    lower = max((known for known in history.tenures if known < epoch), default=None)
    upper = min((known for known in history.tenures if known > epoch), default=None)
    found: list[Finding] = []
    if lower is not None:
        before = history.tenures[lower]
        reused = history.tenures.get(epoch)
        found.extend(_judge(before, operation, history, reused))
    if upper is not None:
        above = history.tenures[upper]
        own = history.tenures.get(epoch, Tenure())
        if above.claim is not None and own.claim is None:
            arrived = _arrived(operation, own)
            found.extend(_judge(arrived, above.claim, history, above))
    return tuple(found)


def _arrived(claim: Claim, own: Tenure) -> Tenure:
    """What will be known of the claim's epoch once the claim is remembered."""
    other = own.release is not None and own.release.run.run_id != claim.run.run_id
    return Tenure(claim, own.release, own.superseded, own.ambiguous or other)


def _judge(
    before: Tenure, claim: Claim, history: History, own: Tenure | None
) -> tuple[Finding, ...]:
    earlier = before.claim
    if earlier is None or _over(before, claim) or precedes(claim, earlier):
        return ()
    ambiguous = before.ambiguous or (own is not None and own.ambiguous)
    missing = history.missing_between(earlier, claim)
    if ambiguous:
        missing = (*missing, f"which run had epoch {earlier.run.epoch}")
    if claim.run.epoch > earlier.run.epoch + 1:
        missing = (*missing, f"whether a run followed epoch {earlier.run.epoch}")
    return (
        report(
            OVERLAPPING_OWNERS,
            claim,
            history,
            severity=Severity.WARNING,
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
