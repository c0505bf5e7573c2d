"""A run that still owns its instance after a long silence.

Nothing here reads a clock: the caller hands the time in. It is never more than
possible, because a run may be slow and telemetry late.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors.anomalies import NEVER_RELEASED, Certainty
from tenure.detectors.findings import Finding


def never_released(history: History, silence: float) -> tuple[Finding, ...]:
    """Judge the newest claim of an instance of which nothing has arrived for a while.

    Args:
        history: The instance.
        silence: For how long nothing has arrived, in the caller's unit.
    """
    newest = history.tenures.get(history.newest)
    if newest is None or newest.claim is None or newest.ended:
        return ()
    return (
        report(
            NEVER_RELEASED,
            newest.claim,
            history,
            variant="silent",
            certainty=Certainty.POSSIBLE,
            missing=(
                f"the release of epoch {history.newest}",
                f"any operation for {silence:g} units of time",
            ),
        ),
    )
