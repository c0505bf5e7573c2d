"""What a sidecar counts, as Prometheus reads it.

The counter of findings has the name and the labels that the OpenTelemetry metric of the
same name gets in Prometheus, so that one alert serves both.
"""

import threading
from collections.abc import Callable
from typing import Final, final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.exposition import choose_encoder

from tenure.detectors.findings import Finding
from tenure.detectors.sidecar.intake import Answer, Message
from tenure.instrumentation import semconv

MAX_SERIES: Final = 1_000
"""How many combinations of labels are told apart that come from messages."""

OTHER: Final = "other"
"""What stands for a label's value when there are too many."""

_FINDING_LABELS: Final = tuple(
    name.replace(".", "_")
    for name in (
        semconv.ANOMALY,
        semconv.SEVERITY,
        semconv.CERTAINTY,
        semconv.ENGINE,
        semconv.WORKFLOW_NAME,
    )
)


@final
class Figures:
    """The counters and gauges of one sidecar. Safe to use from any thread."""

    def __init__(self) -> None:
        self.registry: Final = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._messages: Final = self._counter(
            "messages",
            "Messages of OTLP, by what became of them.",
            ("transport", "signal", "admission"),
        )
        self._bytes: Final = self._counter(
            "received_bytes",
            "Bytes of messages, as they came.",
            ("transport", "signal"),
        )
        self._spans: Final = self._counter("spans", "Spans in accepted messages.")
        self._rejected: Final = self._counter(
            "rejected_spans", "Spans that carry an operation that cannot be read."
        )
        self._operations: Final = self._counter("operations", "Operations judged.")
        self._forwarded: Final = self._counter(
            "forwarded", "Messages for the next collector, by result.", ("result",)
        )
        self._hook_calls: Final = self._counter(
            "hook_calls", "Findings for a hook, by result.", ("hook", "result")
        )
        self._waiting: Final = Gauge(
            "tenure_watch_waiting",
            "What waits in each queue, in its own unit.",
            ("queue",),
            registry=self.registry,
        )
        self._memory: Final = Gauge(
            "tenure_watch_memory_bytes",
            "Bytes of messages in memory.",
            registry=self.registry,
        )
        self._limit: Final = Gauge(
            "tenure_watch_memory_limit_bytes",
            "Bytes of messages that may be in memory.",
            registry=self.registry,
        )
        self._findings: Final = Counter(
            semconv.METRIC_VIOLATIONS.replace(".", "_"),
            "Findings of the race detector.",
            _FINDING_LABELS,
            registry=self.registry,
        )
        self._series_lock: Final = threading.Lock()
        # Invariant: at most MAX_SERIES; names in messages must not fill the memory.
        self._series: Final[set[tuple[str, ...]]] = set()

    def received(self, message: Message, answer: Answer) -> None:
        """Count a message and what became of it."""
        self.answered(message.transport, message.signal.value, answer)
        self._bytes.labels(message.transport, message.signal.value).inc(
            len(message.packed)
        )

    def answered(self, transport: str, signal: str, answer: Answer) -> None:
        """Count an answer to a message that was not taken in whole."""
        self._messages.labels(transport, signal, answer.admission.value).inc()

    def read(self, spans: int, rejected: int) -> None:
        """Count the spans of an accepted message."""
        self._spans.inc(spans)
        self._rejected.inc(rejected)

    def judged(self, operations: int) -> None:
        """Count operations that the detector has taken in."""
        self._operations.inc(operations)

    def found(self, finding: Finding) -> None:
        """Count a finding."""
        series = (
            finding.anomaly,
            finding.severity.value,
            finding.certainty.value,
            finding.engine,
            finding.workflow,
        )
        with self._series_lock:
            if series not in self._series:
                if len(self._series) < MAX_SERIES:
                    self._series.add(series)
                else:
                    series = (*series[:3], OTHER, OTHER)
        self._findings.labels(*series).inc()

    def forwarded(self, result: str) -> None:
        """Count a message for the next collector."""
        self._forwarded.labels(result).inc()

    def hook(self, name: str, result: str) -> None:
        """Count a finding for a hook."""
        self._hook_calls.labels(name, result).inc()

    def watch_queue(self, name: str, waiting: Callable[[], float]) -> None:
        """Show what waits in a queue, as it is when somebody asks."""
        self._waiting.labels(name).set_function(waiting)

    def watch_memory(self, taken: Callable[[], float], limit: int) -> None:
        """Show how much memory messages take, as it is when somebody asks."""
        self._memory.set_function(taken)
        self._limit.set(limit)

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return everything as text, and the content type of it.

        Args:
            accept: Which types whoever asks can read, as in the HTTP header.
        """
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    def _counter(
        self, name: str, description: str, labels: tuple[str, ...] = ()
    ) -> Counter:
        return Counter(
            f"tenure_watch_{name}", description, labels, registry=self.registry
        )
