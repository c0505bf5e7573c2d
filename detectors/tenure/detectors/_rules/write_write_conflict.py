"""Two executors that stage one key in one superstep.

They run side by side, so that which write is left is the scheduler's choice. A declared
reducer that both stage through joins the writes instead.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._conflicts import completed
from tenure.detectors._rules._report import report
from tenure.detectors._steps import Conflicts
from tenure.detectors.anomalies import WRITE_WRITE_CONFLICT
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Commit, Execute


def write_write_conflict(
    operation: Commit | Execute, history: History
) -> tuple[Finding, ...]:
    """Judge a superstep by the keys that its executors staged."""
    done = completed(operation, history, _written)
    if done is None:
        return ()
    commit, found = done
    involved = {one.executor: one for both in found.written.values() for one in both}
    return (
        report(
            WRITE_WRITE_CONFLICT,
            commit,
            history,
            variant="committed",
            keys=tuple(found.written),
            witnesses=tuple(involved.values()),
        ),
    )


def _written(found: Conflicts) -> bool:
    return bool(found.written)
