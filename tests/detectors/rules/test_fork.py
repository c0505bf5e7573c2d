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
