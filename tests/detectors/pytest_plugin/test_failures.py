"""What fails a watched test, and what the failure says."""

import pytest

from tenure.instrumentation import listeners


def test_a_marked_test_with_a_violation_fails_with_the_proof_and_the_timeline(run):
    result = run(
        """
@pytest.mark.tenure
def test_race():
    told.Instance().violation()
"""
    )

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "tenure found stale discard (violation) in press",
        "",
        "violated: 1 violation in 4 operations*",
        "press / i on engine/1.2",
        "*1*epoch 1 claims",
        "*3*epoch 2 claims, supersedes epoch 1",
        "*4*epoch 1 discards (finalizer): b of epoch 2",
        "*let epoch 1 be run r1 and epoch 2 be run r2;",
        "*then epoch 2 owned the instance at seq 4 of *, and had staged `b`;",
        "*however, epoch 1 discarded `b` (cause: finalizer)",
        "FAILED test_it.py::test_race - *tenure found stale*",
    ])
    # The traceback of the plugin says nothing about the test.
    result.stdout.no_fnmatch_line("*_watch.py*")


def test_without_mark_or_option_nothing_is_watched(run):
    source = """
def test_race():
    told.Instance().violation()
    from tenure.instrumentation import listeners
    assert not listeners.anyone_listens()
"""
    run(source).assert_outcomes(passed=1)


def test_the_option_watches_every_test(run):
    result = run(
        """
def test_race():
    told.Instance().violation()

def test_quiet():
    pass
""",
        "--tenure",
    )
    result.assert_outcomes(failed=1, passed=1)


def test_a_test_is_judged_for_itself_alone(run):
    result = run(
        """
@pytest.mark.tenure
def test_race():
    told.Instance().violation()

@pytest.mark.tenure
def test_after_it():
    told.Instance().end()
"""
    )
    result.assert_outcomes(failed=1, passed=1)
    assert not listeners.anyone_listens()


WARNS = """
@pytest.mark.tenure
def test_warns():
    told.Instance().warning()
"""


def test_a_warning_fails_nothing_by_default_and_is_shown(run):
    result = run(WARNS, "-rP")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([
        "*- tenure: stale discard (warning) in press -*",
        "inconclusive: 1 warning*",
    ])


def test_a_warning_fails_a_test_where_the_setting_says_so(run):
    run(WARNS, "-o", "tenure_fail_on=warning").assert_outcomes(failed=1)


def test_the_mark_says_for_its_test_what_fails_it(run):
    source = """
@pytest.mark.tenure(fail_on="violation")
def test_warns():
    told.Instance().warning()

@pytest.mark.tenure(fail_on="warning")
class TestStrict:
    def test_warns(self):
        told.Instance().warning()

    @pytest.mark.tenure(fail_on="violation")
    def test_is_marked_for_itself(self):
        told.Instance().warning()

    @pytest.mark.tenure(expect=["late-write"])
    def test_is_marked_otherwise(self):
        told.Instance().late()
        told.Instance("j").warning()
"""
    result = run(source, "-o", "tenure_fail_on=warning")

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines([
        "FAILED test_it.py::TestStrict::test_warns - *",
        "FAILED test_it.py::TestStrict::test_is_marked_otherwise - *",
    ])


def test_what_the_engine_averted_fails_nothing(run):
    result = run(
        """
@pytest.mark.tenure(fail_on="warning")
def test_averted(tenure_detector):
    told.Instance().averted()
    (finding,) = tenure_detector.findings
    assert finding.severity == "averted"
""",
        "-rP",
    )
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*- tenure*")


