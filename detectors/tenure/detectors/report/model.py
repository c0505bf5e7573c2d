"""From operations and findings to what is drawn: pure, and free of any medium."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from tenure.detectors.anomalies import Certainty
from tenure.detectors.findings import Finding
from tenure.detectors.report._arrows import Archer
from tenure.detectors.report._order import Hole, Key, identity, in_order, lives, processes
from tenure.detectors.report._placing import Course, bars, lanes, supersteps
from tenure.detectors.report._report import Report
from tenure.detectors.report._shapes import (
    RANK,
    Gap,
    Mark,
    Picture,
    Placed,
    Section,
    kind_of,
)
from tenure.instrumentation.operations import Operation

_SURE: Final[Mapping[Certainty, int]] = MappingProxyType({
    Certainty.CERTAIN: 0,
    Certainty.CONFIRMED: 0,
    Certainty.PREDICTED: 1,
    Certainty.POSSIBLE: 2,
})


def draw(report: Report) -> Picture:
    """Lay a report out.

    Takes time in proportion to the operations, whatever they say.

    Args:
        report: What was seen and found.

    Returns:
        Everything that has a place, at its place.
    """
    findings = sorted(
        report.findings, key=lambda each: (RANK[each.severity], _SURE[each.certainty])
    )
    accused: dict[object, list[int]] = {}
    for number, finding in enumerate(findings):
        accused.setdefault(identity(finding.culprit), []).append(number)
    drafts = sorted(_drafts(report, findings, accused), key=_gravest_first)
    placed: dict[int, Placed] = {}
    for number, draft in enumerate(drafts):
        for mark in draft.marks:
            for found in mark.findings:
                placed[found] = Placed(findings[found], number, mark.place)
    return Picture(
        report=report,
        sections=tuple(_section(draft, findings) for draft in drafts),
        # The evidence is drawn, so every finding has a place.
        findings=tuple(placed[number] for number in range(len(findings))),
        operations=sum(len(draft.marks) for draft in drafts),
    )


@dataclass(slots=True)
class _Draft:
    """A section whose operations have been ordered."""

    key: Key
    life: int
    rows: list[Mark | Gap] = field(default_factory=list[Mark | Gap])
    courses: list[Course] = field(default_factory=list[Course])

    @property
    def marks(self) -> Iterator[Mark]:
        return (row for row in self.rows if isinstance(row, Mark))
