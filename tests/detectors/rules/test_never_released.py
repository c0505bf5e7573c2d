"""Never released: a run that owns its instance and is silent."""

import pytest

from tenure.detectors import Certainty, Detector, Severity


@pytest.fixture
def silent(scene):
    scene.detector = Detector(announce=(), silent_after=10)
    return scene


def test_a_run_that_is_silent_for_too_long_may_never_be_released(silent, only):
    silent.claim(1)
    assert silent.detector.advance(100) == ()
    assert silent.detector.advance(109) == ()
    found = only(silent.detector.advance(110))

    assert (found.anomaly, found.variant) == ("never-released", "silent")
    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.POSSIBLE)
    assert found.culprit_epoch == 1
    assert silent.detector.findings == (found,)


def test_it_is_told_once_and_again_when_it_has_spoken(silent, only):
    silent.claim(1)
    silent.detector.advance(0)
    only(silent.detector.advance(10))
    assert silent.detector.advance(100) == ()
    silent.execute(1, "a")
    assert silent.detector.advance(101) == ()

    only(silent.detector.advance(111))


def test_a_run_that_has_released_may_be_silent(silent):
    silent.claim(1)
    silent.release(1)
    silent.detector.advance(0)

    assert silent.detector.advance(1_000) == ()


def test_a_release_that_comes_late_puts_everything_right(silent, only):
    silent.claim(1)
    silent.detector.advance(0)
    only(silent.detector.advance(10))
    silent.release(1)

    assert silent.detector.verdict == "clean"


def test_an_operation_of_another_process_is_a_sign_of_life(silent):
    silent.claim(1)
    silent.detector.advance(0)
    silent.claim(2, superseded=1, process="q")

    assert silent.detector.advance(10) == ()


def test_an_operation_without_a_number_is_a_sign_of_life(silent):
    silent.claim(1)
    silent.detector.advance(0)
    head = silent.detector.feed
    silent.detector.feed = lambda operation: head(unnumbered(operation))
    silent.execute(1, "a")

    assert silent.detector.advance(10) == ()


def unnumbered(operation):
    from dataclasses import replace

    return replace(operation, seq=None)


def test_a_clock_that_goes_back_begins_anew(silent):
    silent.claim(1)
    silent.detector.advance(100)

    assert silent.detector.advance(5) == ()
    assert silent.detector.advance(14) == ()
