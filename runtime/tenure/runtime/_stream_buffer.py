"""Events on their way from a run to its consumer."""

import time
from collections import deque
from collections.abc import Generator
from typing import Any, Final, Protocol

from tenure.runtime import _spawn
from tenure.runtime._events import WorkflowEvent

Entry = tuple[type[WorkflowEvent], int, tuple[Any, ...]]
"""An event that nobody has looked at yet: class, seq, what it says."""


class EventBuffer:
    """A bounded buffer between a run and the consumer of its stream.

    Used by tasks of one loop. The bound holds between supersteps and at every awaited
    output; a superstep's own notices may exceed it, by as many as it has executors.

    Args:
        size: How many events may wait.
    """

    __slots__ = (
        "_entries",
        "_full_since",
        "_readers",
        "_size",
        "_writers",
        "closed",
    )

    def __init__(self, size: int) -> None:
        self._size: Final = size
        self._entries: Final[deque[Entry]] = deque()
        self._readers: Final = _spawn.Signal()
        self._writers: Final = _spawn.Signal()
        self._full_since: float | None = None
        self.closed = False

    @property
    def full(self) -> bool:
        """Whether the run has to wait for the consumer."""
        return len(self._entries) >= self._size

    def put(self, entry: Entry) -> None:
        """Add an event, and wake the consumer if it waits."""
        self._entries.append(entry)
        self._readers.wake()
        if self._full_since is None and self.full:
            self._full_since = time.monotonic()

    def close(self) -> None:
        """Say that no event follows, and wake everybody."""
        self.closed = True
        self._readers.wake()
        self._writers.wake()

    async def take(self) -> Entry | None:
        """Wait for the next event; `None` once there is none and none follows."""
        while not self._entries:
            if self.closed:
                return None
            await self._readers.wait()
        entry = self._entries.popleft()
        self._full_since = time.monotonic() if self.full else None
        self._writers.wake()
        return entry

    async def room(self) -> None:
        """Wait until the consumer has made room, or has left."""
        while self.full and not self.closed:
            await self._writers.wait()

    def unread_for(self) -> float:
        """Return for how many seconds it has been full and nobody has read."""
        if self._full_since is None:
            return 0.0
        return time.monotonic() - self._full_since


class Waiting(Protocol):
    """What a run may have to wait for."""

    async def room(self) -> None:
        """Wait until there is room."""
        ...


class Room:
    """Awaitable that waits for room in a buffer; dropping it unawaited is harmless.

    Args:
        buffer: The buffer.
    """

    __slots__ = ("_buffer",)

    def __init__(self, buffer: Waiting) -> None:
        self._buffer: Final = buffer

    def __await__(self) -> Generator[Any, None, None]:
        return self._buffer.room().__await__()
