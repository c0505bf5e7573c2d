"""What a report is made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tenure.detectors.detector import Detector, Verdict
from tenure.detectors.findings import Finding
from tenure.detectors.report.timeline import Timeline
from tenure.instrumentation.operations import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check saw and what it says of it.

    Attributes:
        verdict: What may be said of everything that was seen.
        findings: What was found, in the order in which it was.
        operations: What is drawn, in the order of arrival. The evidence of findings is
            drawn besides, so it need not be here.
        sources: Where the operations come from, such as names of files.
        missing: What keeps the verdict from being clean, but for violations.
        left_out: What was seen and is not among the operations, for want of room.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    operations: tuple[Operation, ...]
    sources: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        detector: Detector,
        operations: Timeline | Iterable[Operation],
        *,
        sources: Iterable[str] = (),
    ) -> Self:
        """Report what `detector` says of `operations`.

        Args:
            detector: What has judged them.
            operations: What it was fed with, or a timeline of that.
            sources: Where they come from.
        """
        left_out: tuple[str, ...] = ()
        if isinstance(operations, Timeline):
            left_out = operations.left_out
            operations = operations.operations
        return cls(
            verdict=detector.verdict,
            findings=detector.findings,
            operations=tuple(operations),
            sources=tuple(sources),
            missing=detector.missing,
            left_out=left_out,
        )
