"""A file for spans on a disk that is full: runs are right, and the loss is told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .backends import TENURE, environment

# A limit on the size of a file refuses a write in its middle, as a full disk does.
PROGRAM = """
import asyncio, json, resource, sys
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from tenure.detectors import Detector
from tenure.instrumentation.otlp_json import JsonLinesSpanExporter
from tenure.runtime import WorkflowBuilder, WorkflowContext, executor

path, room = sys.argv[1], int(sys.argv[2])
reader = InMemoryMetricReader()
exporter = JsonLinesSpanExporter(path, meter_provider=MeterProvider([reader]))
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter))
trace.set_tracer_provider(provider)
detector = Detector(announce=()).listen()

@executor
async def count(number: int, ctx: WorkflowContext[None, int]) -> None:
    ctx.set_state("number", number)
    await ctx.yield_output(number)

workflow = WorkflowBuilder("press", start=count).build()

async def runs(numbers):
    return [(await workflow.run(number)).outputs[0] for number in numbers]

def limit(size):
    soft = resource.RLIM_INFINITY if size is None else size
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, resource.RLIM_INFINITY))

limit(room)
outputs = asyncio.run(runs(range(100)))
provider.force_flush()
lost = exporter.lost_spans
limit(None)
outputs += asyncio.run(runs(range(100, 110)))
provider.shutdown()
counted = {
    point.attributes.get("error.type", ""): point.value
    for resource_metrics in reader.get_metrics_data().resource_metrics
    for scope in resource_metrics.scope_metrics
    for metric in scope.metrics
    for point in metric.data.data_points
}
print(json.dumps({
    "outputs": outputs, "verdict": detector.verdict, "lost": lost,
    "lost in all": exporter.lost_spans, "kept": exporter.written_spans,
    "counted": counted,
}))
"""


def play(path: Path, room: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), str(room)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Spans could not be written" in done.stderr
    return json.loads(done.stdout)


def check(path: Path) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [*TENURE, "check", "--json", str(path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_disk_that_fills_up_and_has_room_again(tmp_path: Path):
    file = tmp_path / "spans.jsonl"
    told = play(file, room=100_000)

    assert told["outputs"] == list(range(110))
    assert told["verdict"] == "clean", "the detector in the process has seen everything"
    assert told["lost"] > 0
    assert told["lost in all"] == told["lost"], "there was room again"
    assert told["counted"] == {"": told["kept"], "EFBIG": told["lost"]}

    lines = file.read_bytes().split(b"\n")
    readable = [line for line in lines if line and is_json(line)]
    torn = [line for line in lines if line and not is_json(line)]
    assert len(torn) == 1, (
        "one batch was cut off, and the next begins a line of its own"
    )
    assert sum(map(spans_in, readable)) == told["kept"]

    status, document = check(file)
    assert (status, document["verdict"]) == (3, "inconclusive")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_disk_with_no_room_at_all():
    told = play(Path("/dev/full"), room=-1)

    assert told["outputs"] == list(range(110))
    assert told["verdict"] == "clean"
    assert told["kept"] == 0
    assert told["counted"] == {"ENOSPC": told["lost in all"]}


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def spans_in(line: bytes) -> int:
    return sum(
        len(scope["spans"])
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
    )
