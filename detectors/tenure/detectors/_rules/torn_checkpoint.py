"""A checkpoint whose parts were not all taken in one epoch.

Parts are the executors' own snapshots and the edge buffers. Committed state that older
runs left is no part, so that more than one epoch among the parts is the whole proof.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import TORN_CHECKPOINT
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import CheckpointRestore, CheckpointSave


def torn_checkpoint(
    operation: CheckpointSave | CheckpointRestore, history: History
) -> tuple[Finding, ...]:
    """Judge a checkpoint by the epochs of its parts."""
    parts = operation.parts
    if not parts:
        return ()
    first = parts[0][1]
    for _, epoch in parts:
        if epoch != first:
            return (_torn(operation, history),)
    return ()


def _torn(operation: CheckpointSave | CheckpointRestore, history: History) -> Finding:
    assert operation.parts is not None
    epochs = {epoch for _, epoch in operation.parts}
    others = epochs - {operation.run.epoch}
    saved = isinstance(operation, CheckpointSave)
    return report(
        TORN_CHECKPOINT,
        operation,
        history,
        variant="saved" if saved else "restored",
        victim=max(others),
        keys=tuple(part for part, _ in operation.parts),
    )
