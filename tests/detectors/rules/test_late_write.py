"""Late write: a run that no longer owns the instance still writes."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import LateKind


@pytest.mark.parametrize("kind", list(LateKind))
def test_a_late_write_into_the_owners_ledger_is_a_warning(scene, only, kind):
    found = only(scene.superseded().late(1, ledger=2, kind=kind))

    assert found.anomaly == "late-write"
    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)


def test_a_late_write_into_its_own_ledger_is_averted(scene, only):
    found = only(scene.superseded().late(1, ledger=1))

    assert (found.severity, found.certainty) == (Severity.AVERTED, Certainty.CERTAIN)


def test_whether_a_late_write_was_averted_stays_possible_without_the_ledger(
    scene, only
):
    found = only(scene.superseded().late(1))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.POSSIBLE)
    assert found.missing == ("whose ledger took the write",)


def test_a_write_after_the_release_is_late_although_nobody_has_claimed_since(
    scene, only
):
    scene.claim(1)
    scene.release(1)
    found = only(scene.late(1, ledger=0))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert "had released the instance" in found.proof


def test_a_write_after_a_release_that_was_lost_stays_possible(scene, only):
    scene.claim(1)
    scene.skip(1)
    found = only(scene.late(1, ledger=0))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("the release of epoch 1",)


def test_after_the_release_ones_own_ledger_reaches_nobody(scene, only):
    scene.claim(1)
    scene.release(1)
    found = only(scene.late(1, ledger=1))

    assert (found.severity, found.certainty) == (Severity.AVERTED, Certainty.CERTAIN)


def test_a_background_task_of_a_finished_run_reaches_the_next_one_on_a_shared_map(
    scene, only
):
    scene.claim(1)
    scene.release(1)
    found = only(scene.late(1, ledger=1, shared=True))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert "into the map that all runs share" in found.proof


def test_a_shared_map_needs_no_number_to_be_reached(scene, only):
    found = only(scene.superseded().late(1, shared=True))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)


def test_without_the_owner_a_claim_counted_before_the_write_proves_it_late(scene, only):
    found = only(scene.superseded().late(1, ledger=2, owner=None))

    assert (found.certainty, found.owner_epoch) == (Certainty.CERTAIN, 2)


def test_without_the_owner_and_without_a_claim_it_stays_possible(scene, only):
    scene.claim(1)
    found = only(scene.late(1, ledger=1, owner=None))

    assert found.certainty is Certainty.POSSIBLE
