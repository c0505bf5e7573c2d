"""What a superstep changes. Pure data."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tenure.runtime._checkpoint import EMPTY, PendingRequest


class Change(NamedTuple):
    """What a superstep changes, once it is committed.

    Attributes:
        writes: Each key and its value, or `DELETED`.
        raised: Requests that executors made.
        settled: Ids of requests that were answered or withdrawn.
    """

    writes: Mapping[str, Any] = EMPTY
    raised: tuple[PendingRequest, ...] = ()
    settled: tuple[str, ...] = ()


UNCHANGED: Final = Change()
"""Nothing changes."""
