"""The demonstration, as a report: what it loses on one engine shows as an arrow."""

import pytest

from tenure.cli._demo.play import play
from tenure.cli._demo.story import Engine
from tenure.detectors import Detector
from tenure.detectors.report import Picture, Report, draw, render_html, render_text
from tenure.instrumentation.operations import Operation


def reported(engine: Engine) -> Report:
    entries = play(engine).entries
    told = [entry for entry in entries if isinstance(entry, Operation)]
    detector = Detector(announce=())
    for operation in told:
        detector.feed(operation)
    return Report.of(detector, told)


def arrows(picture: Picture) -> set[tuple[str, int, int]]:
    return {
        (
            picture.findings[arrow.finding].finding.anomaly,
            section.lanes[arrow.lane].run.epoch,
            section.lanes[arrow.to_lane].run.epoch,
        )
        for section in picture.sections
        for arrow in section.arrows
    }


def test_on_agent_framework_one_write_leaks_and_another_is_lost():
    from tenure.cli._demo.agent_framework import AgentFramework

    shown = reported(AgentFramework())
    assert arrows(draw(shown)) >= {("leaked-write", 2, 1), ("stale-discard", 1, 2)}
    assert "answer:second of epoch 2" in render_text(shown)
    assert "answer:second of epoch 2" in render_html(shown)


def test_on_tenure_the_late_discard_is_refused():
    from tenure.cli._demo.tenure import Tenure

    shown = reported(Tenure())
    assert arrows(draw(shown)) == {("stale-discard", 1, 2)}
    assert render_text(shown).startswith("clean: 1 averted in ")


@pytest.mark.parametrize("name", ["html", "markdown", "text"])
def test_each_medium_has_a_module(name):
    from importlib import import_module

    module = import_module(f"tenure.detectors.report.{name}")
    assert callable(getattr(module, f"render_{name}"))
