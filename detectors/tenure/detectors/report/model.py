"""From operations and findings to what is drawn: pure, and free of any medium."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Final

from tenure.detectors.anomalies import Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.detectors.report._arrows import Archer
from tenure.detectors.report._order import (
    Hole,
    Key,
    identity,
    in_order,
    lives,
    processes,
)
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
    """One life of an instance, whose operations have been put in order."""

    key: Key
    life: int
    processes: tuple[str, ...]
    rows: list[Mark | Gap] = field(default_factory=list[Mark | Gap])
    courses: list[Course] = field(default_factory=list[Course])

    @property
    def marks(self) -> list[Mark]:
        return [row for row in self.rows if isinstance(row, Mark)]

    @property
    def severity(self) -> Severity | None:
        found = (row.severity for row in self.rows if isinstance(row, Mark))
        return min(found, key=RANK.__getitem__, default=None)


def _drafts(
    report: Report, findings: Sequence[Finding], accused: Mapping[object, Sequence[int]]
) -> Iterator[_Draft]:
    evidence = (seen for finding in findings for seen in finding.evidence)
    for key, life in lives(chain(report.operations, evidence)):
        draft = _Draft(key, life.number, processes(life.operations))
        numbers: dict[tuple[str, str, int], int] = {}
        for place, step in enumerate(in_order(life.operations)):
            if isinstance(step, Hole):
                draft.rows.append(Gap(place, step.process, step.first, step.last))
                continue
            run = step.run
            lane = numbers.setdefault(
                (run.process, run.run_id, run.epoch), len(numbers)
            )
            if lane == len(draft.courses):
                draft.courses.append(Course(run))
            numbered = tuple(accused.get(identity(step), ()))
            # Findings are numbered from the gravest on.
            worst = findings[numbered[0]].severity if numbered else None
            mark = Mark(place, lane, kind_of(step), step, numbered, worst)
            draft.rows.append(mark)
            draft.courses[lane].marks.append(mark)
        yield draft


def _gravest_first(draft: _Draft) -> tuple[int, str, str, str, int]:
    engine, workflow, instance = draft.key
    return RANK[draft.severity], workflow, instance, engine, draft.life


def _section(draft: _Draft, findings: Sequence[Finding]) -> Section:
    tenures = tuple(bars(draft.courses, len(draft.rows) - 1))
    drawn, groups = lanes(draft.courses, tenures, draft.processes)
    archer = Archer(draft.marks, drawn, tenures)
    accusing = sorted(number for mark in draft.marks for number in mark.findings)
    arrows = (archer.draw(number, findings[number]) for number in accusing)
    engine, workflow, instance = draft.key
    return Section(
        engine=engine,
        workflow=workflow,
        instance=instance,
        life=draft.life,
        processes=draft.processes,
        groups=groups,
        rows=tuple(draft.rows),
        lanes=drawn,
        bars=tenures,
        supersteps=tuple(supersteps(draft.courses)),
        arrows=tuple(arrow for arrow in arrows if arrow is not None),
        severity=draft.severity,
    )