def test_a_test_that_fails_anyway_keeps_its_failure_and_shows_what_was_found(run):
    result = run(
        """
@pytest.mark.tenure
def test_race():
    told.Instance().violation()
    assert 1 == 2, "its own failure"
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "E       AssertionError: its own failure",
        "*- tenure: stale discard (violation) in press -*",
        "*however, epoch 1 discarded `b` (cause: finalizer)",
        "FAILED test_it.py::test_race - AssertionError: its own failure*",
    ])


def test_a_test_that_skips_itself_after_a_violation_fails(run):
    source = """
@pytest.mark.tenure
def test_race():
    told.Instance().violation()
    pytest.skip("not today")

@pytest.mark.tenure
def test_quiet():
    pytest.skip("not today")
"""
    result = run(source)
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED [[]1[]] test_it.py:12: not today"])
    result.stdout.no_fnmatch_line("*During handling*")


def test_a_violation_is_what_an_expected_failure_may_wait_for(run):
    result = run(
        """
@pytest.mark.xfail(reason="known race")
@pytest.mark.tenure
def test_race():
    told.Instance().violation()
"""
    )
    result.assert_outcomes(xfailed=1)


def test_a_detector_that_fails_is_an_error_and_no_silence(run):
    result = run(
        """
from tenure.instrumentation.listeners import tell

@pytest.mark.tenure
def test_it():
    tell("no operation")
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([
        "E   *AttributeError: *",
        "E   *DetectorError: tenure could not judge this test",
    ])


class TestFixtures:
    def test_a_violation_while_fixtures_are_set_up_fails_the_test(self, run):
        source = """
@pytest.fixture
def racy():
    told.Instance().violation()

@pytest.mark.tenure
def test_race(racy):
    pass
"""
        run(source).assert_outcomes(failed=1)

    def test_a_violation_while_fixtures_are_torn_down_is_an_error_there(self, run):
        result = run(
            """
@pytest.fixture
def racy():
    instance = told.Instance()
    yield
    instance.violation()

@pytest.mark.tenure
def test_race(racy):
    pass
"""
        )
        result.assert_outcomes(passed=1, errors=1)
        result.stdout.fnmatch_lines([
            "*ERROR at teardown of test_race*",
            "tenure found stale discard (violation) in press",
            "*however, epoch 1 discarded `b` (cause: finalizer)",
        ])

    def test_what_failed_the_test_does_not_fail_its_teardown_again(self, run):
        result = run(
            """
@pytest.fixture
def broken():
    told.Instance().violation()
    raise LookupError("no such thing")

@pytest.mark.tenure
def test_race(broken):
    pass
"""
        )
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([
            "E       LookupError: no such thing",
            "*- tenure: stale discard*",
        ])

    def test_a_teardown_that_fails_anyway_keeps_its_failure(self, run):
        result = run(
            """
@pytest.fixture
def broken():
    yield
    told.Instance().violation()
    raise LookupError("no such thing")

@pytest.mark.tenure
def test_race(broken):
    pass

@pytest.mark.tenure
def test_after_it():
    pass
"""
        )
        result.assert_outcomes(passed=2, errors=1)
        result.stdout.fnmatch_lines([
            "E       LookupError: no such thing",
            "*- tenure: stale discard*",
        ])


class TestExpectations:
    def test_a_test_passes_only_if_what_it_expects_was_found(self, run):
        result = run(
            """
@pytest.mark.tenure(expect=["stale-discard"])
def test_found():
    told.Instance().violation()

@pytest.mark.tenure(expect=["stale-discard"])
def test_not_found():
    told.Instance().end()

@pytest.mark.tenure(expect=["stale-discard", "late-write"])
def test_half_found():
    told.Instance().violation()
"""
        )
        result.assert_outcomes(passed=1, failed=2)
        result.stdout.fnmatch_lines([
            "tenure did not find what the test expects: stale-discard",
            "clean: no findings in *",
            "tenure did not find what the test expects: late-write",
            "violated: 1 violation in *",
        ])

    def test_a_finding_that_is_not_expected_fails_the_test_all_the_same(self, run):
        source = """
@pytest.mark.tenure(expect="late-write")
def test_race():
    told.Instance().late()
    told.Instance("j").violation()
"""
        result = run(source)
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["tenure found stale discard (violation) in press"])
        result.stdout.no_fnmatch_line("*did not find*")

    def test_what_was_averted_is_not_what_a_test_expects(self, run):
        source = """
@pytest.mark.tenure(expect="stale-discard")
def test_race():
    told.Instance().averted()
"""
        run(source).assert_outcomes(failed=1)

    def test_an_expected_violation_hides_no_failure(self, run):
        result = run(
            """
@pytest.mark.tenure(expect="stale-discard")
def test_race():
    raise LookupError("no such thing")
"""
        )
        result.assert_outcomes(failed=1)
        result.stdout.fnmatch_lines(["E       LookupError: no such thing"])
        result.stdout.no_fnmatch_line("*did not find*")

    def test_what_is_expected_may_happen_again_while_fixtures_are_torn_down(self, run):
        source = """
@pytest.fixture
def instance():
    instance = told.Instance()
    yield instance
    instance.violation()

@pytest.mark.tenure(expect="stale-discard")
def test_race(instance):
    instance.violation()
"""
        run(source).assert_outcomes(passed=1)


class TestDetectorFixture:
    def test_alone_it_watches_and_judges_nothing(self, run):
        source = """
def test_race(tenure_detector):
    told.Instance().violation()
    (finding,) = tenure_detector.findings
    assert finding.anomaly == "stale-discard"
    assert tenure_detector.verdict == "violated"
"""
        run(source).assert_outcomes(passed=1)

    def test_it_is_there_for_a_test_that_asks_for_it_late(self, run):
        source = """
def test_race(request):
    detector = request.getfixturevalue("tenure_detector")
    told.Instance().violation()
    assert len(detector.findings) == 1
"""
        run(source).assert_outcomes(passed=1)
        assert not listeners.anyone_listens()

    def test_with_the_mark_the_test_fails_whatever_it_makes_of_the_findings(self, run):
        source = """
@pytest.mark.tenure
def test_race(tenure_detector):
    told.Instance().violation()
    tenure_detector.clear()
"""
        run(source).assert_outcomes(failed=1)


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ("fail_on='averted'", "has fail_on='averted': say violation or warning"),
            ("expect=['stale-discrd']", "expects stale-discrd: the anomalies are *"),
            ("'stale-discard'", "takes fail_on and expect, by name; not 'stale*"),
            ("expected=[]", "takes fail_on and expect, by name; not expected"),
        ],
    )
    def test_a_mark_that_cannot_be_understood_is_an_error(
        self, run, arguments, problem
    ):
        result = run(
            f"""
@pytest.mark.tenure({arguments})
def test_race():
    pass
"""
        )
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"The mark `tenure` of this test {problem}"])

    def test_a_setting_that_cannot_be_understood_stops_the_session(self, run):
        result = run("", "-o", "tenure_fail_on=always")

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([
            "ERROR: tenure_fail_on = 'always' cannot be used: say violation or warn*"
        ])

    def test_the_mark_and_the_option_are_documented(self, project):
        project.runpytest("--markers").stdout.fnmatch_lines([
            "@pytest.mark.tenure(*fail_on=*expect=*fail the test*"
        ])
        project.runpytest("--help").stdout.fnmatch_lines([
            "  --tenure *",
            "  tenure_fail_on *",
        ])
