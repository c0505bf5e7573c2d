"""A timeline is readable on every terminal, whatever it shows."""

import io
import logging

import pytest
from rich.console import Console

from tenure.cli._demo.agent_framework import AgentFramework
from tenure.cli._demo.described import deviations
from tenure.cli._demo.noise import KeptAside
from tenure.cli._demo.play import Played, play
from tenure.cli._demo.report import print_outcome, print_timeline
from tenure.cli._demo.tenure import Tenure


@pytest.fixture(scope="module")
def agent_framework() -> Played:
    return play(AgentFramework())


@pytest.fixture(scope="module")
def tenure() -> Played:
    return play(Tenure())


def printed(played: Played, *, width: int = 100, terminal: bool = False) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=terminal, highlight=False, markup=False
    )
    print_timeline(console, played)
    return file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_longer_than_the_terminal(agent_framework: Played, width: int):
    text = printed(agent_framework, width=width)

    assert max(len(line) for line in text.splitlines()) <= width


def test_even_a_terminal_that_is_far_too_narrow_shows_something(
    agent_framework: Played,
):
    assert "epoch" in printed(agent_framework, width=20)


def test_the_guilty_operations_stand_out_in_colour(agent_framework: Played):
    text = printed(agent_framework, terminal=True)

    assert text.count("\x1b[1;31m✗") == 2


def test_colour_is_left_out_where_it_is_not_wanted(
    agent_framework: Played, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[1;31m" not in printed(agent_framework, terminal=True)


def test_a_run_that_no_longer_owns_the_instance_stands_outside_its_lane(
    tenure: Played,
):
    lines = printed(tenure).splitlines()
    (release,) = (line for line in lines if "releases (superseded)" in line)
    (refused,) = (line for line in lines if "refused" in line and "✓" in line)

    assert release.index("│") < release.index("releases")
    assert refused.index("✓") < refused.index("│")


def test_every_operation_has_its_position_and_none_is_missing(tenure: Played):
    positions = [
        int(line.split()[0])
        for line in printed(tenure).splitlines()
        if line[:1].isdigit()
    ]

    assert positions == list(range(1, len(positions) + 1))
    assert len(positions) > 10


def test_what_an_engine_logs_meanwhile_is_shown_and_not_hidden(tenure: Played):
    with KeptAside("some.engine") as kept:
        logging.getLogger("some.engine.part").error("Task was %s", "destroyed")

    shown = printed(
        Played(
            engine="some/1",
            expected={},
            state={},
            entries=(),
            findings=(),
            verdict=tenure.verdict,
            logged=kept.messages,
        )
    )

    assert "logged meanwhile: Task was destroyed" in shown


def test_both_engines_do_what_is_described(agent_framework: Played, tenure: Played):
    assert deviations(agent_framework) == ()
    assert deviations(tenure) == ()


def test_an_engine_that_loses_nothing_where_it_was_to_is_a_deviation(
    agent_framework: Played, tenure: Played
):
    exchanged = Played(
        engine=agent_framework.engine,
        expected=tenure.expected,
        state=tenure.state,
        entries=tenure.entries,
        findings=tenure.findings,
        verdict=tenure.verdict,
    )

    assert deviations(exchanged) == (
        "answer:second was to be lost, lost is nothing",
        "answer:first was to be leaked, leaked is nothing",
        "the detector was to find a stale-discard of answer:second, and did not",
        "the detector was to find a leaked-write of answer:first, and did not",
    )


def test_a_tenure_that_lost_a_write_is_a_deviation(
    agent_framework: Played, tenure: Played
):
    exchanged = Played(
        engine=tenure.engine,
        expected=agent_framework.expected,
        state=agent_framework.state,
        entries=agent_framework.entries,
        findings=agent_framework.findings,
        verdict=agent_framework.verdict,
    )
    file = io.StringIO()
    print_outcome(Console(file=file, width=100), [exchanged])

    assert deviations(exchanged) == (
        "nothing was to be lost, lost is answer:second",
        "nothing was to be leaked, leaked is answer:first",
        "the detector was to find an averted stale-discard, and did not",
        "the detector was not to find a leaked-write, and did",
        "the detector was not to find a stale-discard, and did",
    )
    assert file.getvalue().count(f"not as described on {tenure.engine}: ") == 5


@pytest.mark.parametrize("attempt", range(5))
def test_the_story_turns_out_the_same_every_time(attempt: int):
    assert deviations(play(AgentFramework())) == ()
    assert deviations(play(Tenure())) == ()


def test_without_watching_an_engine_that_tells_nothing_has_no_findings():
    played = play(AgentFramework(), watch=False)

    assert played.findings == ()
    assert (played.lost, played.leaked) == (("answer:second",), ("answer:first",))
    assert played.verdict == "inconclusive"
