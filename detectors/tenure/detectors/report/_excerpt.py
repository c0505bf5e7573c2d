"""Which rows of a long timeline are worth a reader's time."""

from collections.abc import Iterator

from tenure.detectors.report._shapes import Section


def excerpt(section: Section, *, longest: int, around: int) -> Iterator[range]:
    """Return the rows to show, in order, neither touching nor overlapping.

    A timeline that is not too long is shown whole. Otherwise what surrounds findings
    is, from culprit to victim; without findings, how it began and how it ended.

    Args:
        section: The timeline.
        longest: How many rows are not too many.
        around: How many rows are shown before and after what matters.
    """
    count = len(section.rows)
    if count <= longest:
        yield range(count)
        return
    low, high = 0, 0
    for place in _places(section):
        if place - around > high:
            if high > low:
                yield range(low, high)
            low = place - around
        high = max(high, min(place + around + 1, count))
    yield range(low, high)


def _places(section: Section) -> list[int]:
    found = {row.place for row in section.rows if getattr(row, "findings", ())}
    found |= {arrow.to_place for arrow in section.arrows}
    return sorted(found or {0, len(section.rows) - 1})
