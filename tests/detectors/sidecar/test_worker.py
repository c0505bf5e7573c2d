"""The bounded queue and its threads."""

import threading

import pytest

from tenure.detectors.sidecar.worker import Worker

PATIENCE = 10.0


@pytest.fixture
def gate():
    """Work that says when it begins, and waits until it may go on."""

    class Gate:
        def __init__(self) -> None:
            self.begun = threading.Semaphore(0)
            self.open = threading.Event()
            self.done: list[object] = []

        def __call__(self, item: object) -> None:
            self.begun.release()
            assert self.open.wait(PATIENCE)
            self.done.append(item)

    gate = Gate()
    yield gate
    gate.open.set()


def test_items_are_worked_on_in_order():
    done: list[int] = []
    worker = Worker("w", done.append, capacity=100)

    assert all(worker.offer(number) for number in range(100))

    assert worker.finish(PATIENCE)
    assert done == list(range(100))


def test_what_does_not_fit_is_not_taken(gate):
    worker = Worker("w", gate, capacity=2)
    assert worker.offer("first")
    assert gate.begun.acquire(timeout=PATIENCE)

    assert worker.offer("second")
    assert worker.offer("third")
    assert not worker.offer("fourth")
    assert (worker.waiting, worker.undone) == (2, 3)

    gate.open.set()
    assert worker.finish(PATIENCE)
    assert gate.done == ["first", "second", "third"]


def test_capacity_counts_what_an_item_costs(gate):
    worker = Worker("w", gate, capacity=10, cost=len)
    assert worker.offer("x")
    assert gate.begun.acquire(timeout=PATIENCE)

    assert worker.offer("123456")
    assert not worker.offer("12345")
    assert worker.offer("1234")

    gate.open.set()
    assert worker.finish(PATIENCE)


def test_nothing_is_taken_once_it_finishes():
    worker = Worker("w", print, capacity=1)
    assert worker.finish(PATIENCE)

    assert not worker.offer("late")
    assert not worker.alive


def test_finishing_does_not_wait_longer_than_it_is_told_to(gate):
    worker = Worker("w", gate, capacity=2)
    worker.offer("first")
    worker.offer("second")
    assert gate.begun.acquire(timeout=PATIENCE)

    assert not worker.finish(0.0)

    assert worker.undone == 2


def test_an_item_that_fails_is_logged_and_the_next_one_is_done(caplog):
    done: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError(item)
        done.append(item)

    worker = Worker("tenure-watch-w", work, capacity=3)
    for item in range(3):
        worker.offer(item)

    assert worker.finish(PATIENCE)
    assert done == [0, 2]
    assert "tenure-watch-w failed" in caplog.text


def test_several_threads_work_at_once(gate):
    worker = Worker("w", gate, capacity=2, threads=2)
    worker.offer("first")
    worker.offer("second")

    assert gate.begun.acquire(timeout=PATIENCE)
    assert gate.begun.acquire(timeout=PATIENCE)

    gate.open.set()
    assert worker.finish(PATIENCE)
