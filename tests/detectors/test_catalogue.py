"""Catalogue, rules, documentation, recorded histories and tests are one set."""

import json
from pathlib import Path

import pytest

from tenure.detectors import CATALOGUE, Certainty, Detector, Severity, Verdict
from tenure.detectors._explain import CLAUSES
from tenure.detectors._lift import lift
from tenure.detectors._rules import RULES, SILENCE_RULES

ROOT = Path(__file__).parents[2]
HISTORIES = Path(__file__).parent / "histories"
PAGES = ROOT / "docs" / "anomalies"
HEADINGS = [
    "## Smallest history",
    "## The proof",
    "## What it implies",
    "## Known as",
    "## Engines that prevent it",
    "## Severity and certainty",
    "## False alarms and missed alarms",
]


VERDICTS = {
    Severity.VIOLATION: Verdict.VIOLATED,
    Severity.WARNING: Verdict.INCONCLUSIVE,
    Severity.INFORMATION: Verdict.CLEAN,
}
EVERY = [*RULES.values(), SILENCE_RULES]


def named(slug: str) -> str:
    return slug.replace("-", "_")


def play(slug: str, which: str) -> Detector:
    """Read a recorded history as the span processor would; spans start before they end.

    A claim is told when its span starts; in the files a span stands where it started.
    """
    spans = json.loads((HISTORIES / f"{slug}.json").read_text(encoding="utf-8"))[which]
    detector = Detector(announce=())
    told = [
        operation
        for span in spans
        for operation in lift(
            span["name"], span["attributes"], end=1 if span["ended"] else None
        ).operations
    ]
    for operation in sorted(told, key=lambda one: one.seq):
        detector.feed(operation)
    # Nothing else ever comes: a run that is not over by now is silent.
    detector.advance(0.0)
    detector.advance(3_600.0)
    return detector


def test_every_anomaly_has_a_rule_a_page_a_history_a_proof_and_a_test():
    slugs = set(CATALOGUE)
    rules = {rule.__name__ for judged in EVERY for rule in judged}
    pages = {page.stem for page in PAGES.glob("*.md")} - {"index"}
    histories = {history.stem for history in HISTORIES.glob("*.json")}
    tests = {test.stem for test in (Path(__file__).parent / "rules").glob("*.py")}

    assert rules == {named(slug) for slug in slugs}
    assert pages == histories == set(CLAUSES) == slugs
    assert tests == {f"test_{named(slug)}" for slug in slugs}


def test_every_rule_has_a_file_of_its_own():
    for judged in EVERY:
        for rule in judged:
            assert rule.__module__.endswith(f"._rules.{rule.__name__}")


@pytest.mark.parametrize("anomaly", CATALOGUE.values(), ids=list(CATALOGUE))
def test_the_recorded_history_holds_the_anomaly(anomaly):
    detector = play(anomaly.slug, "spans")

    (found,) = [one for one in detector.findings if one.anomaly == anomaly.slug]
    never = anomaly.stays_possible_when.startswith("always")
    assert found.certainty is (Certainty.POSSIBLE if never else Certainty.CERTAIN)
    assert found.severity is anomaly.severity
    assert found.severity is anomaly.variants[found.variant]
    assert detector.verdict is VERDICTS[anomaly.severity]


@pytest.mark.parametrize("slug", CATALOGUE)
def test_its_near_miss_is_clean(slug):
    detector = play(slug, "near_miss")

    assert detector.findings == ()
    assert detector.missing == ()
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("anomaly", CATALOGUE.values(), ids=list(CATALOGUE))
def test_its_page_has_the_one_form_and_the_detectors_own_proof(anomaly):
    page = (PAGES / f"{anomaly.slug}.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    found = next(
        one
        for one in play(anomaly.slug, "spans").findings
        if one.anomaly == anomaly.slug
    )

    assert lines[0] == f"# {anomaly.title.capitalize()}"
    assert [line for line in lines if line.startswith("## ")] == HEADINGS
    assert " ".join(found.proof.split()) in " ".join(page.replace("> ", "").split())
    assert f"`{anomaly.slug}`" in page
    for variant, severity in anomaly.variants.items():
        assert f"`{variant}`" in page
        assert f"`{severity}`" in page


def test_the_index_names_every_page():
    index = (PAGES / "index.md").read_text(encoding="utf-8")

    for slug, anomaly in CATALOGUE.items():
        assert f"[{anomaly.title}]({slug}.md)" in index


@pytest.mark.parametrize("anomaly", CATALOGUE.values(), ids=list(CATALOGUE))
def test_the_catalogue_leaves_nothing_but_conditions_empty(anomaly):
    assert anomaly.title.replace(" ", "-") == anomaly.slug
    assert anomaly.variants
    assert anomaly.severity in anomaly.variants.values()
    for text in (anomaly.rule, anomaly.known_as, anomaly.implies):
        assert text
        assert text == text.strip()


def test_the_catalogue_cannot_be_changed():
    with pytest.raises(TypeError):
        CATALOGUE["new"] = None  # type: ignore[index]
