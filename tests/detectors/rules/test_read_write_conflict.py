"""Read-write conflict: an executor reads what another one stages beside it."""

import pytest

from tenure.detectors import Certainty, Severity


@pytest.fixture
def step(scene):
    scene.claim(1)
    scene.start(1, 1)
    return scene


def test_a_read_of_what_a_sibling_stages_depends_on_scheduling(step, only):
    step.execute(1, "writer", writes=("k",))
    step.execute(1, "reader", reads=("k",))
    found = only(step.commit(1, {"k": 1}, index=1))

    assert (found.anomaly, found.variant) == ("read-write-conflict", "committed")
    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert found.keys == ("k",)
    assert "executor reader had read `k`, and executor writer had staged it" in (
        found.proof
    )


def test_an_isolated_reader_gets_the_state_as_of_the_start(step):
    step.execute(1, "writer", writes=("k",))
    step.execute(1, "reader", reads=("k",), isolated=True)

    assert step.commit(1, {"k": 1}, index=1) == ()


def test_an_executor_may_read_what_it_stages_itself(step):
    step.execute(1, "a", reads=("k",), writes=("k",))
    step.execute(1, "b", reads=("j",), writes=("j",))

    assert step.commit(1, {"k": 1, "j": 1}, index=1) == ()


def test_two_executors_may_read_one_key(step):
    step.execute(1, "a", reads=("k",))
    step.execute(1, "b", reads=("k",))

    assert step.commit(1, {}, index=1) == ()


def test_a_key_that_a_reducer_joins_may_be_read(step):
    step.execute(1, "writer", writes=("k",), reduced=("k",))
    step.execute(1, "reader", reads=("k",))

    assert step.commit(1, {"k": 1}, index=1) == ()


def test_a_key_that_two_executors_stage_is_told_as_the_worse_conflict(step, only):
    step.execute(1, "a", reads=("k",), writes=("k",))
    step.execute(1, "b", reads=("k",), writes=("k",))

    assert only(step.commit(1, {"k": 1}, index=1)).anomaly == "write-write-conflict"


def test_both_kinds_are_told_where_there_are_both(step):
    step.execute(1, "a", reads=("j",), writes=("k",))
    step.execute(1, "b", writes=("k", "j"))
    found = step.commit(1, {"k": 1, "j": 1}, index=1)

    assert {one.anomaly: one.keys for one in found} == {
        "write-write-conflict": ("k",),
        "read-write-conflict": ("j",),
    }


def test_a_read_that_arrives_after_the_commit_completes_the_proof(step, only):
    told = []
    step.detector.feed, feed = told.append, step.detector.feed
    step.execute(1, "writer", writes=("k",))
    step.execute(1, "reader", reads=("k",))
    step.commit(1, {"k": 1}, index=1)
    feed(told[2])
    feed(told[0])

    assert only(feed(told[1])).culprit.name == "commit"


def test_reads_beyond_the_cap_may_hide_a_conflict(step):
    step.execute(1, "a", reads=tuple(f"k{number}" for number in range(32)))
    step.execute(1, "b", writes=("j",))
    step.commit(1, {"j": 1}, index=1)
    step.end(1, 1)
    step.release(1)

    assert step.detector.verdict == "inconclusive"
