"""Whether what a detector says is what a model knows."""

from collections.abc import Iterable

from tenure.detectors import Certainty, Detector, Finding
from tenure.instrumentation.operations import Claim, Operation

from .engine import Engine, Place, Truth, place
from .shared_map import SharedMap

LOST = ("lost", None)
"""Where an operation was that never arrived."""


def detect(arrived: Iterable[Operation]) -> Detector:
    detector = Detector(announce=())
    for operation in arrived:
        detector.feed(operation)
    return detector


def certain(detector: Detector) -> list[Finding]:
    return [one for one in detector.findings if one.certainty is Certainty.CERTAIN]


def other(finding: Finding) -> Place | None:
    """The second operation that a finding names, where it takes one."""
    if finding.variant == "two-children":
        return place(finding.evidence[1])
    if finding.anomaly not in ("overlapping-owners", "leaked-write"):
        return None
    claims = (
        place(one)
        for one in finding.evidence[1:]
        if isinstance(one, Claim) and one.run.epoch == finding.victim_epoch
    )
    return next(claims, LOST)


def confirms(truth: Truth, finding: Finding) -> bool:
    return (
        truth.anomaly == finding.anomaly
        and truth.culprit == place(finding.culprit)
        and finding.variant in truth.variant.split("|")
        and other(finding) in (truth.other, LOST)
    )


def is_true(finding: Finding, engine: Engine) -> bool:
    if finding.anomaly == "epoch-reuse":
        return frozenset(place(one) for one in finding.evidence[:2]) in engine.reused
    if finding.variant == "circular":
        assert isinstance(engine, SharedMap)
        return engine.circular(place(finding.culprit))
    known = engine.truth | engine.also_true
    return any(confirms(truth, finding) for truth in known)
