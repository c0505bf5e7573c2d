"""Rules, panels, runbooks: each name in them is a name in the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client.parser import text_string_to_metric_families

from tenure.detectors import Detector
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.intake import Admission, Answer
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import (
    Discard,
    DiscardCause,
    Owner,
    RunRef,
    SpanRef,
    WriteSet,
)

from .promql import asked_by
from .stack import ROOT, alerts, panel_expressions, read, rules, services
from .test_compose import LISTENING

RUNBOOKS = ROOT / "docs" / "runbooks"
ALERTS = alerts()
# What Prometheus, the collector and its connector measure, by their own documentation.
# None of them runs here: these names are all that is not proven.
OTHERS = {
    "up": set(),
    "ALERTS": {"alertname", "alertstate"},
    "otelcol_exporter_send_failed_spans_total": {"exporter"},
    "otelcol_exporter_enqueue_failed_spans_total": {"exporter"},
    "otelcol_receiver_refused_spans_total": {"receiver"},
    "traces_span_metrics_duration_milliseconds_bucket": {
        "span_name",
        "le",
        "tenure_workflow_name",
    },
}
BY_SCRAPING = {"job", "instance"}
Series = dict[str, set[str]]


def series(exposed: str) -> Series:
    found: Series = {}
    for family in text_string_to_metric_families(exposed):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def stale_discard() -> Discard:
    return Discard(
        run=RunRef("x/1", "press", "i", "run-1", 1, "p"),
        seq=1,
        owner=Owner(2, "run-2"),
        span=SpanRef(0x123, 0x45),
        cause=DiscardCause.FINALIZER,
        fenced=False,
        writes=WriteSet((("k", 2),)),
    )


@pytest.fixture(scope="module")
def measured() -> Series:
    """What an application measures that runs, races and loses spans."""
    program = Path(__file__).with_name("measured.py")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )
    return series(done.stdout)


@pytest.fixture(scope="module")
def watched() -> Series:
    """What a sidecar measures to which everything has happened."""
    figures = Figures()
    figures.answered("grpc", "traces", Answer(Admission.ACCEPTED))
    figures.forwarded("sent")
    figures.hook("webhook", "called")
    figures.watch_queue("judge", lambda: 0)
    figures.watch_memory(lambda: 0, 1)
    (finding,) = Detector(announce=()).feed(stale_discard())
    figures.found(finding)
    return series(figures.page("text/plain")[0].decode())


@pytest.fixture(scope="module")
def known(measured: Series, watched: Series) -> Series:
    recorded = {
        rule["record"]: set().union(
            *(
                {**measured, **watched}.get(name, set())
                for name in asked_by(rule["expr"]).labels
            )
        )
        for rule in rules()
        if "record" in rule
    }
    return {**OTHERS, **measured, **watched, **recorded}


EXPRESSIONS = [
    *((rule.get("alert") or rule["record"], rule["expr"]) for rule in rules()),
    *panel_expressions(),
]


@pytest.mark.parametrize(
    "expression",
    [text for _, text in EXPRESSIONS],
    ids=[name for name, _ in EXPRESSIONS],
)
def test_every_metric_and_label_that_is_asked_for_exists(
    known: Series, expression: str
):
    asked = asked_by(expression)
    assert asked.labels or expression == "vector(1)"
    for name, labels in asked.labels.items():
        assert name in known
        assert labels - BY_SCRAPING <= known[name], name
    somewhere = set().union(*(known[name] for name in asked.labels), BY_SCRAPING)
    assert asked.grouped <= somewhere


def test_an_unknown_metric_would_be_noticed(known: Series):
    (name,) = asked_by('sum by (job) (rate(tenure_comits_total{a="b"}[5m])) > 0').labels
    assert name == "tenure_comits_total"
    assert name not in known


def test_every_metric_of_the_code_is_exposed_under_the_name_that_it_should_have(
    measured: Series,
):
    units = {
        semconv.METRIC_RUN_DURATION: "_seconds_bucket",
        semconv.METRIC_SUPERSTEP_DURATION: "_seconds_bucket",
        semconv.METRIC_RUN_ACTIVE: "",
    }
    names = [
        getattr(semconv, name) for name in dir(semconv) if name.startswith("METRIC_")
    ]
    assert len(names) >= 6
    for name in names:
        assert name.replace(".", "_") + units.get(name, "_total") in measured


def test_one_alert_serves_both_the_application_and_the_sidecar(
    measured: Series, watched: Series
):
    both = measured["tenure_violations_total"] & watched["tenure_violations_total"]
    assert both == watched["tenure_violations_total"]


def test_a_counted_violation_leads_to_the_trace_of_the_culprit():
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    Detector(announce=["metric"], meter_provider=provider).feed(stale_discard())
    ((point,),) = (
        metric.data.data_points
        for resource in reader.get_metrics_data().resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    )
    provider.shutdown()

    assert [each.trace_id for each in point.exemplars] == [0x123]
    exporter = read("deploy/collector.yaml")["exporters"]["prometheus"]
    assert exporter["enable_open_metrics"] is True, "or it leaves exemplars out"
    options = services()["prometheus"]["command"]
    assert "--enable-feature=exemplar-storage" in options


def test_every_metric_of_tenure_is_looked_at_by_somebody(known: Series):
    asked = {name for _, text in EXPRESSIONS for name in asked_by(text).labels}
    families = {
        name.replace(".", "_")
        for name in vars(semconv).values()
        if isinstance(name, str)
        and name.startswith("tenure.")
        and f"{name.replace('.', '_')}_total" in known
    }
    assert families
    for family in families:
        assert f"{family}_total" in asked


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_and_what_to_do(name: str):
    alert = ALERTS[name]
    assert re.fullmatch(r"Tenure([A-Z][a-z]+)+", name)
    assert alert["labels"]["severity"] in {"critical", "warning", "none"}
    assert alert["annotations"]["summary"]
    page = ROOT / alert["annotations"]["runbook"]
    text = page.read_text("utf-8")
    assert text.startswith(f"# {name}\n")
    for part in ("## What it means", "## What to do", "## When it is wrong"):
        assert part in text


def test_every_runbook_belongs_to_an_alert():
    pages = {f"docs/runbooks/{page.name}" for page in RUNBOOKS.glob("*.md")}
    index = {"docs/runbooks/index.md"}
    assert pages - index == {
        alert["annotations"]["runbook"] for alert in ALERTS.values()
    }
    told = (RUNBOOKS / "index.md").read_text("utf-8")
    assert all(f"[{name}]" in told for name in ALERTS)


def test_a_violation_is_told_at_once():
    assert "for" not in ALERTS["TenureOwnershipViolation"]
    routes = read("deploy/alertmanager.yml")["route"]["routes"]
    assert routes[0]["matchers"] == ['severity="critical"']
    assert routes[0]["group_wait"] == "0s"


def test_alertmanager_names_alerts_and_receivers_that_exist():
    config = read("deploy/alertmanager.yml")
    named = set(re.findall(r'alertname="(\w+)"', str(config)))
    assert named
    assert named <= set(ALERTS)
    receivers = {each["name"] for each in config["receivers"]}
    routes = [config["route"], *config["route"]["routes"]]
    assert {route["receiver"] for route in routes} == receivers


def test_prometheus_asks_services_where_they_listen():
    config = read("deploy/prometheus/prometheus.yml")
    managers = config["alerting"]["alertmanagers"]
    asked = [
        target.split(":")
        for part in (*config["scrape_configs"], *managers)
        for static in part["static_configs"]
        for target in static["targets"]
    ]
    assert len(asked) > 5
    for host, port in asked:
        service = "prometheus" if host == "127.0.0.1" else host
        assert int(port) in LISTENING[service]
        assert service in services()


def test_jobs_that_rules_name_are_scraped():
    jobs = {
        each["job_name"]
        for each in read("deploy/prometheus/prometheus.yml")["scrape_configs"]
    }
    for alert in ALERTS.values():
        for listed in re.findall(r'job=~"([^"]+)"', alert["expr"]):
            assert set(listed.split("|")) <= jobs


def test_alerts_are_tried_on_series_that_exist(known: Series):
    played = read("tests/deploy/rules.test.yml")["tests"]
    series = [
        each["series"] for test in played for each in test.get("input_series", ())
    ]
    assert series
    for each in series:
        ((name, labels),) = asked_by(each).labels.items()
        assert name in known
        assert labels - BY_SCRAPING <= known[name], each


def test_every_alert_is_tried():
    tried = {
        each["alertname"]
        for test in read("tests/deploy/rules.test.yml")["tests"]
        for each in test["alert_rule_test"]
        if each.get("exp_alerts")
    }
    assert tried == set(ALERTS)
