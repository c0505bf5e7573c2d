"""Foreign delivery: what one epoch sent reaches another."""

from tenure.detectors import Certainty, Severity


def test_an_output_that_comes_from_another_epoch_is_a_violation(scene, only):
    found = only(scene.superseded().deliver(2, origin=1))

    assert found.anomaly == "foreign-delivery"
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch) == (2, 1)


def test_a_delivery_is_judged_alone(scene, only):
    scene.skip(12)

    assert only(scene.deliver(3, origin=1)).certainty is Certainty.CERTAIN


def test_a_delivery_of_ones_own_epoch_is_no_anomaly(scene):
    assert scene.superseded().deliver(2, origin=2) == ()
