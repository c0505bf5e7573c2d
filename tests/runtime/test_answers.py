"""Answers that nobody can cancel, and the thread that brings them."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial

import pytest

from tenure.runtime._answers import (
    Answer,
    Inline,
    Known,
    LaterError,
    Worker,
    finished,
)


class BoomError(Exception):
    pass


def answer() -> Answer[str]:
    return Answer(asyncio.get_running_loop())


async def waiting(asked: Answer[str]) -> asyncio.Task[tuple[str, object]]:
    """Return a task that waits for `asked`."""
    task = asyncio.create_task(finished(asked))
    await asyncio.sleep(0)
    return task


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def test_who_waits_gets_what_another_thread_brings() -> None:
    asked = answer()
    task = await waiting(asked)
    in_a_thread(lambda: asked.settle("yes"))
    assert await task == ("yes", None)


async def test_who_comes_late_gets_it_at_once() -> None:
    asked = answer()
    asked.settle("yes")
    assert await finished(asked) == ("yes", None)
    assert await asked == "yes"


async def test_everybody_who_waits_gets_it() -> None:
    asked = answer()
    tasks = [await waiting(asked) for _ in range(3)]
    in_a_thread(lambda: asked.settle("yes"))
    assert await asyncio.gather(*tasks) == [("yes", None)] * 3


async def test_what_comes_instead_of_an_answer_is_raised() -> None:
    asked = answer()
    task = await waiting(asked)
    in_a_thread(lambda: asked.settle(None, BoomError("disk")))
    with pytest.raises(BoomError, match="disk"):
        await task


async def test_who_is_cancelled_still_gets_the_answer_and_the_cancellation() -> None:
    asked = answer()
    task = await waiting(asked)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
    in_a_thread(lambda: asked.settle("yes"))
    value, interruption = await task
    assert value == "yes"
    assert isinstance(interruption, asyncio.CancelledError)


async def test_a_failure_that_nobody_waits_for_is_the_cause_of_the_cancellation() -> (
    None
):
    asked = answer()
    caught: list[BaseException | None] = []

    async def ask() -> None:
        try:
            await finished(asked)
        except asyncio.CancelledError as exc:
            caught.append(exc.__cause__)
            raise

    task = asyncio.create_task(ask())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    boom = BoomError()
    in_a_thread(lambda: asked.settle(None, boom))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caught == [boom]


async def test_a_time_limit_ends_the_wait_and_not_the_work() -> None:
    asked = answer()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(asked), 0)
    assert not asked.done()
    in_a_thread(lambda: asked.settle("yes"))
    assert await asked == "yes"


async def test_who_does_not_want_to_be_called_any_more_is_not() -> None:
    asked = answer()
    called: list[str] = []

    def first(_of: object) -> None:
        called.append("first")

    def second(_of: object) -> None:
        called.append("second")

    asked.add_done_callback(first)
    asked.add_done_callback(second)
    assert asked.remove_done_callback(first) == 1
    assert asked.remove_done_callback(first) == 0
    in_a_thread(lambda: asked.settle("yes"))
    await asyncio.sleep(0)
    assert called == ["second"]


async def test_an_answer_that_races_with_the_wait_for_it_is_never_missed() -> None:
    worker = Worker("race")
    for number in range(2000):
        asked = worker.ask(partial(abs, number))
        # Sometimes it is there before anybody waits, sometimes after, and sometimes
        # the two meet.
        for _ in range(number % 3):
            await asyncio.sleep(0)
        assert await asked == number


def test_an_answer_for_a_loop_that_is_closed_is_kept_and_nobody_woken() -> None:
    async def ask() -> Answer[str]:
        asked = answer()
        asked.add_done_callback(lambda _of: pytest.fail("called in a closed loop"))
        return asked

    asked = asyncio.run(ask())
    asked.settle("yes")
    assert asked.result() == "yes"


async def test_what_a_foreign_store_was_asked_for_happens_all_the_same() -> None:
    go = asyncio.Event()
    done: list[str] = []

    async def commit() -> str:
        await go.wait()
        done.append("kept")
        return "kept"

    task = asyncio.create_task(finished(commit()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    go.set()
    value, interruption = await task
    assert (value, done) == ("kept", ["kept"])
    assert isinstance(interruption, asyncio.CancelledError)


async def test_a_foreign_store_that_is_cancelled_within_is_no_answer() -> None:
    async def commit() -> str:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await finished(commit())


async def test_what_is_known_takes_no_turn() -> None:
    turns: list[str] = []
    asyncio.get_running_loop().call_soon(turns.append, "a turn")
    assert await finished(Known(1)) == (1, None)
    assert await Inline().ask(lambda: 2) == 2
    assert turns == []


async def test_a_worker_does_one_thing_after_the_other_and_ends_when_dropped() -> None:
    worker = Worker("in order")
    order: list[int] = []
    threads: set[threading.Thread] = set()

    def work(number: int) -> None:
        order.append(number)
        threads.add(threading.current_thread())

    asked = [worker.ask(partial(work, number)) for number in range(20)]
    for one in asked:
        await one
    assert order == list(range(20))
    [thread] = threads
    del worker
    thread.join(10)
    assert not thread.is_alive()


async def test_work_that_has_to_wait_lets_others_come_first() -> None:
    done: list[str] = []

    def first() -> str:
        if "second" not in done:
            raise LaterError
        done.append("first")
        return "yes"

    worker = Worker("test")
    asked = worker.ask(first)
    await worker.ask(lambda: done.append("second"))
    assert await asked == "yes"
    assert done == ["second", "first"]


async def test_what_is_left_to_a_worker_is_done_after_what_it_was_asked_for() -> None:
    done: list[str] = []
    for worker in (Worker("test"), Inline()):
        asked = worker.ask(lambda: done.append("asked"))
        worker.leave(lambda: done.append("left"), 20)
        await asked
        assert done == ["asked", "left"]
        done.clear()


async def test_a_worker_that_never_worked_does_not_begin_for_what_is_left() -> None:
    Worker("test").leave(lambda: pytest.fail("nobody asked"), 20)
