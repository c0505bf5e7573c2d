"""A timeline keeps the newest operations, and says what it let go."""

import threading

import pytest

from tenure.detectors.report import Timeline
from tenure.instrumentation.listeners import tell

from .histories import calm


def test_the_newest_operations_of_each_instance_are_kept():
    timeline = Timeline(max_per_instance=3)
    first, second = calm(2, instance="a"), calm(1, instance="b")
    for operation in [*first, *second]:
        timeline.add(operation)
    assert timeline.operations == (*first[-3:], *second[-3:])
    assert timeline.left_out == (
        "the oldest 7 operations of press/a",
        "the oldest 2 operations of press/b",
    )


def test_a_chatty_instance_does_not_push_out_a_silent_one():
    timeline = Timeline(max_per_instance=5)
    silent = calm(1, instance="silent")
    for operation in [*silent, *calm(50, instance="chatty")]:
        timeline.add(operation)
    assert set(silent) <= set(timeline.operations)


def test_nothing_is_left_out_while_there_is_room():
    timeline = Timeline()
    for operation in calm():
        timeline.add(operation)
    assert timeline.left_out == ()


def test_the_instance_that_came_first_is_forgotten_first_and_counted():
    timeline = Timeline(max_instances=2)
    for name in "abcd":
        for operation in calm(1, instance=name):
            timeline.add(operation)
    kept = {operation.run.instance for operation in timeline.operations}
    assert kept == {"c", "d"}
    assert timeline.left_out == ("2 instances, those that came first",)


@pytest.mark.parametrize("bound", ["max_per_instance", "max_instances"])
def test_bounds_count_from_one(bound):
    with pytest.raises(ValueError, match="count from 1"):
        Timeline(**{bound: 0})


def test_a_timeline_listens_until_its_block_ends():
    first, second = calm(1)[:2]
    with Timeline().listen() as timeline:
        tell(first)
    tell(second)
    assert timeline.operations == (first,)


def test_operations_of_many_threads_are_all_counted():
    timeline = Timeline(max_per_instance=100)
    told = {name: calm(40, instance=name) for name in "abcd"}
    gate = threading.Barrier(8)

    def add(name: str, half: int) -> None:
        gate.wait()
        for operation in told[name][half::2]:
            timeline.add(operation)
            assert timeline.operations

    threads = [
        threading.Thread(target=add, args=(name, half))
        for name in told
        for half in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(timeline.operations) == 400
    assert sorted(timeline.left_out) == [
        f"the oldest 100 operations of press/{name}" for name in "abcd"
    ]
