"""One row of a timeline as characters: bars, the mark, and the arrow."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.detectors.report._shapes import Kind, Mark, Section

_SHAPES: Final[Mapping[Kind, str]] = MappingProxyType({
    Kind.CLAIM: "┬",
    Kind.RELEASE: "┴",
    Kind.SUPERSTEP: "├",
    Kind.EXECUTE: "○",
    Kind.COMMIT: "●",
    Kind.DISCARD: "⊘",
    Kind.FENCED: "◇",
    Kind.CHECKPOINT: "□",
    Kind.LATE: "◌",
    Kind.FOREIGN: "▷",
})
_ROOMY: Final = 4
_NARROW: Final = 2
_MANY: Final = 12


class Graph:
    """Draws rows of one section; ask for them in order.

    Args:
        section: The section.
    """

    def __init__(self, section: Section) -> None:
        self._section: Final = section
        self._step: Final = _ROOMY if section.columns <= _MANY else _NARROW
        self._arrows: Final = {arrow.place: arrow for arrow in section.arrows[::-1]}
        self._columns: Final = [
            section.column(lane) for lane in range(len(section.lanes))
        ]
        # For each column its tenures, so that a row looks at few of them.
        self._bars: Final[dict[int, list[tuple[int, int]]]] = {}
        for bar in section.bars:
            column = self._columns[bar.lane]
            self._bars.setdefault(column, []).append((bar.first, bar.last))
        for spans in self._bars.values():
            spans.sort(reverse=True)

    def line(self, place: int, glyph: str = "") -> str:
        """Draw a row.

        Args:
            place: Its place; not smaller than the one before.
            glyph: What is drawn instead of the shape of its mark.
        """
        cells = [" "] * (self._section.columns * self._step)
        for column, spans in self._bars.items():
            while spans and spans[-1][1] < place:
                spans.pop()
            if spans and spans[-1][0] <= place:
                cells[column * self._step] = "│"
        row = self._section.rows[place]
        if isinstance(row, Mark):
            column = self._columns[row.lane]
            cells[column * self._step] = glyph or _SHAPES[row.kind]
            arrow = self._arrows.get(place)
            if arrow is not None:
                self._shoot(cells, column, self._columns[arrow.to_lane])
        return "".join(cells)

    def _shoot(self, cells: list[str], start: int, end: int) -> None:
        low, high = sorted((start * self._step, end * self._step))
        for at in range(low + 1, high):
            cells[at] = "┼" if cells[at] == "│" else "─"
        if high > low:
            cells[low + 1 if end < start else high - 1] = "◀" if end < start else "▶"
