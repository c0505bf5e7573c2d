"""Torn checkpoint: parts of more than one run in one checkpoint."""

import pytest

from tenure.detectors import Certainty, Severity


def test_parts_of_two_epochs_are_torn(scene, only):
    found = only(scene.superseded().save(2, "c", parts={"a": 1, "b": 2}))

    assert (found.anomaly, found.variant) == ("torn-checkpoint", "saved")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch) == (2, 1)
    assert found.keys == ("a", "b")
    assert "`a` in epoch 1 and `b` in epoch 2" in found.proof


def test_a_torn_checkpoint_that_is_restored_has_had_its_effect(scene, only):
    scene.claim(3)
    found = only(scene.restore(3, "c", {"a": 1, "b": 2}))

    assert (found.variant, found.severity) == ("restored", Severity.VIOLATION)


@pytest.mark.parametrize("parts", [None, {}, {"a": 2, "b": 2}, {"a": 1, "b": 1}])
def test_parts_of_one_epoch_or_none_are_whole(scene, parts):
    assert scene.superseded().save(2, "c", parts=parts) == ()
