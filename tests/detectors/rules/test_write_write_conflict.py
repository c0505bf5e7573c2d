"""Write-write conflict: two executors stage one key in one superstep."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import CommitCause


@pytest.fixture
def step(scene):
    scene.claim(1)
    scene.start(1, 1)
    return scene


def test_two_executors_that_stage_one_key_are_in_conflict_once_committed(step, only):
    assert step.execute(1, "a", writes=("k", "x")) == ()
    assert step.execute(1, "b", writes=("k", "y")) == ()
    found = only(step.commit(1, {"k": 1, "x": 1, "y": 1}, index=1))

    assert (found.anomaly, found.variant) == ("write-write-conflict", "committed")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.keys, found.culprit_epoch) == (("k",), 1)
    assert "executors a and b had both staged `k`" in found.proof


def test_many_executors_are_named_in_one_finding(step, only):
    for executor in "abc":
        step.execute(1, executor, writes=("k", "j"))
    found = only(step.commit(1, {"k": 1, "j": 1}, index=1))

    assert found.keys == ("k", "j")
    assert "executors a, b and c had both" not in found.proof
    assert "executors a, b and c had all staged `k`" in found.proof


def test_a_reducer_that_both_stage_through_joins_their_writes(step):
    step.execute(1, "a", writes=("k",), reduced=("k",))
    step.execute(1, "b", writes=("k",), reduced=("k",))

    assert step.commit(1, {"k": 1}, index=1) == ()


def test_a_reducer_that_one_of_them_stages_through_joins_nothing(step, only):
    step.execute(1, "a", writes=("k",), reduced=("k",))
    step.execute(1, "b", writes=("k",))

    assert only(step.commit(1, {"k": 1}, index=1)).keys == ("k",)


def test_one_executor_may_stage_a_key_for_every_message_it_gets(step):
    step.execute(1, "a", writes=("k",))
    step.execute(1, "a", writes=("k",))

    assert step.commit(1, {"k": 1}, index=1) == ()


def test_executors_of_two_supersteps_are_in_order(step):
    step.execute(1, "a", writes=("k",))
    step.commit(1, {"k": 1}, index=1)
    step.end(1, 1)
    step.start(1, 2)
    step.execute(1, "b", index=2, writes=("k",))

    assert step.commit(1, {"k": 1}, index=2) == ()


def test_executors_of_two_runs_are_in_no_superstep_together(step):
    step.execute(1, "a", writes=("k",))
    step.claim(2, superseded=1)
    step.execute(2, "b", writes=("k",))

    assert step.commit(2, {"k": 2}, index=1) == ()


def test_a_superstep_that_was_discarded_leaves_no_conflict(step):
    step.execute(1, "a", writes=("k",))
    step.execute(1, "b", writes=("k",))
    step.discard(1, {"k": 1}, ledger=1)
    step.end(1, 1)
    step.release(1)

    assert step.detector.findings == ()
    assert step.detector.verdict == "clean"


def test_an_attempt_that_failed_is_in_nobodys_way(step):
    step.execute(1, "a", writes=("k",), error="ValueError")
    step.execute(1, "b", writes=("k",))

    assert step.commit(1, {"k": 1}, index=1) == ()


def test_an_engine_without_supersteps_has_no_conflicts(step):
    step.execute(1, "a", index=None, writes=("k",))
    step.execute(1, "b", index=None, writes=("k",))

    assert step.commit(1, {"k": 1}) == ()


def test_the_engines_own_commits_end_no_superstep(step):
    step.execute(1, "a", writes=("k",))
    step.execute(1, "b", writes=("k",))

    assert step.commit(1, {"k": 1}, index=1, cause=CommitCause.CHECKPOINT) == ()


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)])
def test_the_three_operations_prove_it_in_any_order(step, order):
    told = []
    step.detector.feed, feed = told.append, step.detector.feed
    step.execute(1, "a", writes=("k",))
    step.execute(1, "b", writes=("k",))
    step.commit(1, {"k": 1}, index=1)
    found = [finding for place in order for finding in feed(told[place])]

    (finding,) = found
    assert finding.anomaly == "write-write-conflict"
    assert finding.certainty is Certainty.CERTAIN
    assert finding.culprit.name == "commit"


def test_a_conflict_is_told_once(step, only):
    step.execute(1, "a", writes=("k",))
    step.execute(1, "b", writes=("k",))
    step.skip(1)
    only(step.commit(1, {"k": 1}, index=1))

    assert step.execute(1, "c", writes=("k",)) == ()


def test_keys_that_were_left_out_may_hide_a_conflict(step):
    step.execute(1, "a", writes=("k",), omitted=9)
    step.execute(1, "b", writes=("j",))
    step.commit(1, {"k": 1, "j": 1}, index=1)
    step.end(1, 1)
    step.release(1)

    assert step.detector.missing == (
        "press/i: keys that executors of one superstep read or staged",
    )


def test_keys_that_a_lone_executor_left_out_hide_nothing(step):
    step.execute(1, "a", writes=None)
    step.commit(1, {"k": 1}, index=1)
    step.end(1, 1)
    step.release(1)

    assert step.detector.verdict == "clean"
