"""Answers of stores: there already, or brought by a thread that does the work.

A commit that was asked for happens, whoever waits for it and however often that one is
cancelled. So these answers cannot be cancelled, and `finished` waits for them.
"""

import contextvars
import queue
import threading
import weakref
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeVar, cast

from tenure.runtime import _spawn

R = TypeVar("R")
_Callback = Callable[[Any], object]


class Known(Awaitable[R]):
    """An answer that is there already; awaiting it takes no turn of the loop.

    Args:
        answer: The answer.
    """

    __slots__ = ("answer",)

    def __init__(self, answer: R) -> None:
        self.answer: Final = answer

    def __await__(self) -> Generator[None, None, R]:
        return self.answer
        yield


class Answer(Awaitable[R]):
    """An answer that any thread may bring and that nobody can cancel.

    To tasks it is a future; who waits for it and is cancelled is so once it is there.
    A future of asyncio's own has to be settled in the loop's thread, which then wakes
    who waits in its next turn. This one has them woken by whoever settles it: one turn
    instead of two, for every superstep that is saved.

    Invariant: what it stands for happens whether anybody waits or not, and it is always
    settled, once.

    Args:
        loop: The event loop of those who wait for it.
    """

    _asyncio_future_blocking = False

    def __init__(self, loop: _spawn.Loop) -> None:
        self._loop: Final = loop
        # Held where a thread settles while the loop's thread begins to wait.
        self._lock: Final = threading.Lock()
        self._waiting: list[tuple[_Callback, contextvars.Context | None]] = []
        self._done = False
        self._value: Any = None
        self.error: BaseException | None = None

    def settle(self, value: object, error: BaseException | None = None) -> None:
        """Bring the answer, from any thread.

        Args:
            value: The answer.
            error: What is raised instead of it.
        """
        self._value, self.error = value, error
        with self._lock:
            self._done = True
            waiting, self._waiting = self._waiting, []
        for callback, context in waiting:
            _spawn.call_soon(self._loop, callback, self, context=context)

    def __await__(self) -> Generator[Any, None, R]:
        if not self._done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    # What event loops, and those who wait with a time limit, ask of a future.

    def get_loop(self) -> _spawn.Loop:
        """Return the event loop of those who wait."""
        return self._loop

    def done(self) -> bool:
        """Say whether the answer is there."""
        return self._done

    def cancelled(self) -> bool:
        """Say no."""
        return False

    def cancel(self, msg: Any = None) -> bool:  # noqa: ANN401 - as futures do
        """Refuse; the task that waits for it is marked by its event loop."""
        del msg
        return False

    def result(self) -> R:
        """Return the answer, or raise what came instead; it has to be there."""
        if self.error is not None:
            raise self.error
        return cast("R", self._value)

    def exception(self) -> BaseException | None:
        """Return what came instead of an answer; that has to be known."""
        return self.error

    def add_done_callback(
        self, fn: _Callback, *, context: contextvars.Context | None = None
    ) -> None:
        """Have the loop call `fn` with this once the answer is there."""
        with self._lock:
            if not self._done:
                self._waiting.append((fn, context))
                return
        _spawn.call_soon(self._loop, fn, self, context=context)

    def remove_done_callback(self, fn: _Callback) -> int:
        """Do not call `fn`; return how often it would have been."""
        with self._lock:
            left = [one for one in self._waiting if one[0] != fn]
            removed = len(self._waiting) - len(left)
            self._waiting = left
        return removed


async def finished(asked: Awaitable[R]) -> tuple[R, BaseException | None]:
    """Wait for an answer, come what may.

    What was asked for happens even if the caller is cancelled meanwhile, and the caller
    has to know of it. So it gets both: the answer, and the cancellation to raise once
    the answer has been taken in.

    Args:
        asked: What brings the answer. It is not cancelled.

    Returns:
        The answer, and the cancellation that came meanwhile, if one did.

    Raises:
        BaseException: What was asked for failed; or the cancellation that came
            meanwhile, because of which nobody waits for that failure.
    """
    if isinstance(asked, Known):
        return asked.answer, None
    answer: Answer[R] = asked if isinstance(asked, Answer) else _answer_of(asked)
    interruption: BaseException | None = None
    try:
        await answer
    except _spawn.CANCELLED as exc:
        # Whoever cancels sets a mark only; it is raised here, when the answer is there.
        if exc is not answer.error:
            interruption = exc
    except Exception as exc:
        if exc is not answer.error:
            raise
    if answer.error is not None and interruption is not None:
        raise interruption from answer.error
    return answer.result(), interruption


