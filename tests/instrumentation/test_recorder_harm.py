"""Telemetry that goes wrong stays telemetry that goes wrong."""

import logging
import os
import weakref

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from tenure.instrumentation import Recorder, add_listener, remove_listener
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    Discard,
    DiscardCause,
    Execute,
    Late,
    LateKind,
    Operation,
    Outcome,
    Owner,
    Release,
    SuperstepEnd,
    SuperstepStart,
)

FIRST = Owner(1, "r1")


class Raising(SpanProcessor):
    def __init__(self, *, on_start: bool = False, on_end: bool = False) -> None:
        self.raises_on_start = on_start
        self.raises_on_end = on_end

    def on_start(self, span, parent_context=None):
        if self.raises_on_start:
            raise RuntimeError

    def on_end(self, span):
        if self.raises_on_end:
            raise RuntimeError


class RecordOnly(Sampler):
    """Keep what belongs to a run for processors, and export nothing."""

    def should_sample(
        self, parent_context, trace_id, name, kind=None, attributes=None, links=None
    ):
        known = "tenure.run.epoch" in (attributes or {})
        return SamplingResult(
            Decision.RECORD_ONLY if known else Decision.DROP, attributes
        )

    def get_description(self) -> str:
        return "RecordOnly"


class Seen(SpanProcessor):
    def __init__(self) -> None:
        self.names: list[str] = []

    def on_end(self, span):
        self.names.append(span.name)


def everything(run) -> None:
    """Call every kind of method once."""
    run.claim(FIRST)
    run.superstep_started(FIRST, 1)
    span = run.executor_started("writer", 1)
    run.executor_ended(FIRST, span, "writer", 1, writes={"draft": 1})
    run.commit(FIRST, {"draft": 1}, index=1)
    run.superstep_ended(FIRST, 1)
    run.discard(FIRST, {}, cause=DiscardCause.SWEEP, detached=True)
    run.late(FIRST, LateKind.SEND)
    run.release(FIRST, Outcome.COMPLETED)
    run.ended(Outcome.COMPLETED)


EVERYTHING = [
    Claim,
    SuperstepStart,
    Execute,
    Commit,
    SuperstepEnd,
    Discard,
    Late,
    Release,
]


@pytest.mark.parametrize("where", ["on_start", "on_end"])
def test_a_raising_processor_reaches_neither_the_run_nor_the_listeners(
    where, heard, caplog
):
    provider = TracerProvider()
    provider.add_span_processor(Raising(**{where: True}))
    instance = Recorder("engine/1.2", tracer_provider=provider).instance("p", "i")
    everything(instance.run("r1"))
    assert [type(operation) for operation in heard] == EVERYTHING
    assert [operation.seq for operation in heard] == list(range(1, 9))
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert all("RuntimeError" in record.getMessage() for record in caplog.records)


def test_what_is_logged_keeps_nothing_of_the_run_alive(caplog):
    class Held:
        pass

    def tell_from_a_frame_that_holds_something() -> weakref.ref[Held]:
        held = Held()
        run.commit(FIRST, 7)
        run.discard(FIRST, 7, cause=DiscardCause.FAILED)
        add_listener(_raising)
        run.commit(FIRST, {})
        return weakref.ref(held)

    run = Recorder("engine/1.2").instance("p", "i").run("r1")
    run.claim(FIRST)
    add_listener(_silent)
    held = tell_from_a_frame_that_holds_something()
    remove_listener(_silent)
    assert len(caplog.records) == 3
    assert held() is None


def _silent(_operation: Operation) -> None:
    pass


def _raising(_operation: Operation) -> None:
    raise RuntimeError


def test_a_tracer_that_is_broken_altogether_does_no_harm(heard, caplog):
    class Broken(trace.NoOpTracerProvider):
        def get_tracer(self, *_args, **_kwargs):
            return trace.NoOpTracer()

    recorder = Recorder("engine/1.2", tracer_provider=Broken())
    recorder.tracer.start_span = None
    everything(recorder.instance("p", "i").run("r1"))
    assert [type(operation) for operation in heard] == EVERYTHING
    assert "could not be recorded" in caplog.text


