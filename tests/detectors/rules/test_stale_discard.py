"""Stale discard: what throws away another epoch's writes, and what only tries."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import DiscardCause


def test_a_discard_that_hits_a_newer_epochs_write_is_a_violation(scene, only):
    found = only(scene.superseded().discard(1, {"a": 1, "b": 2}))

    assert found.anomaly == "stale-discard"
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.owner_epoch, found.victim_epoch) == (1, 2, 2)
    assert found.keys == ("b",)


def test_the_victim_is_certain_although_nothing_else_arrived(scene, only):
    scene.skip(40)
    found = only(scene.discard(1, {"b": 2}, owner=None))

    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )


def test_a_listed_victim_stays_certain_when_pairs_were_left_out(scene, only):
    found = only(scene.superseded().discard(1, {"b": 2}, omitted=9))

    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )


@pytest.mark.parametrize("writes", [{}, {"a": 1}])
def test_a_stale_discard_without_a_victim_is_a_warning(scene, only, writes):
    found = only(scene.superseded().discard(1, writes))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert found.victim_epoch is None


def test_what_a_stale_discard_hit_stays_possible_when_its_writes_are_unknown(
    scene, only
):
    found = only(scene.superseded().discard(1, None))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.POSSIBLE)
    assert found.missing == ("the discarded keys and who staged them",)


def test_that_there_is_no_victim_cannot_be_said_when_pairs_were_left_out(scene, only):
    found = only(scene.superseded().discard(1, {"a": 0}, omitted=3))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.POSSIBLE)
    assert found.missing == ("3 of the discarded keys",)


def test_where_one_of_its_own_pairs_is_listed_every_foreign_one_is(scene, only):
    found = only(scene.superseded().discard(1, {"a": 0, "b": 1}, omitted=3))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert "hit no newer epoch's writes" in found.proof


def test_a_list_that_is_not_in_the_promised_order_proves_nothing(scene, only):
    found = only(scene.superseded().discard(1, {"b": 1, "a": 0}, omitted=3))

    assert found.certainty is Certainty.POSSIBLE


def test_a_map_that_all_runs_share_is_not_ones_own_ledger(scene, only):
    found = only(scene.superseded().discard(1, {"a": 1}, ledger=1, shared=True))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)


def test_a_fenced_discard_by_a_stale_epoch_is_averted(scene, only):
    found = only(scene.superseded().discard(1, {}, fenced=True, ledger=1))

    assert (found.severity, found.certainty) == (Severity.AVERTED, Certainty.CERTAIN)


def test_a_stale_epoch_that_drops_its_own_ledger_harms_nobody(scene, only):
    found = only(scene.superseded().discard(1, {"a": 1}, ledger=1))

    assert (found.severity, found.certainty) == (Severity.AVERTED, Certainty.CERTAIN)


def test_a_ledger_that_holds_another_epochs_write_is_not_ones_own(scene, only):
    found = only(scene.superseded().discard(1, {"a": 0}, ledger=1))

    assert found.severity is Severity.WARNING


def test_the_owners_sweep_of_older_writes_is_no_anomaly(scene):
    found = scene.superseded().discard(2, {"a": 1}, cause=DiscardCause.SWEEP)

    assert found == ()


def test_a_run_that_discards_what_it_staged_is_no_anomaly(scene):
    scene.claim(1)

    assert scene.discard(1, {"a": 1}, cause=DiscardCause.FAILED) == ()


def test_without_the_owner_a_claim_counted_before_the_discard_proves_it_stale(
    scene, only
):
    found = only(scene.superseded().discard(1, {}, owner=None))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert found.owner_epoch == 2


def test_without_the_owner_a_claim_of_another_process_only_suggests_it(scene, only):
    scene.claim(1)
    scene.claim(2, superseded=1, process="q")
    found = only(scene.discard(1, {}, owner=None))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("the owner's epoch at the discard",)


def test_without_the_owner_and_without_a_newer_claim_nothing_is_said(scene):
    scene.claim(1)

    assert scene.discard(1, {}, owner=None) == ()
