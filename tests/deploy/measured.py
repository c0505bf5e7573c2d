"""Run workflows that end in every way, and print what Prometheus would be told.

The application has a meter provider of its own, which Prometheus reads, and keeps it.
Nobody listens where spans go, and the queue for them is short: spans are lost.

With `serve` it goes on, and its figures are at the address that it prints.
"""

import asyncio
import gc
import os
import socket
import sys
import threading

from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import generate_latest, start_http_server

from tenure.detectors import Detector
from tenure.instrumentation import configure_otlp
from tenure.instrumentation.operations import (
    Discard,
    DiscardCause,
    Owner,
    RunRef,
    WriteSet,
)
from tenure.runtime import WorkflowBuilder, WorkflowContext, executor


@executor
async def write(message: str, ctx: WorkflowContext[None, str]) -> None:
    ctx.set_state("text", message)
    await ctx.yield_output(message)
    if message == "wait":
        await asyncio.Event().wait()


async def runs() -> None:
    workflow = WorkflowBuilder("press", start=write).build()
    for _ in range(40):
        await workflow.run("done")
    async for _event in workflow.stream("wait"):
        break
    gc.collect()
    await workflow.run("done", on_conflict="supersede")


def violation() -> Discard:
    return Discard(
        run=RunRef("x/1", "press", "i", "run-1", 1, "p"),
        seq=1,
        owner=Owner(2, "run-2"),
        cause=DiscardCause.FINALIZER,
        fenced=False,
        writes=WriteSet((("k", 2),)),
    )


def main() -> None:
    metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    os.environ.update({
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "0.2",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "8",
        "OTEL_BSP_MAX_QUEUE_SIZE": "8",
    })
    telemetry = configure_otlp()
    Detector(announce=["metric"]).feed(violation())
    if sys.argv[1:] == ["serve"]:
        server, _ = start_http_server(0, "127.0.0.1")
        sys.stdout.write(f"127.0.0.1:{server.server_port}\n")
        sys.stdout.flush()
        while not threading.Event().wait(0.1):
            asyncio.run(runs())
    asyncio.run(runs())
    telemetry.force_flush(timeout=5)
    sys.stdout.write(generate_latest().decode())
    sys.stdout.flush()
    os._exit(0)


main()
