"""Leaked write: a commit that makes another epoch's staged writes durable."""

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import CommitCause, Owner


def test_a_commit_of_a_superseded_epochs_write_is_a_violation(scene, only):
    found = only(scene.superseded().commit(2, {"a": 1, "b": 2}))

    assert found.anomaly == "leaked-write"
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch, found.keys) == (2, 1, ("a",))


def test_the_leak_is_certain_although_nothing_else_arrived(scene, only):
    scene.skip(40)
    found = only(scene.commit(2, {"a": 1}, owner=Owner(2)))

    assert found.certainty is Certainty.CERTAIN


def test_each_foreign_writer_is_a_victim_of_its_own(scene):
    scene.skip(9)
    found = scene.commit(3, {"a": 1, "b": 2, "c": 1}, owner=Owner(3))

    assert [(one.victim_epoch, one.keys) for one in found] == [
        (1, ("a", "c")),
        (2, ("b",)),
    ]


def test_a_commit_of_ones_own_writes_is_no_leak(scene):
    assert scene.superseded().commit(2, {"a": 2, "b": 2}) == ()


def test_writes_that_a_run_inherited_on_purpose_are_no_leak(scene):
    assert scene.superseded().commit(2, {"a": 1, "b": 2}, inherited=(1,)) == ()


def test_a_listed_leak_stays_certain_when_pairs_were_left_out(scene, only):
    found = only(scene.superseded().commit(2, {"a": 1}, omitted=5))

    assert found.certainty is Certainty.CERTAIN


def test_a_commit_that_lists_nothing_accuses_nobody_and_leaves_the_verdict_open(scene):
    assert scene.superseded().commit(2, None) == ()
    scene.release(2)

    assert scene.detector.verdict == "inconclusive"
    assert "keys that a commit did not list" in scene.detector.missing[0]


def test_a_leak_at_run_entry_says_that_later_runs_start_on_it(scene, only):
    found = only(scene.superseded().commit(2, {"a": 1}, cause=CommitCause.RUN_ENTRY))

    assert "at run entry" in found.proof
    assert "every later run starts on it" in found.proof


def test_without_the_owner_the_end_of_the_writer_is_missing(scene, only):
    scene.claim(2)
    found = only(scene.commit(2, {"a": 1}, owner=None))

    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.POSSIBLE,
    )
    assert found.missing == ("the end of epoch 1",)


def test_without_the_owner_a_release_counted_before_the_commit_is_the_end(scene, only):
    scene.claim(1)
    scene.release(1)
    scene.claim(2)
    found = only(scene.commit(2, {"a": 1}, owner=None))

    assert found.certainty is Certainty.CERTAIN


def test_a_release_in_another_process_orders_nothing(scene, only):
    scene.claim(1, process="q")
    scene.release(1, process="q")
    scene.claim(2)
    found = only(scene.commit(2, {"a": 1}, owner=None))

    assert found.certainty is Certainty.POSSIBLE


def test_a_stale_commit_that_takes_the_owners_writes_with_it_is_both(scene):
    found = scene.superseded().commit(1, {"a": 1, "b": 2})

    assert [one.anomaly for one in found] == ["stale-commit", "leaked-write"]
    assert {one.certainty for one in found} == {Certainty.CERTAIN}


def test_a_writer_that_owns_the_instance_is_not_over(scene, only):
    found = only(scene.commit(3, {"a": 2}, owner=Owner(2)))

    assert found.certainty is Certainty.POSSIBLE
