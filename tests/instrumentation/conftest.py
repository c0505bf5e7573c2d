"""What the tests of the recorder have in common: who listens, and where spans go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure.instrumentation import add_listener, remove_listener
from tenure.instrumentation.operations import Operation


@dataclass
class Traces:
    """A tracer provider of its own, and the spans that it has exported."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    provider: TracerProvider = field(default_factory=TracerProvider)

    def __post_init__(self) -> None:
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (found,) = (span for span in self.spans if span.name == name)
        return found

    def all_named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]


@pytest.fixture
def traces() -> Iterator[Traces]:
    traces = Traces()
    yield traces
    traces.provider.shutdown()


@pytest.fixture
def heard() -> Iterator[list[Operation]]:
    """Every operation that a listener hears, in order."""
    operations: list[Operation] = []
    add_listener(operations.append)
    yield operations
    remove_listener(operations.append)


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[Operation], object]], None]]:
    """Add a listener for the time of the test."""
    added: list[Callable[[Operation], object]] = []

    def listen(listener: Callable[[Operation], object]) -> None:
        added.append(listener)
        add_listener(listener)

    yield listen
    for listener in added:
        remove_listener(listener)
