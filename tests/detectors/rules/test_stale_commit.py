"""Stale commit: an epoch that no longer owns the instance commits."""

from tenure.detectors import Certainty, Severity


def test_a_commit_by_an_older_epoch_than_the_owners_is_a_violation(scene, only):
    found = only(scene.superseded().commit(1, {"a": 1}))

    assert found.anomaly == "stale-commit"
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.owner_epoch, found.keys) == (1, 2, ("a",))


def test_a_stale_commit_of_nothing_is_a_warning(scene, only):
    found = only(scene.superseded().commit(1, {}))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)


def test_a_stale_commit_of_unknown_writes_is_certain_and_its_harm_is_missing(
    scene, only
):
    found = only(scene.superseded().commit(1, None))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert found.missing == ("the committed keys and who staged them",)


def test_a_commit_by_the_owner_is_no_anomaly(scene):
    assert scene.superseded().commit(2, {"a": 2}) == ()


def test_without_the_owner_a_claim_counted_before_the_commit_proves_it_stale(
    scene, only
):
    found = only(scene.superseded().commit(1, {"a": 1}, owner=None))

    assert (found.certainty, found.owner_epoch) == (Certainty.CERTAIN, 2)


def test_without_the_owner_a_claim_of_another_process_only_suggests_it(scene, only):
    scene.claim(1)
    scene.claim(2, superseded=1, process="q")
    found = only(scene.commit(1, {"a": 1}, owner=None))

    assert found.certainty is Certainty.POSSIBLE


def test_a_claim_that_was_counted_after_the_commit_proves_nothing(scene):
    scene.claim(1)
    scene.skip(1)
    scene.claim(2, superseded=1)
    scene.seq["p"] = 1

    assert scene.commit(1, {"a": 1}, owner=None) == ()


def test_an_epoch_that_came_back_after_a_newer_one_is_not_called_stale(scene, only):
    scene.claim(3)
    scene.release(3)
    scene.claim(2)
    found = only(scene.commit(2, {"a": 2}, owner=None))

    assert found.certainty is Certainty.POSSIBLE


def test_without_the_owner_the_newest_of_several_claims_is_taken_for_it(scene, only):
    scene.superseded().claim(3, superseded=2)
    found = only(scene.commit(1, {"a": 1}, owner=None))

    assert (found.certainty, found.owner_epoch) == (Certainty.CERTAIN, 3)
