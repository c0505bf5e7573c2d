"""A timeline of swim lanes: the client, and one lane for each run.

A lane is drawn from the run's claim to its release, so that what a run does when it
no longer owns the instance stands outside its lane. What broke ownership is marked, and
its proof stands below it. Nothing depends on colour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tenure.cli._demo.play import Entry, Played
from tenure.cli._demo.story import Actor, Step
from tenure.detectors import Finding
from tenure.detectors.report import describe
from tenure.instrumentation.operations import (
    Claim,
    Operation,
    Release,
    SuperstepEnd,
    SuperstepStart,
)

_SEQ_WIDTH: Final = 4
_CLIENT_WIDTH: Final = 24
_GUTTER_WIDTH: Final = 2
_NARROWEST: Final = 10
_MARKS: Final = {
    "violation": ("✗", "bold red"),
    "warning": ("!", "bold yellow"),
    "averted": ("✓", "bold green"),
    "information": ("·", "cyan"),
}
_ASCII: Final = str.maketrans({"✗": "x", "✓": "v", "·": "-", "│": "|"})


def mark(options: ConsoleOptions, severity: str) -> str:
    """Return the mark of findings of `severity`, in characters that can be shown."""
    shown, _ = _MARKS[severity]
    return shown.translate(_ASCII) if options.ascii_only else shown


@dataclass(frozen=True, slots=True)
class Timeline:
    """What happened on one engine, as lanes; a rich renderable.

    Attributes:
        played: What an engine made of the story.
    """

    played: Played

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """Draw the lanes, with each proof below the operation it accuses."""
        lanes = Lanes(self.played.entries)
        rows = _Rows(console, options, lanes)
        yield rows.headings()
        for entry in self.played.entries:
            accusing = [
                finding for finding in self.played.findings if finding.culprit == entry
            ]
            yield rows.row(entry, accusing)
            for finding in accusing:
                yield rows.proof(finding)


class Lanes:
    """Which lane an entry belongs to, and which runs own the instance.

    Args:
        entries: All entries of a timeline.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        epochs = {entry.run.epoch for entry in entries if isinstance(entry, Operation)}
        asked = {entry.request.number for entry in entries if isinstance(entry, Step)}
        # Runs claim in the order in which the client asks for them.
        self.epochs: Final = sorted(epochs)
        self.count: Final = max(len(epochs), len(asked), 1)
        self._owning: Final[set[int]] = set()

    def of(self, entry: Entry) -> int | None:
        """Return the lane of `entry`; none for a step of the client."""
        if isinstance(entry, Operation):
            return self.epochs.index(entry.run.epoch)
        return None if entry.actor is Actor.CLIENT else entry.request.number - 1

    def drawn(self, entry: Entry) -> frozenset[int]:
        """Return the lanes that are drawn beside `entry`; call it once for each."""
        lane = self.of(entry)
        if isinstance(entry, Claim) and lane is not None:
            self._owning.add(lane)
        drawn = frozenset(self._owning)
        if isinstance(entry, Release) and lane is not None:
            self._owning.discard(lane)
        return drawn


class _Rows:
    """Rows of equal columns, each a renderable of its own."""

    def __init__(self, console: Console, options: ConsoleOptions, lanes: Lanes) -> None:
        self._console: Final = console
        self._ascii: Final = options.ascii_only
        self._lanes: Final = lanes
        room = options.max_width - _SEQ_WIDTH - _CLIENT_WIDTH
        self._lane_width: Final = max(room // lanes.count - _GUTTER_WIDTH, _NARROWEST)

    def headings(self) -> Table:
        names = [f"run {lane + 1}" for lane in range(self._lanes.count)]
        for lane, epoch in enumerate(self._lanes.epochs):
            names[lane] += f" = epoch {epoch}"
        return self._table("seq", "client", names, frozenset(), "bold underline")

    def row(self, entry: Entry, accusing: Sequence[Finding]) -> Table:
        said = entry.text if isinstance(entry, Step) else describe(entry)
        style = _style(entry)
        for finding in accusing:
            shown, style = _MARKS[finding.severity]
            said = f"{shown} {said}"
        texts = [""] * self._lanes.count
        lane = self._lanes.of(entry)
        client = said if lane is None else ""
        if lane is not None:
            texts[lane] = said
        seq = entry.seq if isinstance(entry, Operation) else None
        drawn = self._lanes.drawn(entry)
        return self._table("" if seq is None else str(seq), client, texts, drawn, style)

    def proof(self, finding: Finding) -> Padding:
        _, style = _MARKS[finding.severity]
        text = Text()
        text.append(
            f"{finding.anomaly} ({finding.severity}, {finding.certainty})\n",
            style=style,
        )
        text.append("\n".join(_clauses(finding)))
        indent = _SEQ_WIDTH + _GUTTER_WIDTH
        return Padding(
            Text(self._shown(text.plain), spans=text.spans), (0, 0, 0, indent)
        )

    def _table(
        self,
        seq: str,
        client: str,
        texts: Sequence[str],
        drawn: frozenset[int],
        style: str,
    ) -> Table:
        table = Table(box=None, show_header=False, padding=0, pad_edge=False)
        table.add_column(width=_SEQ_WIDTH)
        table.add_column(width=_CLIENT_WIDTH)
        cells = [Text(seq), Text(client, style=style)]
        height = max(self._height(text) for text in texts)
        for lane, text in enumerate(texts):
            table.add_column(width=_GUTTER_WIDTH)
            table.add_column(width=self._lane_width)
            line = self._shown("│")
            cells.append(Text("\n".join([line] * height) if lane in drawn else ""))
            cells.append(Text(self._shown(text), style=style))
        table.add_row(*cells)
        return table

    def _height(self, text: str) -> int:
        return len(Text(text).wrap(self._console, self._lane_width)) or 1

    def _shown(self, text: str) -> str:
        return text.translate(_ASCII) if self._ascii else text


def _style(entry: Entry) -> str:
    if isinstance(entry, Step):
        return "italic"
    return "dim" if isinstance(entry, SuperstepStart | SuperstepEnd) else ""


def _clauses(finding: Finding) -> Iterator[str]:
    """Split the proof after `let` and `then`, so that each stands on its own line."""
    rest = finding.proof
    for word in ("then", "however"):
        clause, found, rest_ = rest.partition(f"; {word}")
        if found:
            yield f"{clause};"
            rest = f"{word}{rest_}"
    yield rest
