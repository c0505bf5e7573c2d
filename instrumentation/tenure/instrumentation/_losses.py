"""What exporters deliver and lose, counted in OpenTelemetry's own metric for that.

The SDK's own exporters can count as well, and are wrong where it matters: what a
backend refuses over HTTP counts as exported there (SDK 1.45). So they are not asked to.

This module needs `tenure[otlp]`.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, TypeVar, final

# ruff: noqa: TID251 - wraps the SDK's exporters
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tenure.instrumentation import semconv

INTERNAL_METRICS: Final = "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"
"""The variable by which the SDK counts what it does itself."""

_T = TypeVar("_T")
_SCOPE: Final = "tenure.instrumentation"
_COMPONENT: Final = "otel.component.type"
_FAILED: Final = "export_failed"
_UNITS: Final[Mapping[str, str]] = MappingProxyType({
    "span": "{span}",
    "log": "{log_record}",
})


def losses_counted() -> bool:
    """Say whether losses are counted: unless the SDK's variable says no."""
    value = os.environ.get(INTERNAL_METRICS, "").strip().lower()
    return value in {"", "true"}


@contextmanager
def counting_losses() -> Generator[None]:
    """Have the SDK's parts that are built here count what they lose.

    It decides by a variable when it builds a part. That is set for these parts only,
    where nobody has set it: in a tracer it would make every span dearer by half.
    """
    if os.environ.get(INTERNAL_METRICS, "").strip():
        yield
        return
    os.environ[INTERNAL_METRICS] = "true"
    try:
        yield
    finally:
        del os.environ[INTERNAL_METRICS]


@final
class Exports:
    """Counts what an exporter has tried to deliver. Safe to use from any thread.

    Args:
        what: `span` or `log`.
        component: What kind of exporter it is.
        meters: Where the counter comes from; the global provider by default.
    """

    def __init__(
        self, what: str, component: str, meters: MeterProvider | None = None
    ) -> None:
        self._labels: Final[Mapping[str, str]] = {_COMPONENT: component}
        meter = get_meter(_SCOPE, meter_provider=meters, schema_url=semconv.SCHEMA_URL)
        self._exported: Final = meter.create_counter(
            f"otel.sdk.exporter.{what}.exported",
            unit=_UNITS[what],
            description="What was exported; with error.type, what was lost.",
        )

    def tried(self, count: int, error_type: str | None = None) -> None:
        """Count an export.

        Args:
            count: How many were in it.
            error_type: Why they are lost; `None` if they are delivered.
        """
        lost = {} if error_type is None else {semconv.ERROR_TYPE: error_type}
        self._exported.add(count, {**self._labels, **lost})


@final
class CountingSpanExporter(SpanExporter):
    """Count the spans of failed exports, of which the SDK tells nobody but the log.

    Args:
        exporter: What exports.
        exports: Where they are counted besides; `None` for nowhere.
    """

    def __init__(self, exporter: SpanExporter, exports: Exports | None) -> None:
        self._exporter: Final = exporter
        self._exports: Final = exports
        # Written by the one thread that holds the batch processor's export lock.
        self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export `spans` and count them."""
        return _counted(
            lambda: self._exporter.export(spans),
            SpanExportResult.SUCCESS,
            lambda why: self._count(len(spans), why),
        )

    def _count(self, count: int, error_type: str | None) -> None:
        if error_type is not None:
            self.lost += count
        if self._exports is not None:
            self._exports.tried(count, error_type)

    def shutdown(self) -> None:
        """Shut the exporter down."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)


@final
class CountingLogExporter(LogRecordExporter):
    """Count log events, findings among them, by whether they were delivered.

    Args:
        exporter: What exports.
        exports: Where they are counted.
    """

    def __init__(self, exporter: LogRecordExporter, exports: Exports) -> None:
        self._exporter: Final = exporter
        self._exports: Final = exports

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Export `batch` and count it."""
        return _counted(
            lambda: self._exporter.export(batch),
            LogRecordExportResult.SUCCESS,
            lambda why: self._exports.tried(len(batch), why),
        )

    def shutdown(self) -> None:
        """Shut the exporter down."""
        stop: Callable[[], object] = self._exporter.shutdown  # the SDK gives no type
        stop()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the exporter."""
        return self._exporter.force_flush(timeout_millis)


def _counted(
    export: Callable[[], _T], success: _T, count: Callable[[str | None], None]
) -> _T:
    try:
        result = export()
    except Exception as error:
        count(type(error).__qualname__)
        raise
    count(None if result is success else _FAILED)
    return result
