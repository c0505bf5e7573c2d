"""Tasks side by side: one failure ends all, and nothing is left running."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tenure.runtime import _spawn
from tenure.runtime._spawn import Signal, run_together


class BoomError(Exception):
    pass


class Abort(BaseException):
    """What is no `Exception` ends everything just as well."""


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    left = {task for task in asyncio.all_tasks() - before if not task.done()}
    left.discard(asyncio.current_task())  # type: ignore[arg-type]
    assert left == set()


class Child:
    """A body that waits to be told, and cleans up as slowly as the test wants."""

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.clean = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        try:
            self.began.set()
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            await self.clean.wait()
            raise
        finally:
            self.ended = True


async def failing(error: BaseException, after: Awaitable[object]) -> None:
    await after
    raise error


async def test_all_bodies_run_side_by_side_and_are_awaited() -> None:
    children = [Child() for _ in range(3)]
    together = asyncio.create_task(run_together(child.run() for child in children))
    for child in children:
        await child.began.wait()
    for child in reversed(children):
        assert not together.done()
        child.go.set()
    await together
    assert all(child.ended for child in children)


@pytest.mark.parametrize("error", [BoomError("first"), Abort("first")], ids=repr)
async def test_a_failure_cancels_the_others_and_waits_for_their_clean_up(
    error: BaseException,
) -> None:
    slow = Child()
    together = asyncio.create_task(
        run_together([slow.run(), failing(error, slow.began.wait())])
    )
    await slow.cancelled.wait()
    assert not together.done()
    slow.clean.set()
    with pytest.raises(type(error), match="first"):
        await together
    assert slow.ended


async def test_what_fails_while_it_is_cancelled_does_not_hide_the_first_failure() -> (
    None
):
    async def fails_in_clean_up(began: asyncio.Event) -> None:
        try:
            began.set()
            await asyncio.Event().wait()
        finally:
            raise BoomError("second")

    began = asyncio.Event()
    with pytest.raises(BoomError, match="first"):
        await run_together([
            fails_in_clean_up(began),
            failing(BoomError("first"), began.wait()),
        ])


async def test_of_two_that_fail_at_once_the_first_in_order_is_raised() -> None:
    go = asyncio.Event()
    together = asyncio.create_task(
        run_together([
            failing(BoomError("left"), go.wait()),
            failing(BoomError("right"), go.wait()),
        ])
    )
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(BoomError, match="left"):
        await together


async def test_a_body_that_ends_well_although_cancelled_hides_no_failure() -> None:
    async def swallows(began: asyncio.Event) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    began = asyncio.Event()
    with pytest.raises(BoomError):
        await run_together([swallows(began), failing(BoomError(), began.wait())])


async def test_cancelling_from_outside_waits_while_children_clean_up_slowly() -> None:
    children = [Child(), Child()]
    together = asyncio.create_task(run_together(child.run() for child in children))
    for child in children:
        await child.began.wait()
    together.cancel()
    for child in children:
        await child.cancelled.wait()
        assert not together.done()
        child.clean.set()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert all(child.ended for child in children)


async def test_cancelling_again_and_again_leaves_nobody_behind() -> None:
    attempts = 5
    interrupted = 0

    async def stubborn(began: asyncio.Event, again: asyncio.Event) -> None:
        nonlocal interrupted
        began.set()
        while interrupted < attempts:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                interrupted += 1
                again.set()
        raise asyncio.CancelledError

    began, again = asyncio.Event(), asyncio.Event()
    together = asyncio.create_task(
        run_together([stubborn(began, again), asyncio.Event().wait()])  # type: ignore[list-item]
    )
    await began.wait()
    for _ in range(attempts):
        again.clear()
        together.cancel()
        await again.wait()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert interrupted == attempts


async def test_cancelling_while_a_failure_is_cleaned_up_still_waits() -> None:
    slow = Child()
    together = asyncio.create_task(
        run_together([slow.run(), failing(BoomError(), slow.began.wait())])
    )
    await slow.cancelled.wait()
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert slow.ended


@pytest.mark.parametrize("turns", range(5))
async def test_cancelling_at_any_moment_leaves_no_child_half_run(turns: int) -> None:
    children = [Child(), Child()]
    for child in children:
        child.clean.set()
    together = asyncio.create_task(run_together(child.run() for child in children))
    for _ in range(turns):
        await asyncio.sleep(0)
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    assert all(child.began.is_set() == child.ended for child in children)


async def test_failures_that_nobody_is_told_of_are_not_reported_as_forgotten() -> None:
    reported: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(context))
    go = asyncio.Event()
    bodies = [failing(BoomError(str(at)), go.wait()) for at in range(4)]
    together = asyncio.create_task(run_together(bodies))
    await asyncio.sleep(0)
    go.set()
    with pytest.raises(BoomError):
        await together
    del together, bodies
    assert reported == []


async def test_a_thousand_bodies_run_side_by_side() -> None:
    count = 0
    everybody = asyncio.Event()

    async def body() -> None:
        nonlocal count
        count += 1
        if count == 1000:
            everybody.set()
        await everybody.wait()

    await run_together(body() for _ in range(1000))
    assert count == 1000


async def test_a_signal_wakes_all_who_wait_now_and_nobody_later() -> None:
    signal = Signal()
    first, second = (asyncio.create_task(signal.wait()) for _ in range(2))
    await asyncio.sleep(0)
    signal.wake()
    await asyncio.gather(first, second)
    late = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    assert not late.done()
    signal.wake()
    await late


async def test_a_waiter_that_is_cancelled_is_forgotten_by_its_signal() -> None:
    signal = Signal()
    waiter = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    signal.wake()
    assert signal._waiters == []


async def test_waiting_for_the_end_of_a_task_neither_cancels_nor_raises() -> None:
    async def body() -> None:
        raise BoomError

    task = asyncio.create_task(body())
    await _spawn.ended(task)
    await _spawn.ended(task)
    assert isinstance(task.exception(), BoomError)

    child = Child()
    running = asyncio.create_task(child.run())
    waiter = asyncio.create_task(_spawn.ended(running))
    await child.began.wait()
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert not child.cancelled.is_set()
    child.go.set()
    await running


async def test_a_thread_can_call_into_a_loop_and_not_into_a_closed_one() -> None:
    loop = asyncio.get_running_loop()
    called = asyncio.Event()
    assert await asyncio.to_thread(_spawn.call_soon, loop, called.set)
    await called.wait()
    closed = asyncio.new_event_loop()
    closed.close()
    assert not _spawn.call_soon(closed, called.set)


async def test_being_cancelled_is_told_from_awaiting_what_was_cancelled() -> None:
    answers: list[bool] = []

    async def body(wait: Callable[[], Awaitable[object]]) -> None:
        try:
            await wait()
        except asyncio.CancelledError:
            answers.append(_spawn.being_cancelled())

    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    await body(lambda: future)
    task = asyncio.create_task(body(asyncio.Event().wait))
    await asyncio.sleep(0)
    task.cancel()
    await task
    assert answers == [False, True]


def test_no_loop_runs_where_none_runs() -> None:
    assert _spawn.running_loop() is None
