"""Which positions of one process have been received: gaps, duplicates, order.

Pure and bounded: disjoint intervals, of which the newest nearly always grows.
"""

from bisect import bisect_right
from typing import Final

MAX_INTERVALS: Final = 512
"""How many runs of consecutive positions are told apart per process."""


class Sequence:
    """The positions received from one process; they count from 1."""

    __slots__ = ("_blurred", "_earlier", "_high", "_low")

    def __init__(self) -> None:
        # Invariant: disjoint, not adjacent, ascending, all below `_low`.
        self._earlier: list[tuple[int, int]] = []
        # Invariant: the newest interval; empty (`_high` < `_low`) before the first.
        self._low = 1
        self._high = 0
        # Invariant: gaps up to here have been forgotten for want of room.
        self._blurred = 0

    def take(self, seq: int) -> bool:
        """Receive `seq`; say whether it had not been received before."""
        if seq == self._high + 1:
            self._high = seq
            return True
        if seq > self._high:
            self._jump(seq)
            return True
        if seq >= self._low:
            return False
        return self._insert(seq)

    def blurred_at(self, seq: int) -> bool:
        """Say whether gaps at or after `seq` have been forgotten."""
        return seq <= self._blurred

    @property
    def received(self) -> int:
        """How many positions have been received."""
        earlier = sum(high - low + 1 for low, high in self._earlier)
        return earlier + self._high - self._low + 1

    @property
    def unbroken_from(self) -> int:
        """Position from which on everything up to the newest has been received."""
        return self._low

    @property
    def complete(self) -> bool:
        """Whether nothing is missing up to the newest position."""
        return self._low <= 1 and not self._earlier and not self._blurred

    def gaps(self, first: int = 1, last: int | None = None) -> list[tuple[int, int]]:
        """Return the missing ranges between `first` and `last`, ends included.

        Args:
            first: Where to begin.
            last: Where to end; the newest position by default.
        """
        end = self._high if last is None else last
        found: list[tuple[int, int]] = []
        expected = first
        for low, high in [*self._earlier, (self._low, self._high)]:
            if low > expected and expected <= end:
                found.append((expected, min(low - 1, end)))
            expected = max(expected, high + 1)
        if expected <= end:
            found.append((expected, end))
        return found

    def _jump(self, seq: int) -> None:
        if self._low <= self._high:
            self._earlier.append((self._low, self._high))
        self._low = self._high = seq
        if len(self._earlier) > MAX_INTERVALS:
            self._blur()

    def _blur(self) -> None:
        """Forget the oldest gap; nothing there counts as unbroken from now on."""
        (low, _), (_, high) = self._earlier[:2]
        self._earlier[:2] = [(low, high)]
        self._blurred = high

    def _insert(self, seq: int) -> bool:
        """Receive a late position: it fills a gap, extends an interval or is alone."""
        earlier = self._earlier
        after = bisect_right(earlier, seq, key=lambda interval: interval[0])
        if after and seq <= earlier[after - 1][1]:
            return False
        low = high = seq
        if after and earlier[after - 1][1] == seq - 1:
            after -= 1
            low = earlier.pop(after)[0]
        if after < len(earlier) and earlier[after][0] == seq + 1:
            high = earlier.pop(after)[1]
        if after == len(earlier) and self._low == seq + 1:
            self._low = low
            return True
        earlier.insert(after, (low, high))
        if len(earlier) > MAX_INTERVALS:
            self._blur()
        return True
