"""What a check found, for people: one HTML file, Markdown, plain text.

Pure, and the standard library only. Everything shown may come from a trace that a
stranger wrote: it is escaped for its medium, and what does not print is spelt out.
"""

from tenure.detectors.report._report import Report
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
    Superstep,
)
from tenure.detectors.report._wording import describe
from tenure.detectors.report.html import render_html
from tenure.detectors.report.markdown import render_markdown
from tenure.detectors.report.model import draw
from tenure.detectors.report.text import (
    Line,
    Segment,
    Tone,
    render_text,
    section_lines,
    text_lines,
)
from tenure.detectors.report.timeline import Timeline

__all__ = [
    "Arrow",
    "Bar",
    "Gap",
    "Kind",
    "Lane",
    "Line",
    "Mark",
    "Picture",
    "Placed",
    "Report",
    "Section",
    "Segment",
    "Superstep",
    "Timeline",
    "Tone",
    "describe",
    "draw",
    "render_html",
    "render_markdown",
    "render_text",
    "section_lines",
    "text_lines",
]
