"""A run that ended because its loop or its process did."""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import FINALIZER_AT_SHUTDOWN
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Discard, Release, Trigger


def finalizer_at_shutdown(
    operation: Discard | Release, history: History
) -> tuple[Finding, ...]:
    """Judge a discard or a release by what brought it about."""
    if operation.trigger is not Trigger.SHUTDOWN:
        return ()
    return (report(FINALIZER_AT_SHUTDOWN, operation, history, variant=operation.name),)
