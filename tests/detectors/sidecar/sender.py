"""A process that sends spans with OpenTelemetry's own exporters, as applications do.

Its argument is JSON: where to, how, and what runs did. It prints one line of JSON: what
the exporter said, and how often it was asked to try again.
"""

import json
import logging
import sys

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure.instrumentation.operations import CommitCause, Outcome, Owner
from tenure.instrumentation.recorder import Recorder


def recorded(runs: list[dict]) -> list:
    """Return the spans of `runs`, each of which claims, commits and releases."""
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    recorder = Recorder("pair/1", scope="tenure.runtime", tracer_provider=provider)
    instances: dict[str, object] = {}
    for spoken in runs:
        owner = Owner(spoken["epoch"], spoken["run_id"])
        name = spoken.get("instance", "shared")
        if name not in instances:
            instances[name] = recorder.instance("press", name)
        instance = instances[name]
        run = instance.run(spoken["run_id"])
        run.claim(owner)
        for key, epoch in spoken.get("writes", {}).items():
            run.commit(owner, {key: epoch}, cause=CommitCause.SUPERSTEP)
        for checkpoint in spoken.get("restores", ()):
            run.checkpoint_restored(owner, checkpoint, None, {})
        for checkpoint, parent in spoken.get("saves", ()):
            run.checkpoint_saved(owner, checkpoint, parent, {})
        run.release(owner, Outcome.COMPLETED)
        run.ended(Outcome.COMPLETED)
    spans = memory.get_finished_spans()
    provider.shutdown()
    return list(spans)


def exporter_for(transport: str, endpoint: str, packing: str, timeout: float):
    if transport == "grpc":
        from grpc import Compression
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as GrpcExporter,
        )

        packed = Compression.Gzip if packing == "gzip" else Compression.NoCompression
        return GrpcExporter(
            endpoint=endpoint, insecure=True, compression=packed, timeout=timeout
        )
    from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(
        endpoint=f"{endpoint}/v1/traces",
        compression=HttpCompression(packing),
        timeout=timeout,
    )


def main() -> None:
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    asked = json.loads(sys.argv[1])
    exporter = exporter_for(**asked["exporter"])
    result = exporter.export(recorded(asked["runs"]))
    exporter.shutdown()
    sys.stdout.write(json.dumps(result.name) + "\n")


main()
