"""An executor that reads a key while another one stages it in the same superstep.

Whether it got the old value or the new one is the scheduler's choice. An executor whose
reads are isolated gets the state as of the superstep's start, whatever siblings stage.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._conflicts import completed
from tenure.detectors._rules._report import report
from tenure.detectors._steps import Conflicts
from tenure.detectors.anomalies import READ_WRITE_CONFLICT
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Commit, Execute


def read_write_conflict(
    operation: Commit | Execute, history: History
) -> tuple[Finding, ...]:
    """Judge a superstep by the keys that its executors read and staged."""
    done = completed(operation, history, _read)
    if done is None:
        return ()
    commit, found = done
    involved = {one.executor: one for both in found.read.values() for one in both}
    return (
        report(
            READ_WRITE_CONFLICT,
            commit,
            history,
            variant="committed",
            keys=tuple(found.read),
            witnesses=tuple(involved.values()),
        ),
    )


def _read(found: Conflicts) -> bool:
    return bool(found.read)
