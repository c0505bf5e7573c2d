"""The pipelines behind `configure_otlp`; loaded only when it is called.

This module needs `tenure[otlp]`.
"""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar, final

# ruff: noqa: TID251 - the part of sdk.py that is loaded when it is used
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
)

from tenure.instrumentation import _otlp_variables as variables
from tenure.instrumentation._losses import (
    CountingLogExporter,
    CountingSpanExporter,
    Exports,
    counting_losses,
    losses_counted,
)
from tenure.instrumentation._otlp_variables import Signal, Transport
from tenure.instrumentation.errors import TelemetryConfigError
from tenure.instrumentation.sampler import RecordOwnership, from_environment

if TYPE_CHECKING:
    from opentelemetry.sdk._logs.export import LogRecordExporter
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.trace.sampling import Sampler
    from opentelemetry.util.types import AttributeValue

_T = TypeVar("_T")
_NOT_ASKED: Final = metrics.NoOpMeterProvider()
"""For exporters: they would count what they lose as delivered."""


def resource(
    service_name: str | None, attributes: Mapping[str, "AttributeValue"] | None
) -> Resource:
    """Return who emits: the environment wins over what the code says.

    Args:
        service_name: Name of the service where the environment gives none.
        attributes: Further attributes, where the environment does not give them.
    """
    found = Resource(dict(attributes or {})).merge(Resource.create())
    unnamed = str(found.attributes[SERVICE_NAME]).startswith("unknown_service")
    if service_name is None or not unnamed:
        return found
    return found.merge(Resource({SERVICE_NAME: service_name}))


@final
class Pipelines:
    """The providers that `configure_otlp` made, and those it found and kept.

    Args:
        who: The resource of every new provider.
        max_queue_size: How many spans, and how many log events, wait for the exporter.
    """

    def __init__(self, who: Resource, max_queue_size: int) -> None:
        self._who: Final = who
        self._max_queue_size: Final = max_queue_size
        self.tracer_provider: TracerProvider | None = None
        self.meter_provider: MeterProvider | None = None
        self.logger_provider: LoggerProvider | None = None
        self.span_exporter: CountingSpanExporter | None = None
        self.kept: set[Signal] = set()

    @property
    def made(self) -> tuple[TracerProvider | MeterProvider | LoggerProvider, ...]:
        """The new providers."""
        all_three = (self.tracer_provider, self.meter_provider, self.logger_provider)
        return tuple(provider for provider in all_three if provider is not None)

    def build(
        self,
        span_processors: Sequence[SpanProcessor],
        sampler: "Sampler | None",
        *,
        record_ownership: bool,
    ) -> None:
        """Build a provider for every signal that has none yet; nothing global changes.

        Args:
            span_processors: They see each span before the exporter does.
            sampler: Of a new provider of spans.
            record_ownership: Whether they see ownership spans that it drops.

        Raises:
            TelemetryConfigError: A variable cannot be used, or the application has a
                provider that is not the SDK's.
        """
        # Metrics come first: the other two count there what they lose. The API's
        # placeholders come from its own packages.
        if _is_placeholder(metrics.get_meter_provider(), "opentelemetry.metrics"):
            self.meter_provider = self._metrics()
        else:
            self.kept.add(Signal.METRICS)
        current = trace.get_tracer_provider()
        if isinstance(current, TracerProvider):
            self.kept.add(Signal.TRACES)
        elif isinstance(current, trace.ProxyTracerProvider):
            self.tracer_provider = self._traces(
                span_processors, sampler, record_ownership=record_ownership
            )
        else:
            raise TelemetryConfigError(
                "tracer provider",
                type(current).__qualname__,
                "it takes no span processors; set up the OpenTelemetry SDK's instead",
            )
        if _is_placeholder(_logs.get_logger_provider(), "opentelemetry._logs"):
            self.logger_provider = self._logs()
        else:
            self.kept.add(Signal.LOGS)

    def install(self, span_processors: Sequence[SpanProcessor]) -> None:
        """Make the new providers global, and give a kept one the processors."""
        current = trace.get_tracer_provider()
        if self.tracer_provider is not None:
            trace.set_tracer_provider(self.tracer_provider)
        elif isinstance(current, TracerProvider):
            for processor in span_processors:
                current.add_span_processor(processor)
        if self.meter_provider is not None:
            metrics.set_meter_provider(self.meter_provider)
        if self.logger_provider is not None:
            _logs.set_logger_provider(self.logger_provider)

    def _traces(
        self,
        span_processors: Sequence[SpanProcessor],
        sampler: "Sampler | None",
        *,
        record_ownership: bool,
    ) -> TracerProvider:
        provider = TracerProvider(
            resource=self._who,
            sampler=sampler or from_environment(),
            shutdown_on_exit=False,
        )
        if record_ownership and not isinstance(provider.sampler, RecordOwnership):
            # The SDK has read its own variables; nobody has asked for a tracer yet.
            provider.sampler = RecordOwnership(provider.sampler)
        for processor in span_processors:
            provider.add_span_processor(processor)
        if variables.exported(Signal.TRACES):
            meters = self.meter_provider or metrics.get_meter_provider()
            size = _queue_size("OTEL_BSP_MAX_QUEUE_SIZE", self._max_queue_size)
            exporter = CountingSpanExporter(
                _exporter(Signal.TRACES, _span_exporter),
                _exports(Signal.TRACES, "span", meters),
            )
            with counting_losses(), _naming("OTEL_BSP_"):
                batching = BatchSpanProcessor(
                    exporter, max_queue_size=size, meter_provider=meters
                )
            self.span_exporter = exporter
            provider.add_span_processor(batching)
        return provider

    def _metrics(self) -> MeterProvider:
        readers: list[PeriodicExportingMetricReader] = []
        if variables.exported(Signal.METRICS):
            exporter = _exporter(Signal.METRICS, _metric_exporter)
            readers.append(PeriodicExportingMetricReader(exporter))
        return MeterProvider(readers, resource=self._who, shutdown_on_exit=False)

    def _logs(self) -> LoggerProvider:
        provider = LoggerProvider(resource=self._who, shutdown_on_exit=False)
        if variables.exported(Signal.LOGS):
            meters = self.meter_provider or metrics.get_meter_provider()
            size = _queue_size("OTEL_BLRP_MAX_QUEUE_SIZE", self._max_queue_size)
            exporter = _exporter(Signal.LOGS, _log_exporter)
            exports = _exports(Signal.LOGS, "log", meters)
            if exports is not None:
                exporter = CountingLogExporter(exporter, exports)
            with counting_losses(), _naming("OTEL_BLRP_"):
                batching = BatchLogRecordProcessor(
                    exporter, max_queue_size=size, meter_provider=meters
                )
            provider.add_log_record_processor(batching)
        return provider


