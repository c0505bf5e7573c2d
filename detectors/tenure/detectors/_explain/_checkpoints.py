"""Sentences about checkpoints."""

from tenure.detectors._explain._words import Explicable, at, joined, keys_of, owned
from tenure.instrumentation.operations import CheckpointRestore, CheckpointSave


def torn_checkpoint(finding: Explicable) -> tuple[str, str]:
    """Explain a checkpoint whose parts come from more than one epoch."""
    operation = finding.evidence[0]
    assert isinstance(operation, CheckpointSave | CheckpointRestore)
    assert operation.parts is not None
    epochs = sorted({epoch for _, epoch in operation.parts})
    taken = joined(f"{_parts(operation, epoch)} in epoch {epoch}" for epoch in epochs)
    did = "saved" if finding.variant == "saved" else "restored"
    return (
        f"parts had been taken, {taken}",
        f"epoch {finding.culprit_epoch} {did} them as one checkpoint, "
        f"{operation.checkpoint}, {at(operation)}",
    )


def _parts(operation: CheckpointSave | CheckpointRestore, epoch: int) -> str:
    assert operation.parts is not None
    return joined(f"`{part}`" for part, taken in operation.parts if taken == epoch)


def lost_snapshot(finding: Explicable) -> tuple[str, str]:
    """Explain a snapshot that a checkpoint ought to have."""
    operation = finding.evidence[0]
    if isinstance(operation, CheckpointSave):
        return (
            f"epoch {finding.culprit_epoch} had taken the snapshot {keys_of(finding)} "
            f"for checkpoint {operation.checkpoint}",
            f"the checkpoint was saved without it {at(operation)}",
        )
    return (
        f"{owned(finding)}, and epoch {finding.victim_epoch} had staged the snapshot "
        f"{keys_of(finding)} for its checkpoint",
        f"epoch {finding.culprit_epoch} discarded it {at(operation)}",
    )


def fork(finding: Explicable) -> tuple[str, str]:
    """Explain a checkpoint that a run saved after it had lost the instance."""
    operation = finding.evidence[0]
    assert isinstance(operation, CheckpointSave)
    saved = f"epoch {finding.culprit_epoch} saved checkpoint {operation.checkpoint}"
    after = f" after {operation.parent}" if operation.parent else ""
    if finding.variant == "stale-save":
        return owned(finding), f"{saved}{after} {at(operation)}"
    other = finding.evidence[1]
    assert isinstance(other, CheckpointSave)
    return (
        f"epoch {finding.victim_epoch} owned the instance, and saved checkpoint "
        f"{other.checkpoint}{after}",
        f"{saved}{after} as well {at(operation)}",
    )
