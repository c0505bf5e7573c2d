"""Findings: one anomaly that happened, with its proof.

A finding is immutable, pickles, and prints as its proof.
"""

from dataclasses import dataclass
from typing import Any

from tenure.detectors._explain import sentence
from tenure.detectors.anomalies import CATALOGUE, Certainty, Severity
from tenure.instrumentation.operations import Operation, Owner, SpanRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One anomaly in one instance, and the operations that prove it.

    Attributes:
        anomaly: Slug of the anomaly; the catalogue has the rest.
        variant: Which form of it.
        severity: How bad it is.
        certainty: How sure it is.
        culprit_epoch: Epoch that broke the rule.
        owner_epoch: Epoch that owned the instance then; `None` where that is unknown.
        victim_epoch: Epoch that lost or leaked something, where one did.
        keys: State keys that it is about.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        engine: Engine and version.
        evidence: The operations that prove it, the culprit's first.
        missing: What telemetry is missing, such as `seq 41-43 of process p`.
    """

    anomaly: str
    variant: str
    severity: Severity
    certainty: Certainty
    culprit_epoch: int
    owner_epoch: int | None
    victim_epoch: int | None
    keys: tuple[str, ...]
    workflow: str
    instance: str
    engine: str
    evidence: tuple[Operation, ...]
    missing: tuple[str, ...] = ()

    @property
    def culprit(self) -> Operation:
        """The operation that broke the rule."""
        return self.evidence[0]

    @property
    def proof(self) -> str:
        """The sentence `let …; then …; however, …`."""
        return sentence(self)

    def __str__(self) -> str:
        title = CATALOGUE[self.anomaly].title
        where = f"{self.workflow}/{self.instance} ({self.engine})"
        lacking = f" [missing: {'; '.join(self.missing)}]" if self.missing else ""
        return (
            f"{title} ({self.severity}, {self.certainty}) in {where}: "
            f"{self.proof}{lacking}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain data that JSON can hold."""
        return {
            "anomaly": self.anomaly,
            "variant": self.variant,
            "severity": self.severity.value,
            "certainty": self.certainty.value,
            "culprit_epoch": self.culprit_epoch,
            "owner_epoch": self.owner_epoch,
            "victim_epoch": self.victim_epoch,
            "keys": list(self.keys),
            "workflow": self.workflow,
            "instance": self.instance,
            "engine": self.engine,
            "proof": self.proof,
            "missing": list(self.missing),
            "evidence": [_operation(operation) for operation in self.evidence],
        }


def _operation(operation: Operation) -> dict[str, Any]:
    return {
        "operation": operation.name,
        "run_id": operation.run.run_id,
        "epoch": operation.run.epoch,
        "process": operation.run.process,
        "seq": operation.seq,
        "owner": _owner(operation.owner),
        "span": _span(operation.span),
    }


def _owner(owner: Owner | None) -> dict[str, Any] | None:
    return None if owner is None else {"epoch": owner.epoch, "run_id": owner.run_id}


def _span(span: SpanRef | None) -> dict[str, str] | None:
    if span is None:
        return None
    return {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"}