@contextmanager
def _naming(prefix: str) -> Generator[None]:
    """Name the variables where the SDK refuses what it reads from them."""
    try:
        yield
    except ValueError as error:
        found = {
            name: value for name, value in os.environ.items() if name.startswith(prefix)
        }
        raise TelemetryConfigError(f"{prefix}*", str(found), str(error)) from error


def _exports(
    signal: Signal, what: str, meters: metrics.MeterProvider
) -> Exports | None:
    if not losses_counted():
        return None
    transport = "grpc" if variables.transport(signal) is Transport.GRPC else "http"
    return Exports(what, f"otlp_{transport}_{what}_exporter", meters)


def _queue_size(variable: str, size: int) -> int | None:
    """Leave it to the SDK, which reads `variable`, where that is set."""
    return None if os.environ.get(variable, "").strip() else size


def _is_placeholder(provider: object, package: str) -> bool:
    return type(provider).__module__.startswith(package)


def _exporter(signal: Signal, build: Callable[[Transport], _T]) -> _T:
    try:
        return build(variables.transport(signal))
    except (ImportError, TelemetryConfigError):
        raise
    except Exception as error:
        # Exporters refuse certificates, headers, … with many classes of error.
        raise TelemetryConfigError(
            "OTEL_EXPORTER_OTLP_*", variables.endpoint(signal), str(error)
        ) from error


def _span_exporter(transport: Transport) -> SpanExporter:
    if transport is Transport.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
            OTLPSpanExporter as GrpcExporter,
        )

        return GrpcExporter(meter_provider=_NOT_ASKED)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(meter_provider=_NOT_ASKED)


def _metric_exporter(transport: Transport) -> "MetricExporter":
    if transport is Transport.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
            OTLPMetricExporter as GrpcExporter,
        )

        return GrpcExporter()
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (
        OTLPMetricExporter,
    )

    return OTLPMetricExporter()


def _log_exporter(transport: Transport) -> "LogRecordExporter":
    if transport is Transport.GRPC:
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import (
            OTLPLogExporter as GrpcExporter,
        )

        return GrpcExporter(meter_provider=_NOT_ASKED)
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    return OTLPLogExporter(meter_provider=_NOT_ASKED)
