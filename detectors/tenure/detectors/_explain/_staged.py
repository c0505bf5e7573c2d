"""Sentences about what became of staged writes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.detectors._explain._words import Explicable, at, keys_of, owned
from tenure.instrumentation.operations import (
    Commit,
    CommitCause,
    Discard,
    ForeignRead,
    Late,
    LateKind,
    Release,
)


def stale_discard(finding: Explicable) -> tuple[str, str]:
    """Explain a discard by another epoch than the owner's."""
    culprit = finding.culprit_epoch
    operation = finding.evidence[0]
    assert isinstance(operation, Discard)
    cause = f"(cause: {operation.cause.value})"
    if finding.variant == "victim":
        owner_lost = finding.victim_epoch == finding.owner_epoch
        who = "" if owner_lost else f"epoch {finding.victim_epoch} "
        return (
            f"{owned(finding)}, and {who}had staged {keys_of(finding)}",
            f"epoch {culprit} discarded {keys_of(finding)} {cause}",
        )
    if finding.variant == "fenced":
        return owned(finding), (
            f"epoch {culprit} asked for a discard {cause}, which the engine refused"
        )
    if finding.variant == "own-ledger":
        return owned(finding), (
            f"epoch {culprit} discarded {cause}, yet only its own ledger"
        )
    writes = operation.writes
    if writes is None or not writes.lists_all_foreign_to(culprit):
        harm = "and whether it hit another epoch's writes cannot be told"
    else:
        harm = "and hit no newer epoch's writes"
    return owned(finding), f"epoch {culprit} discarded all the same {cause}, {harm}"


_WHERE: Final[Mapping[CommitCause, tuple[str, str]]] = MappingProxyType({
    CommitCause.SUPERSTEP: ("", ""),
    CommitCause.RUN_ENTRY: (
        "in the engine's own commit at run entry ",
        ", so that every later run starts on it",
    ),
    CommitCause.CHECKPOINT: ("in the engine's own commit for a checkpoint ", ""),
})


def leaked_write(finding: Explicable) -> tuple[str, str]:
    """Explain a commit of another epoch's writes."""
    operation = finding.evidence[0]
    assert isinstance(operation, Commit)
    where, after = _WHERE[operation.cause]
    return (
        f"epoch {finding.victim_epoch} had staged {keys_of(finding)} and had not "
        f"committed, and epoch {finding.culprit_epoch} had not inherited it",
        f"epoch {finding.culprit_epoch} committed {keys_of(finding)} {where}"
        f"{at(operation)}{after}",
    )


def dirty_read(finding: Explicable) -> tuple[str, str]:
    """Explain a read of another epoch's staged writes."""
    operation = finding.evidence[0]
    assert isinstance(operation, ForeignRead)
    writer = finding.victim_epoch
    who = f" in executor {operation.executor}" if operation.executor else ""
    however = f"epoch {finding.culprit_epoch} read {keys_of(finding)}{who}"
    staged = f"epoch {writer} had staged {keys_of(finding)}"
    if finding.variant == "aborted":
        return f"{staged} and was over without committing", f"{however} {at(operation)}"
    if finding.variant == "circular":
        return (
            f"{staged} and not committed, and had itself read what epoch "
            f"{finding.culprit_epoch} had staged",
            f"{however} {at(operation)}",
        )
    return f"{staged} and not committed", f"{however} {at(operation)}"


def stale_commit(finding: Explicable) -> tuple[str, str]:
    """Explain a commit by an epoch that is not the owner's."""
    what = keys_of(finding) or "a write set that is empty or not known"
    return owned(finding), f"epoch {finding.culprit_epoch} committed {what}"


_DID: Final[Mapping[LateKind, str]] = MappingProxyType({
    LateKind.STAGE: "staged",
    LateKind.SEND: "sent a message",
    LateKind.OUTPUT: "gave an output",
})


def late_write(finding: Explicable) -> tuple[str, str]:
    """Explain a write by a run that no longer owns the instance."""
    operation = finding.evidence[0]
    assert isinstance(operation, Late)
    did = _DID[operation.kind]
    if operation.kind is LateKind.STAGE and finding.keys:
        did = f"{did} {keys_of(finding)}"
    released = any(isinstance(seen, Release) for seen in finding.evidence)
    then = (
        f"epoch {finding.culprit_epoch} had released the instance" if released else ""
    ) or owned(finding)
    return (
        then,
        f"epoch {finding.culprit_epoch} {did} {at(operation)}, {_into(operation)}",
    )


def _into(operation: Late) -> str:
    if operation.shared:
        return "into the map that all runs share"
    if operation.ledger is None:
        return "into a ledger that is not known"
    if operation.ledger == operation.run.epoch:
        return "into its own ledger, which reaches nobody else"
    return f"into the ledger of epoch {operation.ledger}"
