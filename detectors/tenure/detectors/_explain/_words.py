"""The words that all sentences are made of."""

from collections.abc import Iterable
from typing import Protocol

from tenure.instrumentation.operations import Operation


class Explicable(Protocol):
    """What a sentence is made of: the facts of a finding."""

    @property
    def anomaly(self) -> str:
        """Slug of the anomaly."""
        ...

    @property
    def variant(self) -> str:
        """Which form of the anomaly it is."""
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


def run_named(run_id: str | None) -> str:
    """Name a run, as far as it is known."""
    return f"run {run_id}" if run_id else "a run that is not named"


def joined(parts: Iterable[str]) -> str:
    """Write `parts` as a list of words."""
    listed = list(parts)
    if len(listed) < 2:
        return "".join(listed)
    return f"{', '.join(listed[:-1])} and {listed[-1]}"


def keys_of(finding: Explicable) -> str:
    """Name the keys that a finding is about."""
    return joined(f"`{key}`" for key in finding.keys)


def at(operation: Operation) -> str:
    """Say when `operation` happened, in the only order that counts."""
    if operation.seq is None:
        return "when it happened"
    return f"at seq {operation.seq} of {operation.run.process}"


def owned(finding: Explicable) -> str:
    """Say who owned the instance when the culprit acted."""
    if finding.owner_epoch is None:
        return f"who owned the instance {at(finding.evidence[0])} is not known"
    return f"epoch {finding.owner_epoch} owned the instance {at(finding.evidence[0])}"
