"""Where the conflicts of a superstep are looked up, for both kinds of them.

They count once the superstep has been committed: one that an engine refuses, or that
fails for another reason, leaves nothing. Operations may arrive in any order, so that
either the commit or an executor's invocation completes the proof.
"""

from collections.abc import Callable

from tenure.detectors._history import History
from tenure.detectors._steps import Conflicts
from tenure.instrumentation.operations import Commit, CommitCause, Execute


def completed(
    operation: Commit | Execute,
    history: History,
    kind: Callable[[Conflicts], bool],
) -> tuple[Commit, Conflicts] | None:
    """Return the conflicts that `operation` completes the proof of.

    Args:
        operation: A commit, or an executor's invocation that arrives after it.
        history: The history before it.
        kind: Says whether there are any of one kind.

    Returns:
        The commit and the conflicts, unless there are none of the kind or their proof
        was complete before.
    """
    steps = history.steps
    if isinstance(operation, Commit):
        if not steps.contended or operation.cause is not CommitCause.SUPERSTEP:
            return None
        step = steps.of(operation)
        if step is None or step.commit is not None:
            return None
        found = step.conflicts()
        return (operation, found) if kind(found) else None
    step = steps.of(operation) if steps.late else None
    if step is None:
        return None
    if step.commit is None or operation.error is not None or kind(step.conflicts()):
        return None
    found = step.conflicts_with(operation)
    return (step.commit, found) if kind(found) else None
