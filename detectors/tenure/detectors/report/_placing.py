"""Lanes, tenures and supersteps of one section, from its marks."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tenure.detectors.report._shapes import Bar, Lane, Mark, Superstep
from tenure.instrumentation.operations import (
    Claim,
    Outcome,
    Release,
    RunRef,
    SuperstepEnd,
    SuperstepStart,
)

COLUMNS: Final = 12
"""How many runs come between two that share a column, unless processes are many."""

GROUPS: Final = 4
"""How many processes have columns of their own."""

_FEWEST: Final = 3


@dataclass(slots=True)
class Course:
    """What is known of one run in one process.

    Attributes:
        run: The run.
        marks: Its marks, in order; never empty.
    """

    run: RunRef
    marks: list[Mark] = field(default_factory=list[Mark])


class Claims:
    """The claims of a section: which one follows an epoch.

    Args:
        marks: All marks of the section.
    """

    def __init__(self, marks: Iterable[Mark]) -> None:
        claims = [mark for mark in marks if isinstance(mark.operation, Claim)]
        claims.sort(key=lambda mark: (mark.operation.run.epoch, mark.place))
        self._claims: Final = claims
        self._epochs: Final = [mark.operation.run.epoch for mark in claims]

    def after(self, epoch: int) -> Mark | None:
        """Return the first claim of the next greater epoch that was claimed."""
        found = bisect_right(self._epochs, epoch)
        return self._claims[found] if found < len(self._claims) else None


def bars(courses: Sequence[Course], last: int) -> Iterator[Bar]:
    """Draw the tenures.

    A run that neither claimed nor was ever seen to own has none.

    Args:
        courses: The runs of the section; a run's number is that of its lane.
        last: The last place of the section.
    """
    claims = Claims(mark for course in courses for mark in course.marks)
    for lane, course in enumerate(courses):
        bar = _bar(lane, course, claims, last)
        if bar is not None:
            yield bar


def _bar(lane: int, course: Course, claims: Claims, last: int) -> Bar | None:
    claim = _first(course, Claim)
    owning = [mark.place for mark in course.marks if _owns(mark)]
    if claim is None and not owning:
        return None
    first = owning[0] if claim is None else claim.place
    end, released, outcome = _end(course, claims, max([first, *owning[-1:]]), last)
    return Bar(lane, first, max(first, end), claim is not None, released, outcome)


def _end(
    course: Course, claims: Claims, owned: int, last: int
) -> tuple[int, bool, Outcome | None]:
    """Return where a tenure ends, whether that was seen, and how it ended."""
    release = _first(course, Release)
    if release is not None:
        assert isinstance(release.operation, Release)
        return release.place, True, release.operation.outcome
    successor = claims.after(course.run.epoch)
    if successor is None:
        return last, False, None
    assert isinstance(successor.operation, Claim)
    replaced = successor.operation.superseded
    if replaced is not None and replaced >= course.run.epoch:
        return successor.place, True, Outcome.SUPERSEDED
    # Nothing ends it. Both are drawn as owners at the claim, for that is what is known.
    return max(owned, successor.place), False, None


def _owns(mark: Mark) -> bool:
    owner = mark.operation.owner
    return owner is not None and owner.epoch == mark.operation.run.epoch


def _first(course: Course, kind: type[Claim] | type[Release]) -> Mark | None:
    return next(
        (mark for mark in course.marks if isinstance(mark.operation, kind)), None
    )


def supersteps(courses: Sequence[Course]) -> Iterator[Superstep]:
    """Draw the supersteps, those that do not end up to where their run is seen last."""
    for lane, course in enumerate(courses):
        begun: dict[int, int] = {}
        for mark in course.marks:
            operation = mark.operation
            if isinstance(operation, SuperstepStart):
                begun.setdefault(operation.index, mark.place)
            elif isinstance(operation, SuperstepEnd):
                first = begun.pop(operation.index, mark.place)
                yield Superstep(lane, operation.index, first, mark.place)
        for index, first in begun.items():
            yield Superstep(lane, index, first, course.marks[-1].place)


def lanes(
    courses: Sequence[Course], drawn: Iterable[Bar], processes: Sequence[str]
) -> tuple[tuple[Lane, ...], tuple[int, ...]]:
    """Give every run a column.

    Up to `COLUMNS` runs of a process have one each. Later ones begin again at the left
    where the column is free, so that any number of runs fits beside each other.

    Args:
        courses: The runs of the section, in the order in which they appear.
        drawn: Their tenures.
        processes: The processes of the section.

    Returns:
        The lanes, and how many columns each group has.
    """
    separate = len(processes) <= GROUPS
    number = {process: at if separate else 0 for at, process in enumerate(processes)}
    groups = [
        _Columns(max(COLUMNS // len(processes), _FEWEST) if separate else COLUMNS)
        for _ in (processes if separate else processes[:1])
    ]
    extents = {bar.lane: (bar.first, bar.last) for bar in drawn}
    found: list[Lane] = []
    for lane, course in enumerate(courses):
        first, last = course.marks[0].place, course.marks[-1].place
        bar_first, bar_last = extents.get(lane, (first, last))
        first, last = min(first, bar_first), max(last, bar_last)
        group = number[course.run.process]
        column = groups[group].take(first, last)
        found.append(Lane(course.run, group, column, first, last))
    return tuple(found), tuple(len(group) for group in groups)


class _Columns:
    """Columns that are taken in turn."""

    def __init__(self, turns: int) -> None:
        self._turns: Final = turns
        self._last = -1
        # For each column, the place up to which it is taken.
        self._taken: Final[list[int]] = []

    def __len__(self) -> int:
        return len(self._taken)

    def take(self, first: int, last: int) -> int:
        count = len(self._taken)
        column = count
        if count >= self._turns:
            turns = ((self._last + 1 + turn) % count for turn in range(count))
            column = next((each for each in turns if self._taken[each] < first), count)
        if column == count:
            self._taken.append(last)
        self._taken[column] = last
        self._last = column
        return column
