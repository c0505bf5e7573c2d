"""A read of what another epoch had staged and not committed.

The operation itself says whose value was read, so that the read is certain in any
order. Which class it is depends on the writer: one that is over can never commit the
value, and one that has read in turn what this reader staged closes a circle, whoever
was first.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import DIRTY_READ
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import ForeignRead, Operation


def dirty_read(operation: ForeignRead, history: History) -> tuple[Finding, ...]:
    """Judge a read by the epoch of its writer."""
    if operation.writer == operation.run.epoch:
        return ()
    variant, witnesses = _class(operation, history)
    return (
        report(
            DIRTY_READ,
            operation,
            history,
            variant=variant,
            victim=operation.writer,
            keys=(operation.key,),
            witnesses=witnesses,
        ),
    )


def _class(
    operation: ForeignRead, history: History
) -> tuple[str, tuple[Operation, ...]]:
    reader, writer = operation.run.epoch, operation.writer
    if history.dirty_reads is not None:
        back = history.dirty_reads.get((writer, reader))
        if back is not None:
            return "circular", (back,)
    if operation.owner is not None and writer < operation.owner.epoch:
        return "aborted", ()
    release = history.release_before(operation, writer)
    return ("unfinished", ()) if release is None else ("aborted", (release,))
