"""A run that the garbage collector ended, and not its owner."""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import FINALIZER_BY_GC
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Discard, Release, Trigger


def finalizer_by_gc(
    operation: Discard | Release, history: History
) -> tuple[Finding, ...]:
    """Judge a discard or a release by what brought it about."""
    if operation.trigger is not Trigger.GC:
        return ()
    return (report(FINALIZER_BY_GC, operation, history, variant=operation.name),)
