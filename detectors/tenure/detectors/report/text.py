"""The timeline as text: lines of segments for a terminal, or a plain string.

A column stands for a run, a line beside it for the time in which it owns the instance.
Nothing depends on colour: a tone only repeats what a mark says.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tenure.detectors.anomalies import Severity
from tenure.detectors.findings import Finding
from tenure.detectors.report._excerpt import excerpt
from tenure.detectors.report._graph import Graph
from tenure.detectors.report._report import Report
from tenure.detectors.report._shapes import Gap, Mark, Picture, Placed, Section
from tenure.detectors.report._visible import visible
from tenure.detectors.report._wording import clauses, describe, title
from tenure.detectors.report.model import draw


class Tone(StrEnum):
    """How a segment of a line is meant; a terminal may give it a style."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    VIOLATION = "violation"
    WARNING = "warning"
    AVERTED = "averted"
    INFORMATION = "information"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a line.

    Attributes:
        text: Printable text.
        tone: How it is meant.
    """

    text: str
    tone: Tone = Tone.PLAIN


Line = tuple[Segment, ...]
"""One line of text, from left to right."""

MARKS: Final[Mapping[Severity, str]] = MappingProxyType({
    Severity.VIOLATION: "✗",
    Severity.WARNING: "!",
    Severity.AVERTED: "✓",
    Severity.INFORMATION: "i",
})
"""The mark of a finding of each severity."""

LONGEST: Final = 200
AROUND: Final = 8
SECTIONS: Final = 20
_ASCII: Final = str.maketrans({
    "✗": "x", "✓": "v", "│": "|", "─": "-", "┼": "+", "◀": "<", "▶": ">", "├": "+",
    "┬": "+", "┴": "+", "○": "o", "●": "*", "⊘": "0", "◇": "#", "□": "s", "◌": "~",
    "▷": "}", "…": "...", "·": "-", "—": "-",
})  # fmt: skip


def render_text(report: Report, *, ascii_only: bool = False) -> str:
    """Return a report as plain text.

    Args:
        report: What was seen and found.
        ascii_only: Whether lines and marks are drawn in ASCII, and strangers' texts
            escaped to it.

    Returns:
        Lines that end with a newline.
    """
    text = "".join(
        "".join(segment.text for segment in line).rstrip() + "\n"
        for line in text_lines(draw(report))
    )
    if not ascii_only:
        return text
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")


def text_lines(picture: Picture) -> Iterator[Line]:
    """Return all lines of a report: what was found, then where.

    Timelines without findings are counted if there are others to show.
    """
    yield from heading(picture)
    grave = [each for each in picture.sections if each.severity is not None]
    shown = (grave or list(picture.sections))[:SECTIONS]
    for section in shown:
        yield ()
        yield from section_lines(picture, section)
    left = len(picture.sections) - len(shown)
    if left:
        yield ()
        yield _dim(f"{left} more timelines are not shown")


def heading(picture: Picture) -> Iterator[Line]:
    """Return the lines above the timelines."""
    report = picture.report
    tone = _VERDICT.get(report.verdict.value, Tone.WARNING)
    instances = len(picture.sections)
    where = (
        f"{picture.operations} operations of "
        f"{instances} instance{'' if instances == 1 else 's'}"
    )
    yield (
        Segment(report.verdict.value, tone),
        Segment(f": {counted(picture.findings)} in {where}"),
    )
    for name, items in (
        ("from", report.sources),
        ("missing", report.missing),
        ("left out", report.left_out),
    ):
        for item in items[:SECTIONS]:
            yield _dim(f"{name}: {visible(item)}")
        if len(items) > SECTIONS:
            yield _dim(f"{name}: {len(items) - SECTIONS} more")


_VERDICT: Final[Mapping[str, Tone]] = MappingProxyType({
    "clean": Tone.AVERTED,
    "violated": Tone.VIOLATION,
})


def counted(findings: Sequence[Placed]) -> str:
    """Count findings by severity, such as `2 violations, 1 averted`."""
    counts = Counter(placed.finding.severity for placed in findings)
    said = [
        f"{counts[severity]} {severity.value}"
        f"{'s' if counts[severity] > 1 and severity in _COUNTABLE else ''}"
        for severity in Severity
        if counts[severity]
    ]
    return ", ".join(said) or "no findings"


_COUNTABLE: Final = frozenset({Severity.VIOLATION, Severity.WARNING})


def section_lines(
    picture: Picture,
    section: Section,
    *,
    longest: int = LONGEST,
    around: int = AROUND,
    proofs: bool = True,
) -> Iterator[Line]:
    """Return the lines of one timeline, with each finding below what it accuses.

    Args:
        picture: Where the section comes from.
        section: The timeline.
        longest: How many rows are shown at most if they are to be shown all.
        around: How many rows are shown around a finding otherwise.
        proofs: Whether findings are proven, or only named.
    """
    yield (Segment(name_of(section), Tone.STRONG),)
    several = len(section.processes) > 1
    if several:
        for number, process in enumerate(section.processes, 1):
            yield _dim(f"p{number} = process {visible(process)}")
        yield _dim("between processes, only epochs say what came first")
    width = 9 if several else 5
    graph = Graph(section)
    shown = 0
    for rows in excerpt(section, longest=longest, around=around):
        yield from _elided(rows.start - shown, width)
        for place in rows:
            row = section.rows[place]
            yield _row(section, row, graph, width)
            if isinstance(row, Mark):
                for number in row.findings:
                    found = picture.findings[number].finding
                    yield from _finding(found, width, proofs=proofs)
        shown = rows.stop
    yield from _elided(len(section.rows) - shown, width)


def name_of(section: Section) -> str:
    """Return what stands above a timeline."""
    life = f" ({section.life}. of that name)" if section.life > 1 else ""
    name = f"{visible(section.workflow)} / {visible(section.instance)}{life}"
    return f"{name} on {visible(section.engine)}"


def _row(section: Section, row: Mark | Gap, graph: Graph, width: int) -> Line:
    seq = Segment(f"{_seq(section, row):>{width}}  ", Tone.DIM)
    if isinstance(row, Gap):
        drawn = Segment(graph.line(row.place), Tone.DIM)
        return seq, drawn, Segment(_hole(row), Tone.DIM)
    tone = Tone.PLAIN if row.severity is None else Tone(row.severity.value)
    glyph = "" if row.severity is None else MARKS[row.severity]
    says = f"epoch {row.operation.run.epoch} {describe(row.operation)}"
    return (
        seq,
        Segment(graph.line(row.place, glyph), tone),
        Segment(f"{glyph} {says}" if glyph else says, tone),
    )


def _finding(finding: Finding, width: int, *, proofs: bool) -> Iterator[Line]:
    indent = Segment(" " * (width + 6))
    head = f"{title(finding)} ({finding.severity}, {finding.certainty})"
    yield indent, Segment(head, Tone(finding.severity.value))
    if not proofs:
        return
    for clause in clauses(finding):
        yield indent, Segment(clause)
    for missing in finding.missing:
        yield indent, Segment(f"missing: {visible(missing)}", Tone.DIM)


def _seq(section: Section, row: Mark | Gap) -> str:
    if isinstance(row, Gap):
        return "…"
    operation = row.operation
    seq = "?" if operation.seq is None else str(operation.seq)
    if len(section.processes) < 2:
        return seq
    return f"p{section.processes.index(operation.run.process) + 1}:{seq}"


def _hole(gap: Gap) -> str:
    one = gap.first == gap.last
    which = f"seq {gap.first}{'' if one else f'-{gap.last}'}"
    of = f"of process {visible(gap.process)}"
    return f"{which} {of} {'is' if one else 'are'} not in this report"


def _elided(count: int, width: int) -> Iterator[Line]:
    if count:
        yield _dim(f"{'':>{width}}  … {count} rows …")


def _dim(text: str) -> Line:
    return (Segment(text, Tone.DIM),)