def _answer_of(asked: Awaitable[R]) -> Answer[R]:
    """Return what `asked` brings, as an answer that nobody can cancel."""
    future = _spawn.future_of(asked)
    answer: Answer[R] = Answer(future.get_loop())

    def settle(done: Any) -> None:  # noqa: ANN401 - the future, as the loop hands it over
        try:
            answer.settle(done.result())
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            answer.settle(None, exc)

    future.add_done_callback(settle)
    return answer


class LaterError(Exception):
    """Work could not be done yet: it is done again, after what waits already."""


class Worker:
    """A thread that does one thing after the other, and ends when nobody holds this.

    Args:
        name: Name of the thread, for debuggers.
    """

    def __init__(self, name: str) -> None:
        self._name: Final = name
        self._work: Final[queue.SimpleQueue[_Work | None]] = queue.SimpleQueue()
        self._starting: Final = threading.Lock()
        self._thread: threading.Thread | None = None
        self._finalizer = weakref.finalize(self, self._work.put, None)
        # At the exit of the interpreter others may have something to ask yet.
        self._finalizer.atexit = False

    def ask(self, work: Callable[[], R]) -> Awaitable[R]:
        """Have it do `work`; what is returned brings the answer.

        Call it in a running event loop. The work is done whether anybody waits or not.

        Args:
            work: What to do. If it raises `LaterError`, others come first, and then it
                is done again.
        """
        if self._thread is None:
            self._start()
        answer: Answer[R] = Answer(_spawn.this_loop())
        self._work.put((work, answer))
        return answer

    def leave(self, work: Callable[[], object], seconds: float = 0.0) -> None:
        """Have it do `work`, which brings no answer, if it has ever done anything.

        May be called from any thread and from a finalizer.

        Args:
            work: What to do after all that was asked for.
            seconds: For how long to wait until it is done.
        """
        if self._thread is None:
            return
        done = threading.Event()
        self._work.put((work, done))
        if seconds:
            done.wait(seconds)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                # A daemon: at the exit of the interpreter it finishes nothing that
                # anybody still waits for.
                self._thread = threading.Thread(
                    target=_do_all, args=(self._work,), name=self._name, daemon=True
                )
                self._thread.start()


class Inline:
    """Does everything at once, in the thread that asks; for one caller at a time."""

    def __init__(self) -> None:
        self._doing: Final = threading.Lock()

    def ask(self, work: Callable[[], R]) -> Awaitable[R]:
        """Do `work` and return its answer.

        Args:
            work: What to do. What it raises is raised here.
        """
        with self._doing:
            return Known(work())

    def leave(self, work: Callable[[], object], seconds: float = 0.0) -> None:
        """Do `work`, unless another thread is doing something and goes on doing it.

        Args:
            work: What to do.
            seconds: For how long to wait for other threads.
        """
        if self._doing.acquire(timeout=seconds):
            try:
                work()
            finally:
                self._doing.release()


_Work = tuple[Callable[[], Any], Answer[Any] | threading.Event]


def _do_all(work: "queue.SimpleQueue[_Work | None]") -> None:
    while (item := work.get()) is not None:
        what, answer = item
        result: Any = None
        error: BaseException | None = None
        try:
            result = what()
        except LaterError:
            work.put(item)
            del item, what, answer
            continue
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            error = exc
        if isinstance(answer, threading.Event):
            answer.set()
        else:
            answer.settle(result, error)
        # Nothing is held on to while waiting for the next one.
        del item, what, answer, result, error
