"""The report as Markdown, for comments that a build leaves.

Strangers' text stands in code only, where it can neither mention, link nor mark up.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tenure.detectors.report._report import Report
from tenure.detectors.report._shapes import Picture, Placed, Section
from tenure.detectors.report._visible import visible
from tenure.detectors.report._wording import clauses, title
from tenure.detectors.report.model import draw
from tenure.detectors.report.text import MARKS, counted, name_of, section_lines

LONGEST: Final = 60_000
"""How many characters are made at most; comments on the usual forges end at 65,536."""

_FINDINGS: Final = 20
_LISTED: Final = 5
_ROWS: Final = 40
_AROUND: Final = 6
_RESERVE: Final = 200
_VERDICTS: Final = {"clean": "✓", "violated": "✗"}


def render_markdown(report: Report, *, longest: int = LONGEST) -> str:
    """Return a report as Markdown.

    Args:
        report: What was seen and found.
        longest: How many characters are made at most. What no longer fits is counted.

    Returns:
        Lines that end with a newline.
    """
    picture = draw(report)
    written = _Sheet(longest)
    written.add("\n".join(_head(picture)))
    for number, placed in enumerate(picture.findings[:_FINDINGS], 1):
        written.add(_finding(number, placed, picture.sections[placed.section]))
    left = len(picture.findings) - _FINDINGS
    if left > 0:
        written.add(f"… and {left} more findings.")
    shown = sorted({placed.section for placed in picture.findings[:_FINDINGS]})
    for number in shown or range(min(1, len(picture.sections))):
        written.add(_timeline(picture, picture.sections[number]))
    return written.text


class _Sheet:
    """Blocks of text, as many as fit."""

    def __init__(self, longest: int) -> None:
        self._room = longest - _RESERVE
        self._blocks: Final[list[str]] = []
        self._left = 0

    def add(self, block: str) -> None:
        if len(block) + 2 > self._room:
            self._left += 1
            return
        self._room -= len(block) + 2
        self._blocks.append(block)

    @property
    def text(self) -> str:
        left = [f"{self._left} more blocks did not fit here."] if self._left else []
        return "\n\n".join([*self._blocks, *left]) + "\n"


def _head(picture: Picture) -> Iterator[str]:
    report = picture.report
    verdict = report.verdict.value
    yield f"### {_VERDICTS.get(verdict, '?')} tenure: {verdict}"
    yield ""
    operations, instances = picture.operations, len(picture.sections)
    yield (
        f"**{counted(picture.findings)}** in {operations} operations of "
        f"{instances} instance{'' if instances == 1 else 's'}."
    )
    for name, items in (
        ("From", report.sources),
        ("Missing", report.missing),
        ("Left out", report.left_out),
    ):
        if items:
            yield f"\n{name}:\n"
            yield from _listed(items)


def _listed(items: Sequence[str]) -> Iterator[str]:
    yield from (f"- {code(item)}" for item in items[:_LISTED])
    if len(items) > _LISTED:
        yield f"- … and {len(items) - _LISTED} more"


def _finding(number: int, placed: Placed, section: Section) -> str:
    finding = placed.finding
    head = (
        f"#### {number}. {MARKS[finding.severity]} {title(finding)} "
        f"({finding.severity}, {finding.certainty})"
    )
    about = [f"In {code(name_of(section))}"]
    if finding.keys:
        keys = ", ".join(code(key) for key in finding.keys[:_LISTED])
        more = len(finding.keys) - _LISTED
        about.append(f"keys {keys}{f' and {more} more' if more > 0 else ''}")
    lines = [head, "", "; ".join(about) + ".", "", fenced(clauses(finding))]
    if finding.missing:
        lines += ["", "Missing:", "", *_listed(finding.missing)]
    return "\n".join(lines)


def _timeline(picture: Picture, section: Section) -> str:
    lines = [
        "".join(segment.text for segment in line).rstrip()
        for line in section_lines(
            picture, section, longest=_ROWS, around=_AROUND, proofs=False
        )
    ]
    return "\n".join([
        "<details><summary>Timeline</summary>",
        "",
        fenced(lines),
        "",
        "</details>",
    ])


def code(text: str) -> str:
    """Return any text as a code span, whatever it holds."""
    shown = visible(text) or " "
    ticks = "`" * (_longest_run(shown) + 1)
    # A space inside keeps the delimiters apart from ticks; Markdown takes it away.
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(lines: Sequence[str]) -> str:
    """Return lines as a code block that nothing in them can end."""
    fence = "`" * max(3, _longest_run("\n".join(lines)) + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
