"""How a finding leaves the process: each way, at the level that it deserves."""

from dataclasses import replace

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    InMemoryLogRecordExporter,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from tenure.detectors import Detector, RaceWarning
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import (
    Discard,
    DiscardCause,
    Owner,
    RunRef,
    SpanRef,
    WriteSet,
)

CULPRIT = SpanRef(0xABC, 0xDEF)


class Backend:
    """Everything that an SDK keeps of a detector's findings."""

    def __init__(self, **options):
        self.spans = InMemorySpanExporter()
        self.logs = InMemoryLogRecordExporter()
        self.reader = InMemoryMetricReader()
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        self.heard = []
        self.detector = Detector(
            self.heard.append,
            tracer_provider=tracers,
            logger_provider=loggers,
            meter_provider=MeterProvider([self.reader]),
            **options,
        )

    def points(self):
        data = self.reader.get_metrics_data()
        if data is None:
            return []
        (resource,) = data.resource_metrics
        (scope,) = resource.scope_metrics
        (metric,) = scope.metrics
        assert (metric.name, metric.unit) == ("tenure.violations", "{violation}")
        return list(metric.data.data_points)

    def records(self):
        return [one.log_record for one in self.logs.get_finished_logs()]


def stale_discard(seq=1, writes=None, *, fenced=False):
    return Discard(
        run=RunRef("x/1", "press", "i", "run-1", 1, "p"),
        seq=seq,
        owner=Owner(2, "run-2"),
        span=CULPRIT,
        writes=WriteSet(tuple((writes or {}).items())),
        cause=DiscardCause.ABANDONED,
        fenced=fenced,
    )


def violation():
    return stale_discard(writes={"b": 2})


def warning():
    return stale_discard()


def averted():
    return stale_discard(fenced=True)


@pytest.mark.parametrize(
    ("make", "number"),
    [
        (violation, SeverityNumber.ERROR),
        (warning, SeverityNumber.WARN),
        (averted, SeverityNumber.INFO),
    ],
)
def test_a_finding_is_a_log_event_as_severe_as_it_is(make, number):
    backend = Backend()
    (found,) = backend.detector.feed(make())

    (record,) = backend.records()
    assert record.event_name == "tenure.violation"
    assert record.severity_number is number
    assert record.body == str(found)
    assert record.attributes[semconv.ANOMALY] == "stale-discard"
    assert record.attributes[semconv.CULPRIT_EPOCH] == 1
    assert record.attributes[semconv.PROOF].startswith("let epoch 1 be run run-1")


def test_a_log_event_belongs_to_the_culprits_span_and_not_to_the_current_one():
    backend = Backend()
    with TracerProvider().get_tracer("x").start_as_current_span("innocent"):
        backend.detector.feed(violation())

    (record,) = backend.records()
    assert (record.trace_id, record.span_id) == (CULPRIT.trace_id, CULPRIT.span_id)


def test_a_finding_is_counted_by_anomaly_severity_certainty_and_workflow():
    backend = Backend()
    backend.detector.feed(violation())
    backend.detector.feed(stale_discard(seq=2, writes={"b": 2}))

    (point,) = backend.points()
    assert point.value == 2
    assert dict(point.attributes) == {
        semconv.ANOMALY: "stale-discard",
        semconv.SEVERITY: "violation",
        semconv.CERTAINTY: "certain",
        semconv.ENGINE: "x/1",
        semconv.WORKFLOW_NAME: "press",
    }


def test_a_violation_is_a_failed_root_span_of_the_detectors_scope():
    backend = Backend()
    with TracerProvider().get_tracer("x").start_as_current_span("innocent"):
        backend.detector.feed(violation())

    (span,) = backend.spans.get_finished_spans()
    assert span.name == "violation"
    assert span.parent is None
    assert span.status.status_code is StatusCode.ERROR
    assert span.instrumentation_scope.name == "tenure.detectors"
    assert span.attributes[semconv.ERROR_TYPE] == "stale-discard"
    assert span.attributes[semconv.OWNER_EPOCH] == 2
    assert span.attributes[semconv.VICTIM_EPOCH] == 2
    assert span.attributes[semconv.KEYS] == ("b",)
    assert [link.context.span_id for link in span.links] == [CULPRIT.span_id]


def test_an_owner_that_is_not_known_is_left_out():
    backend = Backend()
    backend.detector.feed(replace(violation(), owner=None, span=None))

    (span,) = backend.spans.get_finished_spans()
    (record,) = backend.records()
    assert semconv.OWNER_EPOCH not in span.attributes
    assert span.links == ()
    assert record.trace_id == 0


def test_a_warning_is_a_span_that_has_not_failed():
    backend = Backend()
    backend.detector.feed(warning())

    (span,) = backend.spans.get_finished_spans()
    assert span.status.status_code is StatusCode.UNSET
    assert semconv.ERROR_TYPE not in span.attributes


def test_what_was_averted_is_counted_and_heard_but_no_span():
    backend = Backend()
    backend.detector.feed(averted())

    assert len(backend.heard) == len(backend.points()) == 1
    assert backend.spans.get_finished_spans() == ()


@pytest.mark.parametrize("channel", ["log", "metric", "span"])
def test_a_user_picks_where_findings_go(channel):
    backend = Backend(announce={channel})
    backend.detector.feed(violation())

    told = {
        "log": len(backend.records()),
        "metric": len(backend.points()),
        "span": len(backend.spans.get_finished_spans()),
    }
    assert told == {**dict.fromkeys(told, 0), channel: 1}
    assert len(backend.heard) == 1


def test_a_finding_can_be_a_python_warning():
    detector = Detector(announce={"warning"})

    with pytest.warns(RaceWarning, match="stale discard"):
        detector.feed(violation())


def test_what_was_averted_is_no_python_warning(recwarn):
    Detector(announce={"warning"}).feed(averted())

    assert len(recwarn) == 0


def test_a_warning_that_is_made_an_error_does_not_reach_the_run(caplog):
    # This suite turns warnings into errors.
    found = Detector(announce={"warning"}).feed(violation())

    assert len(found) == 1
    assert "could not be announced" in caplog.text


def test_without_an_sdk_nothing_is_said_and_nothing_fails(caplog):
    assert len(Detector().feed(violation())) == 1
    assert caplog.text == ""
