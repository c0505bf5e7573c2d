"""Spans go to a file, as `docs/howto/check-traces.md` shows it to users."""

from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tenure.instrumentation.otlp_json import JsonLinesSpanExporter


def exporting_to(file: str | Path) -> TracerProvider:
    """Return a provider whose spans go to `file`, in batches, as OTLP JSON lines."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(JsonLinesSpanExporter(file)))
    return provider
