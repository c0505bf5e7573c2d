"""The OpenTelemetry SDK of the traced cases: every span is kept, none is dropped."""

from typing import Any

from harness import UnsupportedError
from opentelemetry.trace import TracerProvider

QUEUE = 1 << 20


class Tracing:
    """A tracer provider with a batch processor whose queue is too big to overflow."""

    def __init__(self) -> None:
        try:
            from opentelemetry.sdk.trace import (
                TracerProvider as SdkTracerProvider,
            )
            from opentelemetry.sdk.trace.export import (
                BatchSpanProcessor,
            )
            from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
                InMemorySpanExporter,
            )
        except ImportError:
            raise UnsupportedError("opentelemetry-sdk is not installed") from None
        self._exporter = InMemorySpanExporter()
        provider = SdkTracerProvider()
        provider.add_span_processor(
            BatchSpanProcessor(self._exporter, max_queue_size=QUEUE)
        )
        self._provider = provider

    @property
    def provider(self) -> TracerProvider:
        """Where tracers come from."""
        return self._provider

    def add(self, processor: Any) -> None:
        """Add a span processor."""
        self._provider.add_span_processor(processor)

    def flush(self) -> None:
        """Wait until every span has been exported."""
        self._provider.force_flush()

    def count(self) -> int:
        """Return how many spans have been exported since the last count."""
        number = len(self._exporter.get_finished_spans())
        self._exporter.clear()
        return number

    def close(self) -> None:
        """End the exporter's thread."""
        self._provider.shutdown()
