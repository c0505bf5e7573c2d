"""A message that was received twice in one run.

A superstep that was discarded and done again receives its messages again. So it is
certain only if everything that the process told between the two receipts has arrived,
and no discard of the first receipt's superstep was in it.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors._tenure import precedes
from tenure.detectors.anomalies import MESSAGE_DUPLICATION, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Receive


def message_duplication(operation: Receive, history: History) -> tuple[Finding, ...]:
    """Judge a receipt by an earlier one of the same message."""
    if history.messages is None or history.messages.undone(operation):
        return ()
    first, second = history.messages.receipt(operation), operation
    if first is None:
        return ()
    if precedes(second, first):
        first, second = second, first
    missing = history.missing_between(first, second)
    return (
        report(
            MESSAGE_DUPLICATION,
            second,
            history,
            variant="received-twice",
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            witnesses=(first,),
            missing=missing,
        ),
    )
