"""How a finding leaves the process: callback, log event, counter, span, warning.

Log events and counters are not trace-sampled, so a finding goes out although its trace
was dropped. OpenTelemetry's API only; silent where no SDK is set up.
"""

import logging
import warnings
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, Final

from opentelemetry import metrics, trace
from opentelemetry._logs import LoggerProvider, SeverityNumber, get_logger
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from tenure.detectors.anomalies import Certainty, Severity
from tenure.detectors.errors import RaceWarning
from tenure.detectors.findings import Finding
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import SpanRef

_logger = logging.getLogger(__name__)

_ROOT: Final = Context()
"""The parent of a span that has none; passing nothing would mean the current one."""


class Channel(StrEnum):
    """Where findings can go besides the callback."""

    LOG = "log"
    """The log event `tenure.violation`."""

    METRIC = "metric"
    """The counter `tenure.violations`."""

    SPAN = "span"
    """A `violation` span with links to culprit and owner; not for harmless findings."""

    WARNING = "warning"
    """Python's `warnings`, as `RaceWarning`; harmless findings give none."""


_LOG_SEVERITY: Final[Mapping[Severity, tuple[SeverityNumber, str]]] = MappingProxyType({
    Severity.VIOLATION: (SeverityNumber.ERROR, "ERROR"),
    Severity.WARNING: (SeverityNumber.WARN, "WARN"),
    Severity.AVERTED: (SeverityNumber.INFO, "INFO"),
    Severity.INFORMATION: (SeverityNumber.INFO, "INFO"),
})
_HARMFUL: Final = frozenset({Severity.VIOLATION, Severity.WARNING})
_PROVEN: Final = frozenset({Certainty.CERTAIN, Certainty.CONFIRMED})


class Announcer:
    """Tells the world about findings, and never raises.

    Args:
        on_finding: Called with each finding.
        channels: Where findings go besides.
        tracer_provider: Where spans go; the global provider by default.
        meter_provider: Where the counter goes; the global provider by default.
        logger_provider: Where log events go; the global provider by default.
    """

    def __init__(
        self,
        on_finding: Callable[[Finding], object] | None,
        channels: frozenset[Channel],
        *,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        logger_provider: LoggerProvider | None,
    ) -> None:
        scope, release, schema = semconv.DETECTORS_SCOPE, _version(), semconv.SCHEMA_URL
        self._tracer: Final = trace.get_tracer(
            scope, release, tracer_provider, schema_url=schema
        )
        self._log: Final = get_logger(scope, release, logger_provider, schema)
        meter = metrics.get_meter(
            scope, release, meter_provider=meter_provider, schema_url=schema
        )
        self._counter: Final = meter.create_counter(
            semconv.METRIC_VIOLATIONS,
            unit="{violation}",
            description="Findings of the race detector.",
        )
        ways: dict[Channel, Callable[[Finding], object]] = {
            Channel.LOG: self._emit_log,
            Channel.METRIC: self._count,
            Channel.SPAN: self._emit_span,
            Channel.WARNING: _warn,
        }
        chosen = [way for channel, way in ways.items() if channel in channels]
        # The callback comes first: what it sees does not depend on telemetry.
        self._ways: Final = ([on_finding] if on_finding is not None else []) + chosen

    def announce(self, finding: Finding) -> None:
        """Tell `finding` on every chosen way; one that raises is logged."""
        for way in self._ways:
            try:
                way(finding)
            except Exception:
                # A detector must never raise into a run.
                _logger.exception("A finding could not be announced")

    def _count(self, finding: Finding) -> None:
        self._counter.add(
            1,
            {
                semconv.ANOMALY: finding.anomaly,
                semconv.SEVERITY: finding.severity.value,
                semconv.CERTAINTY: finding.certainty.value,
                semconv.ENGINE: finding.engine,
                semconv.WORKFLOW_NAME: finding.workflow,
            },
            context=_context(finding.culprit.span),
        )

    def _emit_log(self, finding: Finding) -> None:
        number, text = _LOG_SEVERITY[finding.severity]
        self._log.emit(
            event_name=semconv.VIOLATION_EVENT,
            severity_number=number,
            severity_text=text,
            body=str(finding),
            attributes=_attributes(finding),
            context=_context(finding.culprit.span),
        )

    def _emit_span(self, finding: Finding) -> None:
        if finding.severity not in _HARMFUL:
            return
        span = self._tracer.start_span(
            semconv.VIOLATION_SPAN,
            context=_ROOT,
            attributes=_attributes(finding),
            links=_links(finding),
        )
        if finding.severity is Severity.VIOLATION and finding.certainty in _PROVEN:
            span.set_attribute(semconv.ERROR_TYPE, finding.anomaly)
            span.set_status(Status(StatusCode.ERROR, str(finding)))
        span.end()


def _warn(finding: Finding) -> None:
    if finding.severity in _HARMFUL:
        warnings.warn(str(finding), RaceWarning, stacklevel=2)


def _version() -> str:
    try:
        return version("tenure")
    except PackageNotFoundError:
        return ""


def _attributes(finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = {
        semconv.ENGINE: finding.engine,
        semconv.WORKFLOW_NAME: finding.workflow,
        semconv.INSTANCE_ID: finding.instance,
        semconv.RUN_ID: finding.culprit.run.run_id,
        semconv.ANOMALY: finding.anomaly,
        semconv.VARIANT: finding.variant,
        semconv.SEVERITY: finding.severity.value,
        semconv.CERTAINTY: finding.certainty.value,
        semconv.CULPRIT_EPOCH: finding.culprit_epoch,
        semconv.KEYS: finding.keys,
        semconv.PROOF: finding.proof,
    }
    if finding.owner_epoch is not None:
        found[semconv.OWNER_EPOCH] = finding.owner_epoch
    if finding.victim_epoch is not None:
        found[semconv.VICTIM_EPOCH] = finding.victim_epoch
    return found


def _span_context(span: SpanRef) -> SpanContext:
    # A reference exists only to a span that was recorded; without the flag, a log
    # pipeline that follows the trace's sampling would drop the finding with it.
    return SpanContext(
        span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED
    )


_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)


def _context(span: SpanRef | None) -> Context:
    """The context of the culprit's span: never the current one, which is anybody's."""
    if span is None:
        return _ROOT
    return trace.set_span_in_context(NonRecordingSpan(_span_context(span)), _ROOT)


def _links(finding: Finding) -> list[Link]:
    """Link to the spans of the evidence: the culprit's first, then the owner's."""
    spans = dict.fromkeys(
        operation.span for operation in finding.evidence if operation.span is not None
    )
    return [Link(_span_context(span)) for span in spans]
