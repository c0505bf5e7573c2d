"""From a race in an application to the pager, with real programs all the way.

application ─ OTLP ─▶ rotel ─ OTLP ─▶ tenure watch
                                          ▲
                                      Prometheus ─▶ Alertmanager ─▶ pager
"""

import sys
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from ..deploy.promql import asked_by  # noqa: TID252 - tests are no package
from ..deploy.stack import panel_expressions, rules  # noqa: TID252
from .backends import (
    DEMO,
    ROOT,
    Rotel,
    alertmanager,
    application,
    prometheus,
    quick,
    started,
    traffic,
    until,
    watch,
)

RULES = ROOT / "deploy" / "prometheus" / "rules" / "tenure.yml"


def test_a_race_reaches_the_pager_and_is_resolved_and_clean_traffic_is_not(
    tmp_path: Path,
):
    page = [sys.executable, str(DEMO / "pager.py"), "--port", "0"]
    with (
        started("pager", page, tmp_path) as pager,
        alertmanager(tmp_path, pager_address := pager.line()) as manager,
        watch(tmp_path) as (_, listening),
        prometheus(
            tmp_path,
            {"tenure-watch": listening["http"].removeprefix("http://")},
            alertmanager=manager,
            rules=quick(RULES.read_text()),
        ) as asked,
    ):
        collector = Rotel(tmp_path, f"http://{listening['grpc']}")
        with (
            collector.running(),
            application(tmp_path, "agent-framework", f"http://{collector.grpc}") as url,
        ):
            calm = traffic("clean", url, "--rounds", "1", "--pause", "0")
            assert calm.returncode == 0, calm.stderr
            until(lambda: asked.value("tenure_watch_operations_total"))
            until(lambda: httpx.get(pager_address).json()["heartbeat"])
            assert asked.firing() == {"TenureWatchdog"}
            assert pager.lines.empty()

            raced = traffic("race", url)
            assert raced.returncode == 0, raced.stdout + raced.stderr
            until(asked.firing, lambda firing: "TenureOwnershipViolation" in firing)
            # One may be told before the other is found, and again with it.
            told: set[str] = set()
            while len(told) < 2:
                told.add(pager.line())

        engine = f"tenure_engine=agent-framework/{version('agent-framework-core')}"
        about = f"[critical] {engine} tenure_workflow_name=answers"
        assert {line.split(":")[0] for line in told} == {
            f"firing TenureOwnershipViolation {about} tenure_anomaly={anomaly}"
            for anomaly in ("stale-discard", "leaked-write")
        }
        assert all("docs/runbooks/ownership-violation.md" in line for line in told)
        # Alertmanager repeats what still fires when one of a group changes.
        ended: set[str] = set()
        while len(ended) < 2:
            line = pager.line()
            if line.startswith("resolved TenureOwnershipViolation"):
                ended.add(line)
        assert "TenureOwnershipViolation" not in asked.firing()


def test_tenures_own_engine_averts_the_same_race_and_nobody_is_paged(tmp_path: Path):
    with (
        watch(tmp_path) as (_, listening),
        prometheus(
            tmp_path,
            {"tenure-watch": listening["http"].removeprefix("http://")},
            rules=quick(RULES.read_text()),
        ) as asked,
        application(tmp_path, "tenure", f"http://{listening['grpc']}") as url,
    ):
        raced = traffic("race", url, "--attempts", "1")
        assert raced.returncode == 1, "no violation"
        assert "stale-discard (averted)" in raced.stdout
        until(
            lambda: asked.value('tenure_violations_total{tenure_severity="averted"}'),
            lambda found: found == 1,
        )
        until(lambda: asked.value("tenure:findings:recent"))
        assert asked.firing() == {"TenureWatchdog"}


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory):
    """A Prometheus that scrapes an application whose spans nobody takes."""
    folder = tmp_path_factory.mktemp("scraped")
    program = [sys.executable, str(ROOT / "tests" / "deploy" / "measured.py"), "serve"]
    with (
        started("measuring", program, folder) as running,
        watch(folder) as (_, listening),
        prometheus(
            folder,
            {
                "applications": running.line(),
                "tenure-watch": listening["http"].removeprefix("http://"),
            },
            rules=RULES.read_text(),
        ) as asked,
    ):
        httpx.post(f"{listening['http']}/v1/traces", json={}).raise_for_status()
        until(lambda: asked.query("tenure:spans_lost:recent"))
        # A rate needs two samples.
        until(lambda: asked.query("rate(tenure_commits_total[10s])"))
        yield asked


def test_every_panel_and_every_rule_is_answered_by_a_real_prometheus(scraped):
    asked = [(rule.get("alert", "record"), rule["expr"]) for rule in rules()]
    silent = []
    for name, expression in [*panel_expressions(), *asked]:
        found = scraped.query(expression.replace("[1m]", "[10s]"))
        others = ("otelcol_", "traces_span_metrics_")
        mine = not any(each.startswith(others) for each in asked_by(expression).labels)
        if not found and mine:
            silent.append(name)
    # Panels all show something; an alert is silent when all is well.
    assert all(name.startswith(("Tenure", "record")) for name in silent), silent
    assert "TenureSpansLost" not in silent
    assert "TenureOwnershipViolation" not in silent


def test_the_loss_of_spans_is_visible_and_alerted(scraped):
    until(scraped.firing, lambda firing: "TenureSpansLost" in firing)
    lost = scraped.query(
        'sum by (error_type) (otel_sdk_processor_span_processed_total{error_type!=""})'
    )
    assert [each["metric"] for each in lost] == [{"error_type": "queue_full"}]
    assert float(lost[0]["value"][1]) > 0
