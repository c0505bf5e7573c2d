"""Tasks, wake-ups and the event loop: the only module that names asyncio.

A run lives in a task of its own, which a plain task group cannot hold: it must outlive
the call that started it and be cancelled from any thread. Executors that run side by
side are plain tasks too, because an anyio task group costs four times as much a child
(docs/decisions/0003-native-tasks.md). Whatever an executor itself does, anyio included,
runs in these tasks as in any others.
"""

import asyncio
import contextvars
import threading
from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Sequence,
)
from typing import Any, Final, TypeVar

R = TypeVar("R")

CANCELLED: Final = asyncio.CancelledError
Loop = asyncio.AbstractEventLoop
Task = asyncio.Task

_LOOK: Final = 0.5
"""Seconds after which a thread that waits looks whether the loop still runs."""

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


def this_loop() -> Loop:
    """Return the event loop that runs in this thread.

    Raises:
        RuntimeError: None does.
    """
    return asyncio.get_running_loop()


def call_soon(
    loop: Loop,
    callback: Callable[..., object],
    *arguments: object,
    context: contextvars.Context | None = None,
) -> bool:
    """Have `loop` call `callback`, from any thread, also from a finalizer.

    Returns:
        Whether the loop will; a closed one will not.
    """
    try:
        loop.call_soon_threadsafe(callback, *arguments, context=context)
    except RuntimeError:
        return False
    return True


def being_cancelled() -> bool:
    """Say whether somebody cancelled the current task."""
    return cancellations() > 0


def cancellations() -> int:
    """Return how often the current task was cancelled and nobody took it back."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def take_back_cancellations(count: int) -> None:
    """Have `count` cancellations of the current task count no more.

    Args:
        count: How many its caller has made, and dealt with.
    """
    task = asyncio.current_task()
    for _ in range(count):
        assert task is not None
        task.uncancel()


def wait_for(loop: Loop, condition: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Wait in a thread of one's own, while `loop` waits on its behalf.

    A loop that has stopped ends it: nobody would ever wake the thread.

    Args:
        loop: The loop of another thread.
        condition: What it waits for.
    """
    met = threading.Event()

    async def wait() -> None:
        try:
            await condition()
        finally:
            met.set()

    if loop.is_running() and call_soon(loop, lambda: start_errand(wait())):
        while not met.wait(_LOOK) and loop.is_running():
            pass


async def let_others_run() -> None:
    """Give every other task of the loop a turn."""
    await asyncio.sleep(0)


async def ended(task: Task[None]) -> None:
    """Wait until `task` has ended, whatever came of it; never cancel it."""
    if not task.done():
        await asyncio.wait([task])


def future_of(asked: Awaitable[R]) -> asyncio.Future[R]:
    """Return what says when `asked` is done, and have the loop work on it."""
    return asyncio.ensure_future(asked)


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
