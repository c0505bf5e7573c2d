"""Let, then, however: the sentence that makes a finding a proof.

Pure text over the facts of a finding; it decides nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final, Protocol

from tenure.detectors import anomalies
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    CommitCause,
    Discard,
    ForeignDelivery,
    Late,
    LateKind,
    Operation,
    Release,
)


class Explicable(Protocol):
    """What a sentence is made of: the facts of a finding."""

    @property
    def anomaly(self) -> str:
        """Slug of the anomaly."""
        ...

    @property
    def severity(self) -> anomalies.Severity:
        """How bad it is."""
        ...

    @property
    def culprit_epoch(self) -> int:
        """Epoch that broke the rule."""
        ...

    @property
    def owner_epoch(self) -> int | None:
        """Epoch of the owner at that moment."""
        ...

    @property
    def victim_epoch(self) -> int | None:
        """Epoch that lost something."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """State keys that it is about."""
        ...

    @property
    def evidence(self) -> tuple[Operation, ...]:
        """The operations that prove it, the culprit's first."""
        ...


def sentence(finding: Explicable) -> str:
    """Return the proof of `finding` as `let …; then …; however, …`."""
    then, however = _CLAUSES[finding.anomaly](finding)
    return f"let {_let(finding)}; then {then}; however, {however}"


def _let(finding: Explicable) -> str:
    """Introduce every epoch that the other two clauses speak of."""
    if finding.anomaly == anomalies.EPOCH_REUSE.slug:
        second, first = finding.evidence[0].run, finding.evidence[1].run
        return f"{_run(first.run_id)} and {_run(second.run_id)} drive one instance"
    runs: dict[int, str] = {}
    for operation in finding.evidence:
        runs.setdefault(operation.run.epoch, operation.run.run_id)
        owner = operation.owner
        if owner is not None and owner.run_id:
            runs.setdefault(owner.epoch, owner.run_id)
    spoken = {finding.culprit_epoch, finding.owner_epoch, finding.victim_epoch}
    named = [
        f"epoch {epoch} be {_run(runs.get(epoch))}"
        for epoch in sorted(epoch for epoch in spoken if epoch is not None)
    ]
    return _join(named)


def _run(run_id: str | None) -> str:
    return f"run {run_id}" if run_id else "a run that is not named"


def _join(parts: Iterable[str]) -> str:
    listed = list(parts)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def _keys(finding: Explicable) -> str:
    return _join(f"`{key}`" for key in finding.keys)


def _at(operation: Operation) -> str:
    """Say when `operation` happened, in the only order that counts."""
    if operation.seq is None:
        return "when it happened"
    return f"at seq {operation.seq} of {operation.run.process}"


def _owned(finding: Explicable) -> str:
    if finding.owner_epoch is None:
        return f"who owned the instance {_at(finding.evidence[0])} is not known"
    return f"epoch {finding.owner_epoch} owned the instance {_at(finding.evidence[0])}"


def _stale_discard(finding: Explicable) -> tuple[str, str]:
    culprit = finding.culprit_epoch
    operation = finding.evidence[0]
    assert isinstance(operation, Discard)
    cause = f"(cause: {operation.cause.value})"
    if finding.severity is anomalies.Severity.VIOLATION:
        owner_lost = finding.victim_epoch == finding.owner_epoch
        who = "" if owner_lost else f"epoch {finding.victim_epoch} "
        return (
            f"{_owned(finding)}, and {who}had staged {_keys(finding)}",
            f"epoch {culprit} discarded {_keys(finding)} {cause}",
        )
    if operation.fenced:
        return _owned(finding), (
            f"epoch {culprit} asked for a discard {cause}, which the engine refused"
        )
    if finding.severity is anomalies.Severity.AVERTED:
        return _owned(finding), (
            f"epoch {culprit} discarded {cause}, yet only its own ledger"
        )
    if operation.writes is None or operation.writes.omitted:
        harm = "and whether it hit another epoch's writes cannot be told"
    else:
        harm = "and hit no newer epoch's writes"
    return _owned(finding), f"epoch {culprit} discarded all the same {cause}, {harm}"


