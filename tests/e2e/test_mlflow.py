"""A race, as MLflow shows it: over OTLP, through a collector and directly."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .backends import TENURE, Rotel, application, environment, traffic, until
from .mlflow_server import MLflow, attributes, mlflow

pytestmark = [pytest.mark.mlflow, pytest.mark.timeout(240)]


def named(spans: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [span for span in spans if span["name"] == name]


def race(url: str, server: MLflow) -> list[dict[str, Any]]:
    """Let a race happen, and return the spans once the end of it has arrived."""
    raced = traffic("race", url, "--attempts", "5")
    assert raced.returncode == 0, raced.stdout + raced.stderr

    def complete(spans: list[dict[str, Any]]) -> bool:
        ended = [
            attributes(span).get("tenure.run.outcome")
            for span in named(spans, "run answers")
        ]
        return "completed" in ended and len(named(spans, "violation")) >= 2

    return until(server.spans, complete)


def shows_the_race(spans: list[dict[str, Any]]) -> None:
    by_id = {span["spanId"]: span for span in spans}
    (run,) = (
        span
        for span in named(spans, "run answers")
        if attributes(span)["tenure.run.outcome"] == "completed"
    )
    children = {
        span["name"] for span in spans if span.get("parentSpanId") == run["spanId"]
    }
    assert {"own answers", "superstep"} <= children
    (own,) = (
        span
        for span in named(spans, "own answers")
        if span.get("parentSpanId") == run["spanId"]
    )
    # The new owner's span links to the one before.
    assert by_id[own["links"][0]["spanId"]]["name"] == "own answers"

    violations = {
        attributes(span)["tenure.anomaly"]: span for span in named(spans, "violation")
    }
    assert set(violations) == {"stale-discard", "leaked-write"}
    told = violations["stale-discard"]
    assert told["status"]["code"] == "STATUS_CODE_ERROR"
    culprit, owner = (by_id[link["spanId"]] for link in told["links"])
    assert (culprit["name"], owner["spanId"]) == ("discard", own["spanId"])
    facts = attributes(culprit)
    assert facts["tenure.run.epoch"] != facts["tenure.owner.epoch"]
    assert facts["tenure.write.epochs"] == [facts["tenure.owner.epoch"]]
    assert attributes(told)["tenure.keys"] == facts["tenure.write.keys"]


def judged(spans: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return what the offline detector says of what MLflow gave back."""
    file = folder / "from-mlflow.jsonl"
    # Without its violations: it has to find them again.
    kept = [span for span in spans if span["name"] != "violation"]
    file.write_text(
        json.dumps({
            "resourceSpans": [
                {"scopeSpans": [{"scope": {"name": "tenure.runtime"}, "spans": kept}]}
            ]
        })
    )
    done = subprocess.run(
        [*TENURE, "check", "--json", str(file)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)


ONLY_SPANS = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_mlflow_behind_a_collector_shows_the_run_its_links_and_the_violation(
    tmp_path: Path, protocol: str
):
    with mlflow(tmp_path) as server:
        collector = Rotel(
            tmp_path,
            server.url,
            ROTEL_OTLP_EXPORTER_PROTOCOL="http",
            ROTEL_OTLP_EXPORTER_CUSTOM_HEADERS=server.header,
        )
        endpoint = collector.grpc if protocol == "grpc" else collector.http
        with (
            collector.running(),
            application(
                tmp_path,
                "agent-framework",
                f"http://{endpoint}",
                OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                **ONLY_SPANS,
            ) as url,
        ):
            spans = race(url, server)
        shows_the_race(spans)
        found = judged(spans, tmp_path)
        assert {each["anomaly"] for each in found["findings"]} >= {
            "stale-discard",
            "leaked-write",
        }


def test_mlflow_itself_takes_what_is_exported(tmp_path: Path):
    with (
        mlflow(tmp_path) as server,
        application(
            tmp_path,
            "agent-framework",
            server.url,
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_HEADERS=server.header,
            **ONLY_SPANS,
        ) as url,
    ):
        shows_the_race(race(url, server))
