"""From records to tables: medians, ratios and what they were to be. Pure."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matrix import FLOOR, MATRIX, NEIGHBOUR, SAVING_NEIGHBOUR, SUBJECT, Row, Spec

Record = Mapping[str, Any]

NOTHING: Final = "\N{EN DASH}"
TIMES: Final = "\N{MULTIPLICATION SIGN}"
MICROSECONDS: Final = "\N{MICRO SIGN}s"


@dataclass(frozen=True, slots=True)
class Line:
    """What a row of the matrix came to.

    Attributes:
        row: The row.
        figures: Median of each role that was measured.
        ratio: Median over the repetitions of subject by floor, each with its own.
        low: The least of them.
        high: The greatest.
        neighbour_ratio: The same of the other engine, where it was measured.
        failures: What did not come to a number, and why.
    """

    row: Row
    floor: float | None
    subject: float | None
    ratio: float | None
    low: float | None
    high: float | None
    neighbour: float | None
    neighbour_ratio: float | None
    failures: tuple[str, ...]

    @property
    def judged(self) -> float | None:
        """What the target is for."""
        return self.subject if self.row.figure == "growth" else self.ratio

    @property
    def met(self) -> bool | None:
        """Whether the target is met; `None` where there is none, or no figure."""
        if self.row.target is None or self.judged is None:
            return None
        return self.judged <= self.row.target


def lines(records: Iterable[Record]) -> list[Line]:
    """Return a line for each row of the matrix of which there are records."""
    by_label: dict[str, list[Record]] = {}
    for record in records:
        by_label.setdefault(record["label"], []).append(record)
    return [_line(row, by_label[row.label]) for row in MATRIX if row.label in by_label]


def _line(row: Row, records: Sequence[Record]) -> Line:
    subject = _figures(row, row.subject, records)
    floor = _figures(row, row.floor, records)
    neighbour = _figures(row, row.neighbour, records)
    ratios = _ratios(subject, floor)
    return Line(
        row=row,
        floor=_median(floor.values()),
        subject=_median(subject.values()),
        ratio=_median(ratios),
        low=min(ratios, default=None),
        high=max(ratios, default=None),
        neighbour=_median(neighbour.values()),
        neighbour_ratio=_median(_ratios(neighbour, floor)),
        failures=tuple(
            dict.fromkeys(
                f"{record['peer']} {record['command']}: {record.get('note', 'wrong')}"
                for record in records
                if record.get("ok") is False
            )
        ),
    )


def _figures(
    row: Row, spec: Spec | None, records: Sequence[Record]
) -> dict[int, float]:
    """Return the figure of each repetition in which the measurement succeeded."""
    if spec is None:
        return {}
    name = {"growth": "growth_mb", "wall": "wall_us", "time": "cpu_us"}[row.figure]
    return {
        record["repetition"]: record[name] / row.share
        for record in records
        if record.get("ok") and (record["peer"], record["command"]) == _key(spec)
    }


def _key(spec: Spec) -> tuple[str, str]:
    return spec.peer, spec.command


def _ratios(above: Mapping[int, float], below: Mapping[int, float]) -> list[float]:
    return [above[one] / below[one] for one in above if below.get(one)]


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def markdown(found: Sequence[Line], records: Sequence[Record]) -> str:
    """Return the full table."""
    table = [
        f"| case | per | floor, {MICROSECONDS} | tenure, {MICROSECONDS} "
        f"| ratio (least to greatest) | target | {NEIGHBOUR} |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    table += ["| " + " | ".join(_cells(line)) + " |" for line in found]
    return "\n".join([*table, "", _circumstances(records)])


def _cells(line: Line) -> tuple[str, ...]:
    row = line.row
    other = line.neighbour_ratio
    ratio = NOTHING if line.ratio is None else f"**{line.ratio:.2f}**"
    if line.low is not None and line.high is not None:
        ratio += f" ({line.low:.2f} to {line.high:.2f})"
    return (
        row.title,
        row.unit,
        _number(line.floor),
        _subject(line),
        ratio,
        _target(line),
        _neighbour(line, other),
    )


def _neighbour(line: Line, ratio: float | None) -> str:
    if ratio is None or line.row.neighbour is None:
        return NOTHING
    peer = line.row.neighbour.peer
    name = "" if peer == NEIGHBOUR else f" ({peer})"
    return f"{ratio:.1f} {TIMES}{name}"


def _subject(line: Line) -> str:
    if line.row.figure == "growth" and line.subject is not None:
        return f"{line.subject:.2f} MB"
    return _number(line.subject)


def _target(line: Line) -> str:
    if line.row.target is None:
        return NOTHING
    unit = " MB" if line.row.figure == "growth" else ""
    mark = {True: " ✓", False: " ✗", None: ""}[line.met]
    return f"≤ {line.row.target:g}{unit}{mark}"


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}"


def brief(found: Sequence[Line]) -> str:
    """Return the short table: ratios only."""
    table = [
        f"| {TIMES} bare asyncio, processor time | {SUBJECT} | {NEIGHBOUR} |",
        "|---|--:|--:|",
    ]
    for line in found:
        if line.row.brief and line.ratio is not None:
            other = line.neighbour_ratio
            there = NOTHING if other is None else f"{other:.0f}"
            table.append(f"| {line.row.title} | {line.ratio:.1f} | {there} |")
    return "\n".join(table)


def _circumstances(records: Sequence[Record]) -> str:
    """Say what was measured and how steady the machine was."""
    versions: dict[str, str] = {
        record["peer"]: record["version"] for record in records if "version" in record
    }
    pythons = sorted({record["python"] for record in records if "python" in record})
    repetitions = 1 + max(record["repetition"] for record in records)
    said = [f"CPython {', '.join(pythons)}"]
    said += [
        f"{peer} {versions[peer]}"
        for peer in (SUBJECT, NEIGHBOUR, SAVING_NEIGHBOUR)
        if peer in versions
    ]
    paces = [record["calibration_ms"] for record in records if record.get("ok")]
    unsteady = f"{max(paces) / min(paces):.2f}" if paces else "?"
    processors = records[0].get("processors", "?")
    return (
        f"{'; '.join(said)}; {processors} processors; medians of {repetitions} "
        f"repetitions. The slowest moment of the machine was {unsteady} times the "
        f"fastest, by a fixed piece of work; ratios are of neighbours in time."
    )


def text(found: Sequence[Line]) -> str:
    """Return the table for a terminal."""
    rows = [
        (
            "case",
            f"floor {MICROSECONDS}",
            f"tenure {MICROSECONDS}",
            "ratio",
            "range",
            "target",
            NEIGHBOUR,
        )
    ]
    for line in found:
        spread = "" if line.low is None else f"{line.low:.2f}-{line.high:.2f}"
        other = line.neighbour_ratio
        rows.append((
            line.row.label,
            _number(line.floor),
            _subject(line),
            NOTHING if line.ratio is None else f"{line.ratio:.2f}",
            spread,
            _target(line),
            NOTHING if other is None else f"{other:.1f}",
        ))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def put_between(page: str, name: str, content: str) -> str:
    """Replace what stands between the markers `name` of a page.

    Raises:
        ValueError: The page has no such markers.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no markers {begin} and {end}")
    return f"{head}{begin}\n{content}\n{end}{tail}"


__all__ = ["FLOOR", "Line", "brief", "lines", "markdown", "put_between", "text"]
