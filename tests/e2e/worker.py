"""An application that the tests order about, one word a line, on standard input.

`runs` runs a workflow many times, lets a reader leave in the middle, and prints what
became of it; `flush` exports; `losses` prints how many spans were processed, exported
and lost, by the process's own metrics. The end of the input ends it.
"""

import asyncio
import gc
import json
import os
import sys
from time import perf_counter
from typing import Any

from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tenure.detectors import Detector
from tenure.instrumentation import add_listener, configure_otlp
from tenure.runtime import WorkflowBuilder, WorkflowContext, executor

RUNS = 100


@executor
async def write(number: int, ctx: WorkflowContext[int, int]) -> None:
    ctx.set_state("number", number)
    await ctx.send_message(number + 1)


@executor
async def publish(number: int, ctx: WorkflowContext[None, int]) -> None:
    await ctx.yield_output(number)
    if number == 0:
        await asyncio.Event().wait()


class Press:
    """One workflow, and a detector that listens from its first operation on."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        add_listener(self.heard.append)
        self.found = asyncio.Event()
        self.detector = Detector(lambda _: self.found.set(), announce=()).listen()
        builder = WorkflowBuilder("press", start=write)
        self.workflow = builder.add_edge(write, publish).build()

    async def runs(self) -> dict[str, Any]:
        self.heard.clear()
        before = len(self.detector.findings)
        self.found.clear()
        outputs: list[int] = []
        slowest = 0.0
        for number in range(1, RUNS + 1):
            started = perf_counter()
            outputs += (await self.workflow.run(number)).outputs
            slowest = max(slowest, perf_counter() - started)
        operations = len(self.heard)
        async for event in self.workflow.stream(-1):
            if getattr(event, "data", None) == 0:
                break
        del event
        gc.collect()
        last = await self.workflow.run(RUNS + 1, on_conflict="supersede")
        await self.found.wait()  # what the abandoned run's own clean-up asks for
        return {
            "outputs": [*outputs, *last.outputs],
            "state": dict(self.workflow.state),
            "operations": operations,
            "verdict": self.detector.verdict,
            "findings": [
                [each.anomaly, each.severity]
                for each in self.detector.findings[before:]
            ],
            "slowest": slowest,
        }


def losses(reader: InMemoryMetricReader) -> dict[str, int]:
    """Return how many spans were counted, by where and why."""
    found: dict[str, int] = {}
    data = reader.get_metrics_data()
    for resource in () if data is None else data.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                if metric.name in {
                    "otel.sdk.processor.span.processed",
                    "otel.sdk.exporter.span.exported",
                }:
                    for point in metric.data.data_points:
                        why = point.attributes.get("error.type", "")
                        where = metric.name.split(".")[2]
                        found[f"{where} {why}".strip()] = point.value
    return found


async def main() -> None:
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    bound = os.environ.get("EXIT_TIMEOUT")
    telemetry = (
        configure_otlp() if bound is None else configure_otlp(exit_timeout=float(bound))
    )
    press = Press()
    while line := await asyncio.to_thread(sys.stdin.readline):
        match line.strip():
            case "runs":
                told: object = await press.runs()
            case "flush":
                told = telemetry.force_flush(timeout=20)
            case _:
                told = losses(reader)
        sys.stdout.write(f"{json.dumps(told)}\n")
        sys.stdout.flush()


asyncio.run(main())
