"""What processors see, and what is exported, when traces are sampled."""

import logging
import os
import subprocess
import sys
from collections import Counter

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    ParentBasedTraceIdRatio,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import TraceState

from tenure.detectors import Detector, OwnershipSpanProcessor, Verdict
from tenure.instrumentation import (
    Recorder,
    RecordOwnership,
    TelemetryConfigError,
    semconv,
)
from tenure.instrumentation.operations import (
    DeliveryKind,
    DiscardCause,
    LateKind,
    Outcome,
    Owner,
)
from tenure.instrumentation.sampler import from_environment, record_ownership
from tenure.runtime import Executor, WorkflowBuilder, handler

OWNERSHIP = {
    "run p",
    "own p",
    "superstep",
    "execute writer",
    "commit",
    "discard",
    "checkpoint save",
    "checkpoint restore",
    "foreign read",
    "foreign delivery",
    "late stage",
}


class Seen(SpanProcessor):
    """Keeps every span that ends, sampled or not."""

    def __init__(self) -> None:
        self.started: list[dict[str, object]] = []
        self.spans: list[trace.Span] = []

    def on_start(self, span, parent_context=None):
        self.started.append(dict(span.attributes))

    def on_end(self, span):
        self.spans.append(span)

    @property
    def names(self) -> set[str]:
        return {span.name for span in self.spans}


class Stage:
    """A recorder over an SDK whose traces are sampled, read by a detector's processor.

    The detector does not listen: all that it knows comes from spans.
    """

    def __init__(self, sampler: Sampler) -> None:
        self.exporter, self.seen = InMemorySpanExporter(), Seen()
        self.provider = TracerProvider(sampler=sampler)
        self.detector = Detector(announce=())
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.provider.add_span_processor(OwnershipSpanProcessor(self.detector))
        self.provider.add_span_processor(self.seen)
        self.recorder = Recorder("engine/1.2", tracer_provider=self.provider)

    @property
    def exported(self) -> list[str]:
        return [span.name for span in self.exporter.get_finished_spans()]

    def everything(self, number: int = 1) -> None:
        """Tell one run that does everything that a run can do."""
        owner = Owner(1, f"r{number}")
        instance = self.recorder.instance("p", f"i{number}")
        run = instance.run(owner.run_id, parent=Context())
        run.claim(owner)
        run.checkpoint_restored(owner, "c0", None, {"writer": 1})
        run.superstep_started(owner, 1)
        span = run.executor_started("writer", 1)
        run.executor_ended(owner, span, "writer", 1, reads=["a"], writes={"draft": 1})
        run.foreign_read(owner, "b", 1)
        run.foreign_delivery(owner, DeliveryKind.MESSAGE, 1, message="m1")
        run.commit(owner, {"draft": 1}, index=1)
        run.checkpoint_saved(owner, "c1", "c0", {"writer": 1})
        run.superstep_ended(owner, 1)
        run.discard(owner, {}, cause=DiscardCause.SWEEP, fenced=True)
        run.late(owner, LateKind.STAGE, writes={"draft": 1}, ledger=1)
        run.release(owner, Outcome.COMPLETED)
        run.ended(Outcome.COMPLETED)

    def race(self) -> None:
        """Tell that epoch 1, which epoch 2 has replaced, discards what 2 staged."""
        instance = self.recorder.instance("p", "race")
        first, second = (
            instance.run(run_id, parent=Context()) for run_id in ("r1", "r2")
        )
        first.claim(Owner(1, "r1"))
        first.release(Owner(1, "r1"), Outcome.SUPERSEDED)
        second.claim(Owner(2, "r2"), superseded=1)
        first.discard(
            Owner(2, "r2"), {"b": 2}, cause=DiscardCause.FINALIZER, detached=True
        )
        second.release(Owner(2, "r2"), Outcome.COMPLETED)


def told(seen: Seen) -> list[tuple[str, dict[str, object]]]:
    return [(span.name, dict(span.attributes)) for span in seen.spans]


NOTHING = RecordOwnership(ALWAYS_OFF)
FEW = ParentBasedTraceIdRatio(0.01)


def test_without_it_a_run_that_is_sampled_out_reaches_no_processor():
    stage = Stage(ALWAYS_OFF)
    stage.everything()

    assert stage.seen.spans == []


@pytest.mark.parametrize("inner", [ALWAYS_OFF, ParentBased(ALWAYS_OFF)])
def test_at_no_sampling_every_ownership_span_reaches_processors_with_all_it_says(inner):
    sampled, unsampled = Stage(ALWAYS_ON), Stage(RecordOwnership(inner))
    sampled.everything()
    unsampled.everything()

    assert unsampled.seen.names == OWNERSHIP
    assert told(unsampled.seen) == told(sampled.seen)
    assert unsampled.seen.started == sampled.seen.started
    assert not any(span.context.trace_flags.sampled for span in unsampled.seen.spans)
    assert unsampled.exported == []


