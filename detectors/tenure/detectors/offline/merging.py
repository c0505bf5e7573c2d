"""Several files read side by side, in the order of the times in their spans.

What a detector remembers is bounded. File after file, it would hear of all that one
process has done before it hears of another's first claim, and would have forgotten by
then what the two have to do with each other. Times are no evidence, and only decide
what is read next. A clock that goes wrong costs what is remembered, never the truth.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, final

from tenure.detectors.offline.spans import Found, Problem

MAX_OPEN: Final = 64
"""How many files are read side by side; the others wait, those that begin last."""

Reader = Callable[[str], Iterator[Found | Problem]]
"""Opens a file and yields what is in it; closes it when it is closed itself."""


def side_by_side(
    paths: Sequence[str], read: Reader, begins: Callable[[str], int]
) -> Iterator[tuple[int, Found | Problem]]:
    """Read files, always going on with the one whose next span ended first.

    A file is opened when its first span is next, so that files which follow each other
    are read one after the other.

    Args:
        paths: Files.
        read: Reads one of them.
        begins: Tells when the first span in one of them ended; 0 if that is unknown.

    Yields:
        What is in them, each with the place of its file in `paths`.
    """
    times = [begins(path) for path in paths] if len(paths) > 1 else [0] * len(paths)
    waiting = deque(sorted(range(len(paths)), key=times.__getitem__))
    # The file in each place of `paths` that is open, by when its next span ended.
    turns: list[tuple[int, int]] = []
    opened: dict[int, _Reading] = {}
    while waiting or turns:
        while waiting and _has_room(turns, times[waiting[0]]):
            place = waiting.popleft()
            opened[place] = _Reading(read(paths[place]))
            heappush(turns, (opened[place].time, place))
        _, place = heappop(turns)
        found = opened[place].take()
        if found is None:
            del opened[place]
            continue
        yield place, found
        heappush(turns, (opened[place].time, place))


def _has_room(turns: Sequence[tuple[int, int]], begins: int) -> bool:
    """Say whether a file that begins at a time is to be opened now."""
    if not turns:
        return True
    return len(turns) < MAX_OPEN and begins <= turns[0][0]


@final
class _Reading:
    """A file that is being read, and what is next in it."""

    def __init__(self, found: Iterator[Found | Problem]) -> None:
        self._rest: Final = found
        self.time = 0
        self._next: Found | Problem | None = None
        self.take()

    def take(self) -> Found | Problem | None:
        """Take what is next; `None` at the end."""
        taken, self._next = self._next, next(self._rest, None)
        if isinstance(self._next, Found):
            self.time = self._next.span.end
        return taken
