"""A message, output, event or fan-in part that reached another epoch than its own."""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import FOREIGN_DELIVERY
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import ForeignDelivery


def foreign_delivery(
    operation: ForeignDelivery, history: History
) -> tuple[Finding, ...]:
    """Judge a delivery by its epoch of origin."""
    if operation.origin == operation.run.epoch:
        return ()
    return (
        report(
            FOREIGN_DELIVERY,
            operation,
            history,
            variant=operation.kind.value.replace("_", "-"),
            victim=operation.origin,
        ),
    )