def test_a_run_at_one_percent_is_exported_exactly_when_the_other_sampler_says_so():
    stage = Stage(RecordOwnership(FEW))
    for number in range(400):
        stage.everything(number)

    spans = stage.seen.spans
    assert Counter(span.name for span in spans) == dict.fromkeys(OWNERSHIP, 400)
    wanted = [
        span
        for span in spans
        if FEW.should_sample(None, span.context.trace_id, span.name).decision
        is Decision.RECORD_AND_SAMPLE
    ]
    # 800 traces, as a late write has one of its own: the odds of none are one to 3,000.
    assert 0 < len(wanted) < len(spans) / 10
    assert Counter(stage.exported) == Counter(span.name for span in wanted)


@pytest.mark.parametrize("inner", [ALWAYS_OFF, FEW])
def test_a_clean_run_that_is_sampled_out_is_called_clean_from_spans_alone(inner):
    stage = Stage(RecordOwnership(inner))
    instance = stage.recorder.instance("p", "i")
    for epoch in (1, 2):
        owner = Owner(epoch, f"r{epoch}")
        run = instance.run(owner.run_id, parent=Context())
        run.claim(owner)
        run.superstep_started(owner, 1)
        run.commit(owner, {"draft": epoch}, index=1)
        run.superstep_ended(owner, 1)
        run.release(owner, Outcome.COMPLETED)
        run.ended(Outcome.COMPLETED)

    assert stage.detector.missing == ()
    assert stage.detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize("inner", [ALWAYS_OFF, FEW])
def test_a_race_that_is_sampled_out_is_proven_from_spans_alone(inner):
    stage = Stage(RecordOwnership(inner))
    stage.race()

    (finding,) = stage.detector.findings
    assert (finding.anomaly, finding.certainty) == ("stale-discard", "certain")
    assert finding.culprit.span is not None
    assert stage.detector.verdict is Verdict.VIOLATED


class Writer(Executor):
    @handler
    async def write(self, message: str, context) -> None:
        context.set_state("draft", message)
        await context.yield_output(message)


async def test_tenures_own_engine_is_called_clean_when_everything_is_sampled_out():
    stage = Stage(NOTHING)
    workflow = WorkflowBuilder(
        start=Writer(id="w"), name="press", recorder=stage.recorder
    ).build()
    for message in ("a", "b"):
        await workflow.run(message)

    assert {"own press", "commit", "run press"} <= stage.seen.names
    assert stage.detector.missing == ()
    assert stage.detector.verdict is Verdict.CLEAN
    assert stage.exported == []


@pytest.mark.parametrize("inner", [ALWAYS_OFF, ALWAYS_ON, FEW])
def test_spans_of_other_libraries_are_left_to_the_other_sampler(inner):
    for sampler in (inner, RecordOwnership(inner)):
        stage = Stage(sampler)
        tracer = stage.provider.get_tracer("database")
        for attributes in ({"db.system": "sqlite"}, None):
            tracer.start_span("query", context=Context(), attributes=attributes).end()
        if inner is ALWAYS_ON:
            assert len(stage.seen.spans) == len(stage.exported) == 2
        else:
            assert len(stage.seen.spans) == len(stage.exported)


def test_a_span_of_user_code_inside_an_unsampled_executor_stays_unsampled():
    stage = Stage(RecordOwnership(ParentBased(ALWAYS_OFF)))
    run = stage.recorder.instance("p", "i").run("r1", parent=Context())
    run.claim(Owner(1, "r1"))
    span = run.executor_started("writer", 1)
    inside = trace.set_span_in_context(span, run.context)
    query = stage.provider.get_tracer("database").start_span("query", context=inside)
    query.end()

    assert span.is_recording()
    assert not query.is_recording()
    assert query.get_span_context().trace_id == span.get_span_context().trace_id


def test_a_finding_is_no_ownership_span():
    attributes = {semconv.RUN_ID: "r1", semconv.ANOMALY: "stale-discard"}
    result = NOTHING.should_sample(None, 1, "violation", attributes=attributes)

    assert result.decision is Decision.DROP


