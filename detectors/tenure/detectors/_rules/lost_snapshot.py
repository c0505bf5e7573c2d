"""An executor's snapshot that a checkpoint ought to have and does not get.

Either a discard throws a newer epoch's snapshot away, which the write set proves, or
the saved checkpoint lacks one that was taken for it, which its own lists prove.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import LOST_SNAPSHOT
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import CheckpointSave, Discard


def lost_snapshot(
    operation: Discard | CheckpointSave, history: History
) -> tuple[Finding, ...]:
    """Judge a discard by its victims, a checkpoint by what was taken for it."""
    if isinstance(operation, Discard):
        if operation.fenced or not operation.snapshots:
            return ()
        return _discarded(operation, history)
    if operation.taken is None or operation.parts is None:
        return ()
    there = {part for part, _ in operation.parts}
    left_out = tuple(part for part in operation.taken if part not in there)
    if not left_out:
        return ()
    return (
        report(
            LOST_SNAPSHOT,
            operation,
            history,
            variant="left-out",
            keys=left_out,
        ),
    )


def _discarded(operation: Discard, history: History) -> tuple[Finding, ...]:
    if operation.writes is None:
        return ()
    hit = [
        (key, writer)
        for key, writer in operation.writes.pairs
        if writer > operation.run.epoch and key in operation.snapshots
    ]
    if not hit:
        return ()
    return (
        report(
            LOST_SNAPSHOT,
            operation,
            history,
            variant="discarded",
            victim=max(writer for _, writer in hit),
            keys=tuple(key for key, _ in hit),
        ),
    )
