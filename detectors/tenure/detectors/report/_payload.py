"""A picture as plain data for the page, with what many rows share said once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tenure.detectors.anomalies import CATALOGUE
from tenure.detectors.report._shapes import (
    Arrow,
    Bar,
    Gap,
    Kind,
    Lane,
    Mark,
    Picture,
    Placed,
    Section,
)
from tenure.detectors.report._visible import visible
from tenure.detectors.report._wording import clauses, describe, title
from tenure.detectors.report.text import counted, name_of
from tenure.instrumentation.attributes import (
    operation_attributes,
    run_attributes,
    span_name,
)
from tenure.instrumentation.operations import SpanRef

_EXACT: Final = 2**53
"""Up to here a script's numbers are exact."""

_KINDS: Final = {kind: number for number, kind in enumerate(Kind)}


def payload(picture: Picture) -> dict[str, Any]:
    """Return what the page's script draws.

    Every text in it is printable. Rows are lists, because there may be many.
    """
    report = picture.report
    return {
        "verdict": report.verdict.value,
        "counted": counted(picture.findings),
        "operations": picture.operations,
        "sources": _texts(report.sources),
        "missing": _texts(report.missing),
        "left_out": _texts(report.left_out),
        "kinds": [kind.value for kind in Kind],
        "findings": [_finding(placed) for placed in picture.findings],
        "sections": [_section(section) for section in picture.sections],
    }


def _texts(items: Sequence[str]) -> list[str]:
    return [visible(item) for item in items]


def _finding(placed: Placed) -> dict[str, Any]:
    finding = placed.finding
    anomaly = CATALOGUE.get(finding.anomaly)
    return {
        "anomaly": finding.anomaly,
        "title": title(finding),
        "severity": finding.severity.value,
        "certainty": finding.certainty.value,
        "culprit": finding.culprit_epoch,
        "owner": finding.owner_epoch,
        "victim": finding.victim_epoch,
        "keys": _texts(finding.keys),
        "proof": list(clauses(finding)),
        "missing": _texts(finding.missing),
        "implies": "" if anomaly is None else anomaly.implies,
        "section": placed.section,
        "place": placed.place,
    }


def _section(section: Section) -> dict[str, Any]:
    processes = {process: number for number, process in enumerate(section.processes)}
    return {
        "name": name_of(section),
        "workflow": visible(section.workflow),
        "instance": visible(section.instance),
        "engine": visible(section.engine),
        "life": section.life,
        "severity": None if section.severity is None else section.severity.value,
        "processes": _texts(section.processes),
        "groups": section.groups,
        "lanes": [_lane(section, lane, processes) for lane in section.lanes],
        "bars": [_bar(bar) for bar in section.bars],
        "supersteps": [
            [step.lane, step.index, step.first, step.last]
            for step in section.supersteps
        ],
        "arrows": [_arrow(arrow) for arrow in section.arrows],
        "rows": [_row(row, processes) for row in section.rows],
    }


def _lane(section: Section, lane: Lane, processes: Mapping[str, int]) -> dict[str, Any]:
    run = lane.run
    return {
        "column": sum(section.groups[: lane.group]) + lane.column,
        "epoch": _value(run.epoch),
        "run": visible(run.run_id),
        "process": processes[run.process],
        "first": lane.first,
        "last": lane.last,
        "attributes": _plain(run_attributes(run)),
    }


def _bar(bar: Bar) -> list[object]:
    outcome = None if bar.outcome is None else bar.outcome.value
    return [bar.lane, bar.first, bar.last, bar.claimed, bar.released, outcome]


def _arrow(arrow: Arrow) -> list[object]:
    return [
        arrow.finding,
        arrow.lane,
        arrow.place,
        arrow.to_lane,
        arrow.to_place,
        arrow.says,
    ]


def _row(row: Mark | Gap, processes: Mapping[str, int]) -> list[object]:
    if isinstance(row, Gap):
        return [processes[row.process], row.first, row.last]
    operation = row.operation
    return [
        row.lane,
        _KINDS[row.kind],
        _value(operation.seq),
        describe(operation),
        # Microseconds: nanoseconds since 1970 are more than a script counts exactly.
        operation.time // 1_000,
        visible(span_name(operation)),
        *_span(operation.span),
        _plain(operation_attributes(operation, {})),
        row.findings,
    ]


def _span(span: SpanRef | None) -> tuple[str, str]:
    if span is None:
        return "", ""
    return f"{span.trace_id:032x}", f"{span.span_id:016x}"


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _value(value) for name, value in attributes.items()}


def _value(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, tuple | list):
        return [_value(each) for each in cast("Sequence[object]", value)]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    return value
