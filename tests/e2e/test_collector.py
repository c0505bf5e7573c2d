"""Through a collector that is not ours, by either protocol: everything arrives."""

import json
import re
from pathlib import Path

import httpx
import pytest

from .backends import Rotel, until, watch
from .test_faults import worker


def figure(page: str, name: str) -> float:
    found = re.search(rf"^{name}(?:{{.*}})? (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("onwards", ["grpc", "http"])
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_every_span_arrives_and_the_sidecar_behind_says_what_the_process_says(
    tmp_path: Path, protocol: str, onwards: str, compression: str | None
):
    packed = {} if compression is None else {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}
    with watch(tmp_path) as (watching, listening):
        target = listening["http"].removeprefix("http://")
        target = listening["grpc"] if onwards == "grpc" else target
        collector = Rotel(
            tmp_path, f"http://{target}", ROTEL_OTLP_EXPORTER_PROTOCOL=onwards
        )
        endpoint = collector.grpc if protocol == "grpc" else collector.http
        with (
            collector.running(),
            worker(
                tmp_path,
                f"http://{endpoint}",
                OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
                **packed,
            ) as application,
        ):
            told = application.ask("runs")
            assert application.ask("flush") is True
            exported = application.ask("losses")
            assert set(exported) == {"processor", "exporter"}, "nothing is lost"
            page = until(
                lambda: httpx.get(f"{listening['http']}/metrics").text,
                lambda page: (
                    figure(page, "tenure_watch_spans_total") == exported["exporter"]
                    and figure(page, "tenure_watch_operations_total")
                    > told["operations"]
                ),
            )
            assert figure(page, "tenure_watch_rejected_spans_total") == 0
        watching.process.terminate()
        lines = [json.loads(watching.line())]
        while lines[-1]["event"] != "ended":
            lines.append(json.loads(watching.line()))
    assert [
        [line["anomaly"], line["severity"]] for line in lines if "anomaly" in line
    ] == told["findings"]
    assert lines[-1]["verdict"] == told["verdict"] == "clean"
