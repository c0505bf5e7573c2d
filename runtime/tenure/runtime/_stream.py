"""What `stream` returns: a class, never a generator.

An async generator that is dropped is finalized by the event loop some turns later, in a
copy of whatever context was current then, and its clean-up runs in that task: that is
how one run's clean-up comes to act on another's. A stream here only reads a buffer. The
run has a task of its own, and dropping the stream does nothing but tell that task.
"""

import weakref
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self

from tenure.instrumentation.operations import Trigger
from tenure.runtime import _spawn
from tenure.runtime._endings import current_trigger, watch_endings
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import WorkflowEvent
from tenure.runtime._handle import begin
from tenure.runtime._run import Run, RunResult
from tenure.runtime._stream_buffer import EventBuffer
from tenure.runtime.errors import EventLoopError, StreamConsumedError


class RunStream:
    """The events of one run, as they happen.

    Use it as an async context manager, whose end is the end of the run, or iterate it
    as it is: breaking out and dropping it ends the run as well. Used by one task.

    Args:
        run: The run.
        buffer: Its buffer.
    """

    __slots__ = ("__weakref__", "_buffer", "_finalizer", "_iterated", "_run")

    def __init__(self, run: Run, buffer: EventBuffer) -> None:
        self._run: Final = run
        self._buffer: Final = buffer
        self._iterated = False
        # Invariant: nothing that the run can reach refers to this stream, unless its
        # consumer waits for an event; so dropping it is noticed.
        self._finalizer: Final = weakref.finalize(self, _dropped, run)
        watch_endings()

    def __repr__(self) -> str:
        return f"<RunStream {self._run.run_id} of {self._run.instance!r}>"

    @property
    def run_id(self) -> RunId:
        """Identity of the run."""
        return self._run.run_id

    @property
    def epoch(self) -> Epoch:
        """Epoch of the run; 0 while it waits for its turn, or for its store."""
        return self._run.epoch

    def result(self) -> RunResult:
        """Return what the run has brought, once it has ended.

        Raises:
            EventLoopError: It has not ended yet.
            WorkflowError: It has failed, or was superseded.
        """
        if not self._run.ended:
            raise EventLoopError(self.run_id, "it has not ended yet")
        return self._run.result()

    def __aiter__(self) -> Self:
        # Whoever has broken out of it may read on; at its end nothing follows.
        if self._iterated and not self._finalizer.alive:
            raise StreamConsumedError(self.run_id)
        self._iterated = True
        return self

    def __anext__(self) -> Coroutine[Any, Any, WorkflowEvent]:
        """Wait for the next event.

        Raises:
            StopAsyncIteration: The run has ended.
            WorkflowError: It has failed, or was superseded; raised once, at the end.
            EventLoopError: The run is driven by another loop, or by one that is closed.
        """
        self._begin()
        # Not a coroutine of this object: whoever cancels a reader may keep a traceback
        # for long, and with it the frame; the stream would not be missed until then.
        return _next_event(self._run, self._buffer, self._finalizer)

    async def __aenter__(self) -> Self:
        self._begin()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def cancel(self) -> None:
        """Cancel the run and wait for its clean-up; the stream then tells its end."""
        run = self._run
        if run.ended:
            return
        self._begin()
        run.cancel()
        if run.task is not None:
            await _spawn.ended(run.task)

    async def aclose(self) -> None:
        """End the run and wait for its clean-up; after it has ended, do nothing."""
        run = self._run
        self._finalizer.detach()
        if run.ended:
            return
        run.abandon(Trigger.CLOSE)
        if run.task is None:
            run.instance.left(run)
        elif run.loop is _spawn.running_loop():
            await _spawn.ended(run.task)

    def _begin(self) -> None:
        run = self._run
        if run.task is None:
            if not run.ended:
                begin(run)
        else:
            run.insist_on_loop()


async def _next_event(
    run: Run, buffer: EventBuffer, finalizer: "weakref.finalize[..., Any]"
) -> WorkflowEvent:
    entry = await buffer.take()
    if entry is None:
        # Only the first who comes to the end of the run is raised its error.
        if finalizer.detach() is not None and run.error is not None:
            raise run.error
        raise StopAsyncIteration
    kind, seq, facts = entry
    return kind(run.run_id, run.epoch, seq, *facts)


def _dropped(run: Run) -> None:
    """Take note that a stream is no more; in a finalizer, on any thread."""
    trigger = current_trigger()
    run.abandon(trigger)
    if trigger is Trigger.SHUTDOWN:
        # Not a collection but the interpreter's orderly exit: no code is interrupted.
        run.instance.lost(run)
