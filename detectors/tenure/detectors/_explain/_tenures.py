"""Sentences about who owned when, and how an end came about."""

from tenure.detectors._explain._words import Explicable, at, run_named
from tenure.instrumentation.operations import Claim, Discard


def overlapping_owners(finding: Explicable) -> tuple[str, str]:
    """Explain a claim while the previous owner was still one."""
    claim = finding.evidence[0]
    return (
        f"epoch {finding.victim_epoch} had claimed the instance, and neither released "
        "it nor been superseded by policy",
        f"epoch {finding.culprit_epoch} claimed it {at(claim)}",
    )


def epoch_reuse(finding: Explicable) -> tuple[str, str]:
    """Explain an epoch that is not greater than all before it."""
    second, first = finding.evidence[0], finding.evidence[1]
    assert isinstance(second, Claim)
    return (
        f"{run_named(first.run.run_id)} had claimed epoch {first.run.epoch} "
        f"{at(first)}",
        f"{run_named(second.run.run_id)} claimed epoch {second.run.epoch} "
        f"{at(second)}, which is not greater",
    )


def never_released(finding: Explicable) -> tuple[str, str]:
    """Explain a run that owns its instance and is silent."""
    claim = finding.evidence[0]
    return (
        f"epoch {finding.culprit_epoch} claimed the instance {at(claim)}",
        "neither its release nor anything else has arrived for as long as was allowed",
    )


def finalizer_by_gc(finding: Explicable) -> tuple[str, str]:
    """Explain an end that the garbage collector brought about."""
    return _ended(finding), "it was the garbage collector that ended it"


def finalizer_at_shutdown(finding: Explicable) -> tuple[str, str]:
    """Explain an end that the end of the process brought about."""
    return _ended(finding), "it was the end of its loop or process that ended it"


def _ended(finding: Explicable) -> str:
    operation = finding.evidence[0]
    epoch = finding.culprit_epoch
    if isinstance(operation, Discard):
        return f"epoch {epoch} discarded what it had staged {at(operation)}"
    return f"epoch {epoch} released the instance {at(operation)}"
