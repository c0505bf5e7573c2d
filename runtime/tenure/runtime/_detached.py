"""Runs that go on without a consumer, and whoever comes back to read them.

The run never waits for a reader. It keeps its newest events, as many as it was told to;
a reader that is further behind than that is told so, and where to go on.
"""

from collections import OrderedDict, deque
from types import TracebackType
from typing import Final, Self

from tenure.runtime import _spawn
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import WorkflowEvent
from tenure.runtime._run import Run, RunResult
from tenure.runtime._stream_buffer import Entry
from tenure.runtime.errors import (
    EventsMissedError,
    RunNotFoundError,
    StreamConsumedError,
)

KEPT_RUNS: Final = 100
"""How many ended runs may still be attached to."""


class ReplayBuffer:
    """The newest events of a run, for any number of readers of one loop.

    Args:
        size: How many events are kept.
    """

    __slots__ = ("_entries", "_readers", "closed")

    def __init__(self, size: int) -> None:
        self._entries: Final[deque[Entry]] = deque(maxlen=size)
        self._readers: Final = _spawn.Signal()
        self.closed = False

    @property
    def full(self) -> bool:
        """Never: the oldest event makes room."""
        return False

    def put(self, entry: Entry) -> None:
        """Add an event, and wake all readers."""
        self._entries.append(entry)
        self._readers.wake()

    def close(self) -> None:
        """Say that no event follows, and wake all readers."""
        self.closed = True
        self._readers.wake()

    async def room(self) -> None:
        """Return at once: the run never waits."""

    def unread_for(self) -> float:
        """Return 0: nobody has to read."""
        return 0.0

    @property
    def first(self) -> int:
        """Number of the oldest event that is kept."""
        return self._entries[0][1] if self._entries else 1

    async def after(self, seq: int) -> Entry | None:
        """Wait for the event that follows number `seq`; `None` if none follows."""
        while not self._entries or self._entries[-1][1] <= seq:
            if self.closed:
                return None
            await self._readers.wait()
        return self._entries[seq + 1 - self.first] if seq + 1 >= self.first else None


class AttachedStream:
    """Events of a run that goes on by itself. Leaving it leaves the run alone.

    Used by one task; a run may have several.

    Args:
        run: The run.
        buffer: Its events.
        after: Number of the last event that the reader has had.
    """

    __slots__ = ("_at_end", "_buffer", "_run", "_seq")

    def __init__(self, run: Run, buffer: ReplayBuffer, after: int) -> None:
        self._run: Final = run
        self._buffer: Final = buffer
        self._seq = after
        self._at_end = False

    def __repr__(self) -> str:
        return f"<AttachedStream {self._run.run_id} after event {self._seq}>"

    @property
    def run_id(self) -> RunId:
        """Identity of the run."""
        return self._run.run_id

    @property
    def epoch(self) -> Epoch:
        """Epoch of the run; 0 while it waits for its turn, or for its store."""
        return self._run.epoch

    @property
    def seq(self) -> int:
        """Number of the last event that was read: where to attach again."""
        return self._seq

    def __aiter__(self) -> Self:
        if self._at_end:
            raise StreamConsumedError(self.run_id)
        return self

    async def __anext__(self) -> WorkflowEvent:
        """Wait for the next event.

        Raises:
            StopAsyncIteration: The run has ended.
            EventsMissedError: The next event is not kept any more.
            EventLoopError: The run is driven by another loop, or by one that is closed.
        """
        if not self._buffer.closed:
            self._run.insist_on_loop()
        entry = await self._buffer.after(self._seq)
        if entry is None:
            if self._seq + 1 < self._buffer.first:
                raise EventsMissedError(self.run_id, self._seq, self._buffer.first)
            self._at_end = True
            raise StopAsyncIteration
        kind, self._seq, facts = entry
        return kind(self._run.run_id, self._run.epoch, self._seq, *facts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Leave the run alone."""

    async def result(self) -> RunResult:
        """Wait until the run has ended, and return what it has brought.

        Raises:
            WorkflowError: It has failed, or was superseded.
            EventLoopError: As for `__anext__`.
        """
        await _ended(self._run)
        return self._run.result()


class DetachedRuns:
    """The runs of a workflow that go on by themselves, and the newest that have ended.

    Used in one event loop.
    """

    def __init__(self) -> None:
        self._runs: Final[OrderedDict[RunId, tuple[Run, ReplayBuffer]]] = OrderedDict()

    def add(self, run: Run, buffer: ReplayBuffer) -> None:
        """Keep a run that has been started."""
        self._runs[run.run_id] = (run, buffer)
        ended = [key for key, (one, _) in self._runs.items() if one.ended]
        for key in ended[: max(0, len(ended) - KEPT_RUNS)]:
            del self._runs[key]

    def attach(self, run_id: str, after: int) -> AttachedStream:
        """Return a stream of a run's events after number `after`.

        Raises:
            RunNotFoundError: There is no such run, or it ended long ago.
            ValueError: Events count from 1.
        """
        if after < 0:
            raise ValueError(f"after={after}: events count from 1, so 0 is before all")
        run, buffer = self._find(run_id)
        return AttachedStream(run, buffer, after)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run and wait for its clean-up.

        Raises:
            RunNotFoundError: There is no such run, or it ended long ago.
            EventLoopError: This is not the loop that drives it.
        """
        run, _ = self._find(run_id)
        if not run.ended:
            run.insist_on_loop()
            run.cancel()
        await _ended(run)

    def _find(self, run_id: str) -> tuple[Run, ReplayBuffer]:
        try:
            return self._runs[RunId(run_id)]
        except KeyError:
            raise RunNotFoundError(run_id) from None


async def _ended(run: Run) -> None:
    """Wait until a run has ended."""
    if run.task is not None and not run.ended:
        run.insist_on_loop()
        await _spawn.ended(run.task)
