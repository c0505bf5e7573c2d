"""Finalizer by gc: what brought the end of a run about."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import Trigger


def test_a_discard_by_that_trigger_is_worth_knowing(scene, only):
    scene.claim(1)
    found = only(scene.discard(1, {"a": 1}, ledger=1, trigger=Trigger.GC))

    assert (found.anomaly, found.variant) == ("finalizer-by-gc", "discard")
    assert (found.severity, found.certainty) == (
        Severity.INFORMATION,
        Certainty.CERTAIN,
    )


def test_a_release_by_that_trigger_is_worth_knowing(scene, only):
    scene.claim(1)
    found = only(scene.release(1, trigger=Trigger.GC))

    assert found.variant == "release"
    assert scene.detector.verdict == "clean"


@pytest.mark.parametrize("trigger", [*(set(Trigger) - {Trigger.GC}), None])
def test_other_triggers_are_not_told_as_that(scene, trigger):
    scene.claim(1)
    found = [*scene.discard(1, {"a": 1}, trigger=trigger), *scene.release(1)]

    assert "finalizer-by-gc" not in {one.anomaly for one in found}
