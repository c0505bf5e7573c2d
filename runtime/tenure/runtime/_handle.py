"""What `run` returns: something to await, once."""

import warnings
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Final

from tenure.instrumentation.operations import Trigger
from tenure.runtime import _spawn
from tenure.runtime._driver import drive
from tenure.runtime._endings import current_trigger, watch_endings
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._run import Run, RunResult
from tenure.runtime.errors import EventLoopError


def begin(run: Run) -> _spawn.Task[None]:
    """Give a run its task.

    Args:
        run: A run that has none.

    Raises:
        EventLoopError: No event loop runs in this thread.
    """
    loop = _spawn.running_loop()
    if loop is None:
        run.abandon(Trigger.ERROR)
        run.instance.left(run)
        raise EventLoopError(run.run_id, "no asyncio event loop runs in this thread")
    run.loop = loop
    task = _spawn.start_task(drive(run), run.context, run.run_id)
    run.start(task)
    return task


class RunHandle(Coroutine[Any, Any, RunResult]):
    """A run that has claimed its instance and starts when it is awaited.

    For asyncio it is a coroutine. One that is dropped without having been awaited gives
    its claim back, with a warning.

    Args:
        run: The run.
    """

    __slots__ = ("__weakref__", "_body", "_run", "_used")

    def __init__(self, run: Run) -> None:
        self._run: Final = run
        self._body: Coroutine[Any, Any, RunResult] | None = None
        self._used = False
        watch_endings()

    def __repr__(self) -> str:
        return f"<RunHandle {self._run.run_id} of {self._run.instance!r}>"

    @property
    def run_id(self) -> RunId:
        """Identity of the run."""
        return self._run.run_id

    @property
    def epoch(self) -> Epoch:
        """Epoch of the run; 0 while it waits for its turn, or for its store."""
        return self._run.epoch

    def __await__(self) -> Generator[Any, None, RunResult]:
        # A generator, so that one which is made and dropped has started nothing.
        return (yield from self._start().__await__())

    def send(self, value: Any) -> Any:  # noqa: ANN401 - as coroutines do
        """Go on with the run; event loops call this."""
        if self._body is None:
            self._body = self._start()
        return self._body.send(value)

    def throw(
        self,
        typ: Any,  # noqa: ANN401 - as coroutines do
        val: Any = None,  # noqa: ANN401
        tb: TracebackType | None = None,
    ) -> Any:  # noqa: ANN401
        """Raise an exception where the run's consumer waits; event loops call this."""
        if self._body is None:
            self._body = self._start()
            # A coroutine that has not begun runs none of its own clean-up.
            self._run.abandon(Trigger.CLOSE)
            self._run.instance.left(self._run)
        if val is None and tb is None:
            return self._body.throw(typ)
        return self._body.throw(typ, val, tb)

    def close(self) -> None:
        """Give up: the claim is given back, and a run that has started is cancelled."""
        if self._body is not None:
            self._body.close()
        elif not self._used:
            self._used = True
            self._run.abandon(Trigger.CLOSE)
            self._run.instance.left(self._run)

    def _start(self) -> Coroutine[Any, Any, RunResult]:
        if self._used:
            raise RuntimeError(f"run {self.run_id} has been awaited already")
        self._used = True
        return _bring_result(self._run)

    def __del__(self) -> None:
        if self._used or self._run.ended:
            return
        self._run.abandon(current_trigger())
        warnings.warn(
            f"run {self._run.run_id} of {self._run.instance!r} was never awaited; it "
            f"gave its claim back",
            RuntimeWarning,
            stacklevel=2,
            source=self,
        )


async def _bring_result(run: Run) -> RunResult:
    if not run.ended:
        try:
            # Cancelling the caller cancels the run's task, and waits for its clean-up.
            await begin(run)
        except GeneratorExit:
            trigger = current_trigger()
            run.abandon(Trigger.CLOSE if trigger is Trigger.REFCOUNT else trigger)
            raise
    return run.result()