def test_facts_that_cannot_be_told_are_logged_and_not_raised(heard, caplog):
    run = Recorder("engine/1.2").instance("p", "i").run("r1")
    run.claim(FIRST)
    run.superstep_started(FIRST, 1)
    span = run.executor_started("writer", 1)
    run.executor_ended(FIRST, span, "writer", 1, reads=7)
    run.commit(FIRST, 7)
    run.discard(FIRST, 7, cause=DiscardCause.FAILED)
    run.checkpoint_saved(FIRST, "c1", None, 7)
    run.superstep_ended(FIRST, 1)
    assert [type(operation) for operation in heard] == [
        Claim,
        SuperstepStart,
        SuperstepEnd,
    ]
    assert len(caplog.records) == 4


class TestSampling:
    def test_listeners_do_not_depend_on_sampling(self, heard):
        provider = TracerProvider(sampler=ALWAYS_OFF)
        instance = Recorder("engine/1.2", tracer_provider=provider).instance("p", "i")
        everything(instance.run("r1"))
        assert [type(operation) for operation in heard] == EVERYTHING
        # A span that nobody keeps is no evidence.
        assert all(operation.span is None for operation in heard)

    def test_a_record_only_sampler_that_goes_by_the_epoch_sees_the_whole_run(self):
        seen = Seen()
        provider = TracerProvider(sampler=RecordOnly())
        provider.add_span_processor(seen)
        instance = Recorder("engine/1.2", tracer_provider=provider).instance("p", "i")
        run = instance.run("r1")
        assert not run.recording
        everything(run)
        assert seen.names == [
            "execute writer",
            "commit",
            "superstep",
            "discard",
            "late send",
            "own p",
        ]

    def test_an_unsampled_run_makes_no_span_for_supersteps(self, heard):
        started: list[str] = []

        class Counting(Sampler):
            def should_sample(
                self,
                parent_context,
                trace_id,
                name,
                kind=None,
                attributes=None,
                links=None,
            ):
                started.append(name)
                return SamplingResult(Decision.DROP)

            def get_description(self) -> str:
                return "Counting"

        provider = TracerProvider(sampler=ParentBased(Counting()))
        instance = Recorder("engine/1.2", tracer_provider=provider).instance("p", "i")
        everything(instance.run("r1"))
        assert len(heard) == len(EVERYTHING)
        # Its children follow their parent; roots are asked for themselves.
        assert started == ["run p", "discard", "late send"]

    def test_an_executor_that_only_listeners_hear_of_works_inside_the_runs_parent(
        self, heard
    ):
        remote = SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1))
        parent = trace.set_span_in_context(NonRecordingSpan(remote), Context())
        run = Recorder("engine/1.2").instance("p", "i").run("r1", parent=parent)
        run.claim(FIRST)
        span = run.executor_started("writer", 1)
        assert span.get_span_context() == remote
        run.executor_ended(FIRST, span, "writer", 1)
        assert isinstance(heard[-1], Execute)

    def test_an_executor_that_nobody_hears_of_has_no_span(self):
        run = Recorder("engine/1.2").instance("p", "i").run("r1")
        run.claim(FIRST)
        assert run.executor_started("writer", 1) is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_does_not_tell_the_runs_of_its_parent(heard, traces):
    instance = Recorder("engine/1.2", tracer_provider=traces.provider).instance(
        "p", "i"
    )
    run = instance.run("r1")
    run.claim(FIRST)
    before = len(heard)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run.discard(FIRST, {}, cause=DiscardCause.FINALIZER, detached=True)
            run.late(FIRST, LateKind.SEND)
            run.release(FIRST, Outcome.ABANDONED)
            run.ended(Outcome.ABANDONED)
            silent = len(heard) == before and not traces.spans
            fresh = instance.run("r2")
            fresh.claim(Owner(2, "r2"))
            claim = heard[-1]
            counts_anew = claim.seq == 1 and claim.run.process != run.ref.process
            status = 0 if silent and counts_anew else 1
        finally:
            os._exit(status)
    _, result = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(result) == 0
    run.release(FIRST, Outcome.COMPLETED)
    assert heard[-1].seq == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("shared", [False, True])
def test_only_an_instance_of_a_store_is_the_same_instance_in_a_fork(heard, shared):
    instance = Recorder("engine/1.2").instance("p", "i", shared=shared)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            instance.run("r2").claim(Owner(2, "r2"))
            status = 0 if (heard[-1].run.instance == "i") is shared else 1
        finally:
            os._exit(status)
    _, result = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(result) == 0
    instance.run("r1").claim(FIRST)
    assert heard[-1].run.instance == "i"
