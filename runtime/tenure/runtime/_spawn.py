"""Tasks, wake-ups and the event loop: the only module that names asyncio.

A run lives in a task of its own, which a plain task group cannot hold: it must outlive
the call that started it and be cancelled from any thread. Executors that run side by
side are plain tasks too, because an anyio task group costs four times as much a child
(docs/decisions/0003-native-tasks.md). Whatever an executor itself does, anyio included,
runs in these tasks as in any others.
"""

import asyncio
import contextvars
import queue
import threading
import weakref
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Sequence,
)
from functools import partial
from typing import Any, Final, TypeVar

R = TypeVar("R")

CANCELLED: Final = asyncio.CancelledError
Loop = asyncio.AbstractEventLoop
Task = asyncio.Task

# Invariant: holds every task of a live run. The loop itself keeps tasks weakly, so a
# run that only waits for its own objects would otherwise be collected as garbage.
_alive: set[asyncio.Task[None]] = set()


def running_loop() -> Loop | None:
    """Return the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class _Turn:
    """Awaitable that gives up the rest of a task's turn."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield


BEGINNING: Final = _Turn()
"""What the body of a task awaits first, inside the `try` that ends it."""


def start_task(
    body: Coroutine[Any, Any, None], context: contextvars.Context, name: str
) -> Task[None]:
    """Start `body` as a task that is kept until it calls `forget`.

    A task that is cancelled before its first step never enters its coroutine, so none
    of its clean-up runs. Here the body is entered at once, up to `BEGINNING`: from then
    on cancellation is raised inside it.

    Args:
        body: What the task does; it awaits `BEGINNING` before anything else.
        context: The context it runs in, from there on.
        name: Name of the task, for debuggers.
    """
    body.send(None)
    task = asyncio.get_running_loop().create_task(body, name=name, context=context)
    _alive.add(task)
    return task


def forget(task: Task[None] | None) -> None:
    """Keep `task` no longer: its body is about to end."""
    if task is not None:
        _alive.discard(task)


def call_soon(loop: Loop, callback: Callable[[], object]) -> bool:
    """Have `loop` call `callback`, from any thread, also from a finalizer.

    Returns:
        Whether the loop will; a closed one will not.
    """
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return False
    return True


def being_cancelled() -> bool:
    """Say whether somebody cancelled the current task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def let_others_run() -> None:
    """Give every other task of the loop a turn."""
    await asyncio.sleep(0)


async def ended(task: Task[None]) -> None:
    """Wait until `task` has ended, whatever came of it; never cancel it."""
    if not task.done():
        await asyncio.wait([task])


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
    future: asyncio.Future[R]
    waiter: asyncio.Future[Any]
    if isinstance(asked, _Steadfast):
        future = waiter = asked
    else:
        future = asyncio.ensure_future(asked)
        waiter = _Steadfast(loop=future.get_loop())
        future.add_done_callback(waiter.wake)
    interruption: BaseException | None = None
    try:
        await waiter
    except CANCELLED as exc:
        # Whoever cancels sets a mark only; it is raised here, when the answer is there.
        if not future.cancelled():
            interruption = exc
    except Exception as exc:
        if future.exception() is not exc:
            raise
    error = None if future.cancelled() else future.exception()
    if error is not None and interruption is not None:
        raise interruption from error
    return future.result(), interruption


class _Steadfast(asyncio.Future[R]):
    """A future that nobody can cancel: who waits for it is cancelled once it is done.

    Invariant: what it stands for happens whether anybody waits or not, and its result
    is always set.
    """

    def cancel(self, msg: Any = None) -> bool:  # noqa: ANN401 - as futures do
        """Refuse; the task that waits for it is marked by its event loop."""
        del msg
        return False

    def wake(self, _of: object) -> None:
        """End the wait for something else."""
        self.set_result(None)  # type: ignore[arg-type]

    def settle(self, answer: Any, error: BaseException | None) -> None:  # noqa: ANN401
        """Take the answer, in the loop's thread."""
        if error is None:
            self.set_result(answer)
        else:
            self.set_exception(error)


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

    def ask(self, work: Callable[[], R]) -> Awaitable[R]:
        """Have it do `work`; what is returned brings the answer.

        Call it in a running event loop. The work is done whether anybody waits or not.

        Args:
            work: What to do.
        """
        if self._thread is None:
            self._start()
        answer: _Steadfast[R] = _Steadfast(loop=asyncio.get_running_loop())
        self._work.put((work, answer))
        return answer

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


_Work = tuple[Callable[[], Any], "_Steadfast[Any]"]


def _do_all(work: "queue.SimpleQueue[_Work | None]") -> None:
    while (item := work.get()) is not None:
        what, answer = item
        result: Any = None
        error: BaseException | None = None
        try:
            result = what()
        except BaseException as exc:  # noqa: BLE001 - raised where it is waited for
            error = exc
        call_soon(answer.get_loop(), partial(answer.settle, result, error))
        # Nothing is held on to while waiting for the next one.
        del item, what, answer, result, error


class Timer:
    """Calls something later in the running loop, unless it is stopped before.

    Args:
        seconds: After how many seconds.
        callback: What is called.
    """

    __slots__ = ("_handle",)

    def __init__(self, seconds: float, callback: Callable[[], object]) -> None:
        self._handle: Final = asyncio.get_running_loop().call_later(seconds, callback)

    def stop(self) -> None:
        """Call it no more."""
        self._handle.cancel()


def start_errand(body: Coroutine[Any, Any, None]) -> None:
    """Start a short task that nobody waits for; it must not raise."""
    task = asyncio.get_running_loop().create_task(body)
    _alive.add(task)
    task.add_done_callback(_alive.discard)


async def run_together(bodies: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run `bodies` side by side and wait for all of them.

    The first failure cancels the others, which are awaited too; so does cancellation
    from outside.

    Args:
        bodies: What to run, in order; one at least.

    Raises:
        BaseException: What the first of those failed with that failed before the
            others were cancelled.
    """
    loop = asyncio.get_running_loop()
    gate: asyncio.Future[None] = loop.create_future()
    waiting = 0
    failed = False

    def note(task: Task[None]) -> None:
        nonlocal waiting, failed
        waiting -= 1
        if task.cancelled() or task.exception() is not None:
            failed = True
        if (failed or not waiting) and not gate.done():
            gate.set_result(None)

    tasks = [loop.create_task(body) for body in bodies]
    waiting = len(tasks)
    for task in tasks:
        task.add_done_callback(note)
    try:
        await gate
    except BaseException:
        await _cancel_all(tasks)
        raise
    if failed:
        finished = [task for task in tasks if task.done()]
        await _cancel_all(tasks)
        for task in finished:
            task.result()


async def _cancel_all(tasks: Sequence[Task[None]]) -> None:
    """Cancel `tasks` and wait until all have ended, however often we are cancelled."""
    for task in tasks:
        task.cancel()
    interrupted: BaseException | None = None
    while pending := [task for task in tasks if not task.done()]:
        try:
            await asyncio.wait(pending)
        except CANCELLED as exc:
            interrupted = exc
            for task in pending:
                task.cancel()
    for task in tasks:
        if not task.cancelled():
            task.exception()  # retrieved, or the loop would report it as forgotten
    if interrupted is not None:
        raise interrupted


class Signal:
    """Wakes whoever waits for it; used by tasks of one loop."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next `wake`."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def wake(self) -> None:
        """Wake all who wait now."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
