"""How a rule writes down what it found."""

from tenure.detectors._history import History
from tenure.detectors.anomalies import Anomaly, Certainty
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import Operation


def report(
    anomaly: Anomaly,
    operation: Operation,
    history: History,
    *,
    variant: str,
    certainty: Certainty = Certainty.CERTAIN,
    owner: int | None = None,
    victim: int | None = None,
    keys: tuple[str, ...] = (),
    witnesses: tuple[Operation, ...] = (),
    missing: tuple[str, ...] = (),
) -> Finding:
    """Return a finding against `operation`.

    Args:
        anomaly: What it is.
        operation: The culprit's operation.
        history: Where the claims of owner and victim are looked up, as witnesses.
        variant: Which form of the anomaly it is; the catalogue has its severity.
        certainty: How sure it is.
        owner: The owner's epoch, where the operation itself does not say.
        victim: Epoch that lost or leaked something.
        keys: State keys that it is about.
        witnesses: Further operations that prove it.
        missing: What telemetry is missing.
    """
    if operation.owner is not None:
        owner = operation.owner.epoch
    evidence = [operation, *witnesses]
    for claim in (history.claim_of(owner), history.claim_of(victim)):
        if claim is not None and all(claim is not seen for seen in evidence):
            evidence.append(claim)
    run = operation.run
    return Finding(
        anomaly=anomaly.slug,
        variant=variant,
        severity=anomaly.variants[variant],
        certainty=certainty,
        culprit_epoch=run.epoch,
        owner_epoch=owner,
        victim_epoch=victim,
        keys=keys,
        workflow=run.workflow,
        instance=run.instance,
        engine=run.engine,
        evidence=tuple(evidence),
        missing=missing,
    )
