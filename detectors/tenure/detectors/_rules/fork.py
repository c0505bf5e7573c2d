"""A lineage of checkpoints that branches because a run went on after losing its place.

A run that goes back to an earlier checkpoint on purpose branches too, and is no
anomaly: the branch that it leaves was saved before it claimed. So two children of one
parent are certain only if the older run saved when it had lost the instance already.

That the newer run has restored the parent says nothing: whoever takes over from a
paused owner does so too. What tells the two apart is what its claim had found.
"""

from tenure.detectors._history import History
from tenure.detectors._rules._report import report
from tenure.detectors._tenure import precedes
from tenure.detectors.anomalies import FORK, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import CheckpointSave


def fork(operation: CheckpointSave, history: History) -> tuple[Finding, ...]:
    """Judge a saved checkpoint by its parent's other child, and by the owner."""
    sibling = None
    if operation.parent is not None and history.lineage is not None:
        sibling = history.lineage.child_of(operation.parent)
    found: tuple[Finding, ...] = ()
    if sibling is not None and sibling.run.run_id != operation.run.run_id:
        found = _branched(operation, sibling, history)
    stale = _stale(operation, history)
    if found and stale and found[0].culprit is operation:
        # One save, accused twice: the surer accusation stands.
        sure = found[0].certainty is Certainty.CERTAIN
        return found if sure else stale
    return (*found, *stale)


def _stale(operation: CheckpointSave, history: History) -> tuple[Finding, ...]:
    owner, proven = operation.owner, True
    if owner is not None:
        epoch = owner.epoch
    else:
        newer, proven = history.newer_claim(operation)
        epoch = 0 if newer is None else newer.run.epoch
    if operation.run.epoch >= epoch:
        return ()
    return (
        report(
            FORK,
            operation,
            history,
            variant="stale-save",
            certainty=Certainty.CERTAIN if proven else Certainty.POSSIBLE,
            owner=epoch,
            missing=() if proven else ("the owner's epoch at the save",),
        ),
    )


def _branched(
    operation: CheckpointSave, sibling: CheckpointSave, history: History
) -> tuple[Finding, ...]:
    older, newer = operation, sibling
    if older.run.epoch > newer.run.epoch:
        older, newer = newer, older
    missing = _doubt(older, newer, history)
    if missing is None or (missing and _left_behind(older, newer, history)):
        return ()
    return (
        report(
            FORK,
            older,
            history,
            variant="two-children",
            certainty=Certainty.POSSIBLE if missing else Certainty.CERTAIN,
            victim=newer.run.epoch,
            witnesses=(newer,),
            missing=missing,
        ),
    )


def _doubt(
    older: CheckpointSave, newer: CheckpointSave, history: History
) -> tuple[str, ...] | None:
    """Name what is missing to call it a fork; `None` if a run only went back."""
    after = newer.run.epoch > older.run.epoch
    if older.owner is not None:
        if after and older.owner.epoch >= newer.run.epoch:
            return ()
        if older.run.process == newer.run.process:
            return None
    claim = history.claim_of(newer.run.epoch)
    if claim is not None and claim.run.run_id == newer.run.run_id:
        if after and precedes(claim, older):
            return ()
        if precedes(older, claim):
            return None
    if older.run.process != newer.run.process:
        return (f"the order of processes {older.run.process} and {newer.run.process}",)
    return (f"the claim of epoch {newer.run.epoch}",)


def _left_behind(
    older: CheckpointSave, newer: CheckpointSave, history: History
) -> bool:
    """Say whether the newer run's claim had found what the older one saved."""
    if older.run.epoch >= newer.run.epoch or history.lineage is None:
        return False
    return history.lineage.reaches(older, newer.previous)
