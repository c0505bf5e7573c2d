"""A message that nobody had received when its run completed.

Judged at the release of a completed run: one that failed, was cancelled or abandoned
leaves messages behind for a reason. It is certain only if everything that the process
told from the message to the release has arrived; of messages that may have been
received after all, one finding speaks for all.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import MESSAGE_LOSS, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import WRITE_CAP, Outcome, Release


def message_loss(operation: Release, history: History) -> tuple[Finding, ...]:
    """Judge a release by the messages that still wait."""
    if history.messages is None or operation.outcome is not Outcome.COMPLETED:
        return ()
    waiting = history.messages.waiting(operation.run)
    if not waiting:
        return ()
    first = min(waiting, key=lambda send: send.seq or 0)
    missing = history.missing_between(first, operation)
    return (
        report(
            MESSAGE_LOSS,
            operation,
            history,
            variant="undelivered",
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            witnesses=waiting[:WRITE_CAP],
            missing=missing,
        ),
    )
