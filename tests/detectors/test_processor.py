"""Operations from spans of a real SDK, beside the listener and without it."""

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from tenure.detectors import Detector, OwnershipSpanProcessor, Verdict
from tenure.instrumentation import Recorder, semconv
from tenure.instrumentation.operations import DiscardCause, Outcome, Owner


class Stage:
    """A recorder over a real SDK whose spans a detector reads."""

    def __init__(self, **options):
        self.provider = TracerProvider(**options)
        self.exporter = InMemorySpanExporter()
        self.detector = Detector(tracer_provider=self.provider)
        self.provider.add_span_processor(OwnershipSpanProcessor(self.detector))
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.instance = Recorder("x/1", tracer_provider=self.provider).instance(
            "press", "i"
        )

    def claim(self, epoch, *, superseded=None):
        run = self.instance.run(f"run-{epoch}", parent=Context())
        run.claim(Owner(epoch, f"run-{epoch}"), superseded=superseded)
        return run

    def race(self):
        """Epoch 1, which epoch 2 has replaced, throws away what epoch 2 staged."""
        first = self.claim(1)
        first.release(Owner(1, "run-1"), Outcome.SUPERSEDED)
        second = self.claim(2, superseded=1)
        first.discard(Owner(2, "run-2"), {"b": 2}, cause=DiscardCause.ABANDONED)
        return second

    def spans(self, name):
        return [
            span
            for span in self.exporter.get_finished_spans()
            if span.name.split()[0] == name
        ]


@pytest.fixture
def stage():
    return Stage()


def test_a_race_is_found_from_spans_alone(stage):
    stage.race()

    (found,) = stage.detector.findings
    assert (found.anomaly, found.severity) == ("stale-discard", "violation")
    assert found.culprit.span is not None


def test_an_operation_bears_the_time_and_the_identity_of_its_span(stage):
    stage.race()

    (found,) = stage.detector.findings
    (discard,) = stage.spans("discard")
    assert found.culprit.time == discard.start_time
    assert found.culprit.span.span_id == discard.context.span_id


def test_a_run_whose_spans_all_ended_is_clean(stage):
    run = stage.claim(1)
    run.superstep_started(Owner(1), 1)
    span = run.executor_started("writer", 1)
    run.executor_ended(Owner(1), span, "writer", 1)
    run.commit(Owner(1), {"a": 1}, index=1)
    run.superstep_ended(Owner(1), 1)
    run.release(Owner(1), Outcome.COMPLETED)
    run.ended(Outcome.COMPLETED)

    assert stage.detector.missing == ()
    assert stage.detector.verdict is Verdict.CLEAN


def test_a_claim_is_known_before_its_span_ends(stage):
    stage.claim(1)
    stage.claim(2)

    (found,) = stage.detector.findings
    assert (found.anomaly, found.certainty) == ("overlapping-owners", "certain")


def test_an_operation_that_is_both_heard_and_read_counts_once(stage):
    with stage.detector.listen():
        stage.race()

    assert len(stage.detector.findings) == 1


def test_what_is_sampled_out_leaves_the_processor_without_a_verdict():
    stage = Stage(sampler=ALWAYS_OFF)
    stage.race()

    assert stage.detector.findings == ()
    assert stage.detector.verdict is Verdict.INCONCLUSIVE


def test_what_is_sampled_out_is_found_by_listening():
    stage = Stage(sampler=ALWAYS_OFF)
    with stage.detector.listen():
        stage.race()

    assert stage.detector.verdict is Verdict.VIOLATED


def test_a_finding_is_a_root_span_with_links_to_culprit_and_owner(stage):
    second = stage.race()
    second.release(Owner(2, "run-2"), Outcome.COMPLETED)

    (violation,) = stage.spans("violation")
    (discard,) = stage.spans("discard")
    owner = stage.spans("own")[1]
    assert violation.parent is None
    assert [link.context.span_id for link in violation.links] == [
        discard.context.span_id,
        owner.context.span_id,
    ]


def test_spans_of_the_detectors_are_not_read_again(stage):
    tracer = stage.provider.get_tracer(semconv.DETECTORS_SCOPE)
    stage.race()
    (discard,) = stage.spans("discard")
    attributes = {**discard.attributes, semconv.SEQ: 99}
    tracer.start_span("discard", context=Context(), attributes=attributes).end()

    assert len(stage.detector.findings) == 1


def test_a_span_that_cannot_be_read_leaves_the_verdict_open(stage):
    run = stage.claim(1)
    run.release(Owner(1), Outcome.COMPLETED)
    assert stage.detector.verdict is Verdict.CLEAN
    tracer = stage.provider.get_tracer("somebody")
    tracer.start_span("commit", attributes={semconv.RUN_EPOCH: 1}).end()

    assert stage.detector.verdict is Verdict.INCONCLUSIVE
    assert stage.detector.missing == (f"spans without a readable {semconv.ENGINE}",)


def test_spans_of_other_libraries_are_left_alone(stage):
    tracer = stage.provider.get_tracer("database")
    tracer.start_span("commit", attributes={"db.system": "sqlite"}).end()

    assert stage.detector.missing == ("any operation",)


def test_a_callback_that_raises_does_not_reach_the_run(caplog):
    def on_finding(finding):
        raise LookupError("gone")

    provider = TracerProvider()
    detector = Detector(on_finding, announce=())
    provider.add_span_processor(OwnershipSpanProcessor(detector))
    stage = Stage()
    stage.instance = Recorder("x/1", tracer_provider=provider).instance("press", "i")
    stage.race()

    assert len(detector.findings) == 1
    assert "could not be announced" in caplog.text


class Broken(Detector):
    """A detector with a fault of its own."""

    def feed(self, operation):
        raise LookupError("gone")


def test_a_fault_of_the_detector_does_not_reach_the_run(caplog):
    provider = TracerProvider()
    provider.add_span_processor(OwnershipSpanProcessor(Broken(announce=())))
    provider.get_tracer("x")
    instance = Recorder("x/1", tracer_provider=provider).instance("press", "i")
    instance.run("run-1", parent=Context()).claim(Owner(1))

    assert "could not be read by the race detector" in caplog.text


def test_shutdown_and_flush_keep_what_was_found(stage):
    stage.race()

    assert stage.provider.force_flush()
    stage.provider.shutdown()
    assert len(stage.detector.findings) == 1