class Marking(Sampler):
    """Decides as it is told, and leaves a mark in attributes and trace state."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def should_sample(
        self, parent_context, trace_id, name, kind=None, attributes=None, links=None
    ):
        return SamplingResult(
            self.decision, {"marked": True}, TraceState([("vendor", "1")])
        )

    def get_description(self) -> str:
        return "Marking"


EPOCH = {semconv.RUN_EPOCH: 1}


def test_what_the_other_sampler_adds_is_kept_with_what_the_span_says():
    sampler = RecordOwnership(Marking(Decision.DROP))
    result = sampler.should_sample(None, 1, "commit", attributes=EPOCH)

    assert result.decision is Decision.RECORD_ONLY
    assert result.attributes == {**EPOCH, "marked": True}
    assert result.trace_state == TraceState([("vendor", "1")])


@pytest.mark.parametrize("decision", [Decision.RECORD_ONLY, Decision.RECORD_AND_SAMPLE])
def test_what_the_other_sampler_records_is_its_own_affair(decision):
    sampler = RecordOwnership(Marking(decision))
    result = sampler.should_sample(None, 1, "commit", attributes=EPOCH)

    assert result.decision is decision
    assert result.attributes == {"marked": True}


def test_it_names_itself_and_the_other_sampler():
    description = RecordOwnership(Marking(Decision.DROP)).get_description()
    assert description == "RecordOwnership{Marking}"


@pytest.mark.parametrize(
    ("argument", "inner"),
    [
        (None, "ParentBased{root:AlwaysOnSampler,"),
        ("", "ParentBased{root:AlwaysOnSampler,"),
        ("always_off", "AlwaysOffSampler"),
        (" Always_On ", "AlwaysOnSampler"),
        ("parentbased_always_off", "ParentBased{root:AlwaysOffSampler,"),
        ("traceidratio=0.25", "TraceIdRatioBased{0.25}"),
        (
            "parentbased_traceidratio = 0.01",
            "ParentBased{root:TraceIdRatioBased{0.01},",
        ),
    ],
)
def test_an_argument_in_the_environment_names_the_other_sampler(argument, inner):
    description = record_ownership(argument).get_description()
    assert description.startswith(f"RecordOwnership{{{inner}")


@pytest.mark.parametrize(
    ("argument", "remedy"),
    [
        ("sometimes", "one of always_off, always_on"),
        ("traceidratio", "give a ratio from 0 to 1, as in traceidratio=0.01"),
        ("parentbased_traceidratio=2", "give a ratio from 0 to 1"),
        ("parentbased_traceidratio=nan", "give a ratio from 0 to 1"),
        ("tenure_record_ownership", "one of always_off, always_on"),
    ],
)
def test_an_argument_that_cannot_be_used_is_logged_and_loses_no_trace(
    argument, remedy, caplog
):
    sampler = record_ownership(argument)

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.message.startswith(f"OTEL_TRACES_SAMPLER_ARG={argument!r} cannot be")
    assert remedy in record.message
    assert "{ParentBased{root:AlwaysOnSampler," in sampler.get_description()


def test_code_that_reads_the_environment_refuses_what_cannot_be_used(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "tenure_record_ownership")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "sometimes")
    with pytest.raises(TelemetryConfigError, match="OTEL_TRACES_SAMPLER_ARG='someti"):
        from_environment()

    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    assert from_environment() is None


CONFIGURED = """
from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from tenure.detectors import Detector, OwnershipSpanProcessor
from tenure.instrumentation import Recorder, configure_otlp
from tenure.instrumentation.operations import Outcome, Owner

detector = Detector(announce=())
configure_otlp(span_processors=[OwnershipSpanProcessor(detector)], {options})
run = Recorder("engine/1.2").instance("p", "i").run("r1", parent=Context())
run.claim(Owner(1, "r1"))
run.release(Owner(1, "r1"), Outcome.COMPLETED)
print(detector.verdict)
"""


@pytest.mark.parametrize(
    ("options", "variables", "verdict"),
    [
        ("sampler=ALWAYS_OFF", {}, "clean"),
        ("sampler=ALWAYS_OFF, record_ownership=False", {}, "inconclusive"),
        ("", {"OTEL_TRACES_SAMPLER": "always_off"}, "clean"),
        (
            "record_ownership=False",
            {"OTEL_TRACES_SAMPLER": "always_off"},
            "inconclusive",
        ),
        (
            "record_ownership=False",
            {
                "OTEL_TRACES_SAMPLER": "tenure_record_ownership",
                "OTEL_TRACES_SAMPLER_ARG": "always_off",
            },
            "clean",
        ),
    ],
)
def test_the_set_up_in_one_call_has_it_unless_that_is_turned_off(
    options, variables, verdict
):
    others = {
        name: value for name, value in os.environ.items() if not name.startswith("OTEL")
    }
    no_exporters = {
        f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CONFIGURED.format(options=options)],
        env={**others, **no_exporters, **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"{verdict}\n"
