"""Fork: a run that has lost its instance goes on saving checkpoints."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import Owner


def taken_over(scene):
    """Run 1 saved `c1`; run 2 took over and saved its child."""
    scene.claim(1)
    scene.save(1, "c1")
    scene.claim(2, superseded=1)
    scene.save(2, "c2", parent="c1")
    return scene


def went_on(scene, *checkpoints):
    """Run 1 saved a line of checkpoints, and has ended."""
    scene.claim(1)
    parent = None
    for checkpoint in checkpoints:
        scene.save(1, checkpoint, parent=parent, owner=Owner(1, "run-1"))
        parent = checkpoint
    scene.release(1)


def test_a_paused_owner_that_wakes_up_and_saves_forks_the_lineage(scene, only):
    found = only(taken_over(scene).save(1, "c3", parent="c1"))

    assert (found.anomaly, found.variant) == ("fork", "two-children")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch) == (1, 2)


def test_the_branch_may_arrive_first(scene, only):
    scene.claim(1)
    scene.claim(2, superseded=1)
    early = only(scene.save(1, "c3", parent="c1"))
    found = only(scene.save(2, "c2", parent="c1"))

    assert (early.variant, early.severity) == ("stale-save", Severity.WARNING)
    assert (found.variant, found.certainty) == ("two-children", Certainty.CERTAIN)
    assert found.culprit_epoch == 1


def test_a_run_that_goes_back_on_purpose_forks_nothing(scene):
    scene.claim(1)
    scene.save(1, "c1")
    scene.save(1, "c2", parent="c1")
    scene.release(1)
    scene.claim(2)
    scene.restore(2, "c1")

    assert scene.save(2, "c3", parent="c1") == ()


def test_a_run_that_goes_back_in_its_own_lineage_forks_nothing(scene):
    scene.claim(1)
    scene.save(1, "c2", parent="c1")

    assert scene.save(1, "c3", parent="c1") == ()


def test_checkpoints_without_a_parent_have_nothing_in_common(scene):
    scene.claim(1)
    scene.save(1, "c1")
    scene.claim(2, superseded=1)

    assert scene.save(2, "c2") == ()


def test_between_processes_it_may_be_a_run_that_went_back(scene, only):
    scene.claim(1)
    scene.save(1, "c2", parent="c1", owner=Owner(1, "run-1"))
    scene.claim(2, process="q")
    found = only(scene.save(2, "c3", parent="c1", process="q", owner=Owner(2, "run-2")))

    assert (found.variant, found.certainty) == ("two-children", Certainty.POSSIBLE)
    assert found.missing == ("the order of processes p and q",)


def test_a_restore_of_the_parent_tells_a_return_from_a_takeover_in_nothing(scene, only):
    # Whoever takes over from a paused owner restores its newest checkpoint as well.
    scene.claim(1)
    scene.save(1, "c1")
    scene.claim(2, superseded=1, process="q")
    scene.restore(2, "c1", process="q")
    scene.save(2, "c3", parent="c1", process="q")
    found = only(scene.save(1, "c4", parent="c1", owner=Owner(1, "run-1")))

    assert (found.variant, found.certainty) == ("two-children", Certainty.POSSIBLE)


def test_between_processes_a_run_that_says_from_where_it_went_back_forks_nothing(scene):
    went_on(scene, "c1", "c2")
    scene.claim(2, process="q")
    scene.restore(2, "c1", process="q")

    assert scene.save(2, "c9", parent="c1", previous="c2", process="q") == ()
    scene.release(2, process="q")
    assert scene.detector.verdict == "clean"


def test_it_may_go_back_over_what_others_had_made_of_that_branch(scene):
    went_on(scene, "c1", "c2", "c3")
    scene.claim(2, process="q")
    scene.save(2, "c4", parent="c3", process="q")
    scene.release(2, process="q")
    scene.claim(3, process="r")

    assert scene.save(3, "c9", parent="c1", previous="c4", process="r") == ()


def test_what_was_told_between_them_may_be_lost_if_their_process_counted_both(scene):
    scene.claim(1)
    scene.save(1, "c2", parent="c1")
    scene.skip(3)
    scene.save(1, "c6", parent="c5")
    scene.claim(2, process="q")

    assert scene.save(2, "c9", parent="c1", previous="c6", process="q") == ()


def test_a_save_that_is_not_known_to_come_before_where_it_was_left_stays_possible(
    scene, only
):
    # Run 1 may have been paused since c1, and run 2 have gone on without it.
    scene.claim(1)
    scene.save(1, "c1")
    scene.claim(2, superseded=1, process="q")
    scene.save(2, "c2", parent="c1", process="q")
    scene.claim(3, process="q")
    scene.save(3, "c9", parent="c1", previous="c2", process="q")
    found = only(scene.save(1, "c4", parent="c1", owner=Owner(1, "run-1")))

    assert (found.variant, found.certainty) == ("two-children", Certainty.POSSIBLE)


@pytest.mark.parametrize("left", ["c7", "c8"])
def test_where_it_was_left_proves_nothing_if_its_lineage_is_lost_or_goes_in_circles(
    scene, only, left
):
    went_on(scene, "c1", "c2")
    scene.claim(2, process="q")
    scene.save(2, "c8", parent="c8", process="q")
    scene.claim(3, process="r")
    found = only(scene.save(3, "c9", parent="c1", previous=left, process="r"))

    assert found.certainty is Certainty.POSSIBLE


def test_a_name_that_two_checkpoints_have_proves_nothing(scene, only):
    went_on(scene, "c1", "c2", "same")
    scene.claim(2, process="q")
    scene.save(2, "same", parent="elsewhere", process="q")
    scene.claim(3, process="r")
    found = only(scene.save(3, "c9", parent="c1", previous="same", process="r"))

    assert found.certainty is Certainty.POSSIBLE


def test_between_processes_an_owner_that_the_older_run_saw_proves_it(scene, only):
    scene.claim(2, process="q")
    scene.save(2, "c3", parent="c1", process="q")
    found = only(scene.save(1, "c2", parent="c1", owner=Owner(2, "run-2")))

    assert found.certainty is Certainty.CERTAIN


def test_without_the_owner_a_claim_counted_before_the_save_proves_it(scene, only):
    scene.claim(1)
    scene.claim(2, superseded=1)
    scene.save(2, "c2", parent="c1", owner=None)
    found = only(scene.save(1, "c3", parent="c1", owner=None))

    assert found.certainty is Certainty.CERTAIN


def test_without_the_owner_a_claim_counted_after_the_save_clears_it(scene):
    scene.claim(1)
    scene.save(1, "c2", parent="c1", owner=None)
    scene.claim(2, superseded=1)

    assert scene.save(2, "c3", parent="c1", owner=None) == ()


def test_without_owner_and_claim_it_stays_possible(scene, only):
    scene.save(1, "c2", parent="c1", owner=None)
    found = only(scene.save(2, "c3", parent="c1", owner=None))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("the claim of epoch 2",)


@pytest.mark.parametrize("parent", [None, "c1"])
def test_a_stale_run_that_saves_is_a_warning_before_there_is_a_sibling(
    scene, only, parent
):
    found = only(scene.superseded().save(1, "c2", parent=parent))

    assert (found.variant, found.severity) == ("stale-save", Severity.WARNING)


def test_without_the_owner_a_claim_counted_before_the_save_proves_it_stale(scene, only):
    found = only(scene.superseded().save(1, "c2", owner=None))

    assert (found.variant, found.certainty) == ("stale-save", Certainty.CERTAIN)
    assert found.owner_epoch == 2


def test_without_the_owner_a_claim_of_another_process_only_suggests_it(scene, only):
    scene.claim(1)
    scene.claim(2, superseded=1, process="q")
    found = only(scene.save(1, "c2", owner=None))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("the owner's epoch at the save",)