def _leaked_write(finding: Explicable) -> tuple[str, str]:
    operation = finding.evidence[0]
    assert isinstance(operation, Commit)
    entry = operation.cause is CommitCause.RUN_ENTRY
    where = "in the engine's own commit at run entry " if entry else ""
    after = ", so that every later run starts on it" if entry else ""
    return (
        f"epoch {finding.victim_epoch} had staged {_keys(finding)} and had not "
        f"committed, and epoch {finding.culprit_epoch} had not inherited it",
        f"epoch {finding.culprit_epoch} committed {_keys(finding)} {where}"
        f"{_at(operation)}{after}",
    )


def _stale_commit(finding: Explicable) -> tuple[str, str]:
    what = _keys(finding) or "a write set that is empty or not known"
    return _owned(finding), f"epoch {finding.culprit_epoch} committed {what}"


_DID: Final[Mapping[LateKind, str]] = MappingProxyType({
    LateKind.STAGE: "staged",
    LateKind.SEND: "sent a message",
    LateKind.OUTPUT: "gave an output",
})


def _late_write(finding: Explicable) -> tuple[str, str]:
    operation = finding.evidence[0]
    assert isinstance(operation, Late)
    did = _DID[operation.kind]
    if operation.kind is LateKind.STAGE and finding.keys:
        did = f"{did} {_keys(finding)}"
    released = any(isinstance(seen, Release) for seen in finding.evidence)
    then = (
        f"epoch {finding.culprit_epoch} had released the instance" if released else ""
    ) or _owned(finding)
    if operation.ledger is None:
        into = "into a ledger that is not known"
    elif operation.ledger == finding.culprit_epoch:
        into = "into its own ledger, which reaches nobody else"
    else:
        into = f"into the ledger of epoch {operation.ledger}"
    return then, f"epoch {finding.culprit_epoch} {did} {_at(operation)}, {into}"


def _overlapping_owners(finding: Explicable) -> tuple[str, str]:
    claim = finding.evidence[0]
    return (
        f"epoch {finding.victim_epoch} had claimed the instance, and neither released "
        "it nor been superseded by policy",
        f"epoch {finding.culprit_epoch} claimed it {_at(claim)}",
    )


def _foreign_delivery(finding: Explicable) -> tuple[str, str]:
    operation = finding.evidence[0]
    assert isinstance(operation, ForeignDelivery)
    kind = operation.kind.value.replace("_", "-")
    which = f" {operation.message}" if operation.message else ""
    to = f" to executor {operation.executor}" if operation.executor else ""
    return (
        f"the {kind}{which} came from epoch {operation.origin}",
        f"it was delivered{to} in epoch {finding.culprit_epoch} {_at(operation)}",
    )


def _epoch_reuse(finding: Explicable) -> tuple[str, str]:
    second, first = finding.evidence[0], finding.evidence[1]
    assert isinstance(second, Claim)
    return (
        f"{_run(first.run.run_id)} had claimed epoch {first.run.epoch} {_at(first)}",
        f"{_run(second.run.run_id)} claimed epoch {second.run.epoch} {_at(second)}, "
        "which is not greater",
    )


_CLAUSES: Final[Mapping[str, Callable[[Explicable], tuple[str, str]]]] = (
    MappingProxyType({
        anomalies.STALE_DISCARD.slug: _stale_discard,
        anomalies.LEAKED_WRITE.slug: _leaked_write,
        anomalies.STALE_COMMIT.slug: _stale_commit,
        anomalies.LATE_WRITE.slug: _late_write,
        anomalies.OVERLAPPING_OWNERS.slug: _overlapping_owners,
        anomalies.FOREIGN_DELIVERY.slug: _foreign_delivery,
        anomalies.EPOCH_REUSE.slug: _epoch_reuse,
    })
)
