"""Sentences about messages and whatever else travels."""

from tenure.detectors._explain._words import Explicable, at, joined
from tenure.instrumentation.operations import ForeignDelivery, Receive, Send


def foreign_delivery(finding: Explicable) -> tuple[str, str]:
    """Explain something that reached another epoch than its own."""
    operation = finding.evidence[0]
    assert isinstance(operation, ForeignDelivery)
    kind = operation.kind.value.replace("_", "-")
    which = f" {operation.message}" if operation.message else ""
    to = f" to executor {operation.executor}" if operation.executor else ""
    return (
        f"the {kind}{which} came from epoch {operation.origin}",
        f"it was delivered{to} in epoch {finding.culprit_epoch} {at(operation)}",
    )


def message_loss(finding: Explicable) -> tuple[str, str]:
    """Explain messages that nobody got."""
    sent = joined(
        f"message {one.message}{_to(one.target)} {at(one)}"
        for one in finding.evidence
        if isinstance(one, Send)
    )
    return (
        f"epoch {finding.culprit_epoch} sent {sent}",
        f"nobody had received it when the run completed {at(finding.evidence[0])}",
    )


def message_duplication(finding: Explicable) -> tuple[str, str]:
    """Explain a message that was received twice."""
    second, first = finding.evidence[0], finding.evidence[1]
    assert isinstance(first, Receive)
    assert isinstance(second, Receive)
    return (
        f"message {first.message} was received{_by(first)} {at(first)}",
        f"it was received{_by(second)} again {at(second)}",
    )


def _to(target: str | None) -> str:
    return f" to executor {target}" if target else ""


def _by(receive: Receive) -> str:
    return f" by executor {receive.executor}" if receive.executor else ""
