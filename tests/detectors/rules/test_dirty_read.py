"""Dirty read: a run reads what another one has staged and not committed."""

from tenure.detectors import Certainty, Severity


def test_a_read_of_what_an_epoch_that_is_over_has_staged_is_an_aborted_read(
    scene, only
):
    found = only(scene.superseded().read(2, "a", writer=1))

    assert (found.anomaly, found.variant) == ("dirty-read", "aborted")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch, found.keys) == (2, 1, ("a",))


def test_a_stale_run_that_reads_the_owners_staged_write_reads_an_unfinished_one(
    scene, only
):
    found = only(scene.superseded().read(1, "a", writer=2))

    assert (found.variant, found.certainty) == ("unfinished", Certainty.CERTAIN)


def test_two_runs_that_read_from_each_other_close_a_circle(scene, only):
    scene.superseded().read(1, "a", writer=2)
    found = only(scene.read(2, "b", writer=1))

    assert (found.variant, found.certainty) == ("circular", Certainty.CERTAIN)
    assert [one.run.epoch for one in found.evidence[:2]] == [2, 1]


def test_without_the_owner_the_writers_release_proves_the_read_aborted(scene, only):
    scene.claim(1)
    scene.release(1)
    scene.claim(2)
    found = only(scene.read(2, "a", writer=1, owner=None))

    assert found.variant == "aborted"


def test_without_the_owner_and_the_release_the_class_is_not_known(scene, only):
    scene.skip(40)
    found = only(scene.read(2, "a", writer=1, owner=None))

    assert (found.variant, found.certainty) == ("unfinished", Certainty.CERTAIN)


def test_a_run_that_reads_its_own_staged_write_is_no_anomaly(scene):
    scene.claim(1)

    assert scene.read(1, "a", writer=1) == ()
