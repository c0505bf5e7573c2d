"""Severity is a policy: users may have another opinion than the catalogue."""

import pytest

from tenure.detectors import Detector, Severity


def judged(scene, severity):
    """Play a stale discard without a victim, then one with, under a policy."""
    scene.detector = Detector(announce=(), severity=severity)
    scene.superseded()
    scene.discard(1, {"a": 1})
    scene.discard(1, {"b": 2})
    scene.release(2)
    return [(one.variant, one.severity) for one in scene.detector.findings]


def test_without_a_policy_the_catalogue_decides(scene):
    assert judged(scene, None) == [
        ("no-victim", Severity.WARNING),
        ("victim", Severity.VIOLATION),
    ]


def test_a_slug_is_the_anomaly_in_all_its_forms(scene):
    assert judged(scene, {"stale-discard": "information"}) == [
        ("no-victim", Severity.INFORMATION),
        ("victim", Severity.INFORMATION),
    ]


def test_the_more_precise_name_counts(scene):
    policy = {
        "stale-discard": Severity.WARNING,
        "stale-discard/no-victim": Severity.AVERTED,
    }

    assert judged(scene, policy) == [
        ("no-victim", Severity.AVERTED),
        ("victim", Severity.WARNING),
    ]


def test_a_callable_is_given_the_finding_with_the_catalogues_severity(scene):
    seen = []

    def policy(finding):
        seen.append(finding.severity)
        return "warning"

    assert {severity for _, severity in judged(scene, policy)} == {Severity.WARNING}
    assert seen == [Severity.WARNING, Severity.VIOLATION]


@pytest.mark.parametrize(
    ("severity", "verdict"),
    [("violation", "violated"), ("warning", "inconclusive"), ("information", "clean")],
)
def test_the_verdict_follows_the_policy(scene, severity, verdict):
    judged(scene, {"stale-discard": severity})

    assert scene.detector.verdict == verdict


def test_the_policy_outlives_a_clear(scene):
    scene.detector = Detector(announce=(), severity={"stale-discard": "information"})
    scene.detector.clear()
    (found,) = scene.superseded().discard(1, {"b": 2})

    assert found.severity is Severity.INFORMATION


def test_the_policy_judges_what_the_clock_brings_up(scene):
    scene.detector = Detector(
        announce=(), severity={"never-released": "information"}, silent_after=1
    )
    scene.claim(1)
    scene.detector.advance(0)
    (found,) = scene.detector.advance(1)

    assert found.severity is Severity.INFORMATION


@pytest.mark.parametrize(
    "name", ["stale_discard", "stale-discard/nobody", "no-victim", ""]
)
def test_a_name_that_nobody_has_is_refused_with_those_that_exist(name):
    with pytest.raises(ValueError, match="no anomaly is called") as refused:
        Detector(announce=(), severity={name: "warning", "fork": "warning"})

    assert f"is called {name};" in str(refused.value)
    assert "stale-discard/no-victim" in str(refused.value)


def test_a_severity_that_does_not_exist_is_refused_with_those_that_do():
    with pytest.raises(ValueError, match="fork cannot have the severity 'bad'") as no:
        Detector(announce=(), severity={"fork": "bad"})

    assert "violation, warning, averted, information" in str(no.value)


@pytest.mark.parametrize("answer", [None, "bad", ZeroDivisionError()])
def test_a_callable_that_fails_is_logged_and_has_no_say(scene, caplog, answer):
    def policy(_):
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert ("victim", Severity.VIOLATION) in judged(scene, policy)
    assert "A severity policy could not judge a finding" in caplog.text
