"""The one mouth: what is told, to whom, and how spans hang together."""

from contextvars import copy_context

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from tenure.instrumentation import Detail, KeyDisplay, Recorder, RunRecorder
from tenure.instrumentation.operations import (
    WRITE_CAP,
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    CommitCause,
    DeliveryKind,
    Discard,
    DiscardCause,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    LateKind,
    Operation,
    Outcome,
    Owner,
    Release,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

FIRST = Owner(1, "r1")
SECOND = Owner(2, "r2")


def recorder_for(traces, **options) -> Recorder:
    return Recorder("engine/1.2", tracer_provider=traces.provider, **options)


def superstep(run: RunRecorder, owner: Owner, index: int = 1) -> None:
    """Tell one superstep of one executor that stages one key."""
    writes = {"draft": owner.epoch}
    run.superstep_started(owner, index)
    span = run.executor_started("writer", index)
    run.executor_ended(owner, span, "writer", index, reads=("title",), writes=writes)
    run.commit(owner, writes, index=index)
    run.superstep_ended(owner, index)


def whole_run(run: RunRecorder, owner: Owner) -> None:
    run.claim(owner)
    superstep(run, owner)
    run.release(owner, Outcome.COMPLETED)
    run.ended(Outcome.COMPLETED)


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    return span.get_span_context().span_id


def linked_from(span: ReadableSpan) -> list[int]:
    return [link.context.span_id for link in span.links]


class TestWhatListenersHear:
    def test_a_whole_run_is_heard_without_an_sdk(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        whole_run(run, FIRST)
        assert [type(operation) for operation in heard] == [
            Claim,
            SuperstepStart,
            Execute,
            Commit,
            SuperstepEnd,
            Release,
        ]
        assert [operation.seq for operation in heard] == [1, 2, 3, 4, 5, 6]
        assert all(operation.owner == FIRST for operation in heard)
        assert all(operation.span is None for operation in heard)
        assert all(operation.time > 0 for operation in heard)

    def test_operations_say_on_whose_behalf_they_act(self, heard):
        run = Recorder("engine/1.2").instance("press", "customer-42").run("r1")
        whole_run(run, FIRST)
        ref = run.ref
        assert ref is not None
        assert (ref.engine, ref.workflow, ref.instance, ref.run_id, ref.epoch) == (
            "engine/1.2",
            "press",
            "customer-42",
            "r1",
            1,
        )
        assert all(operation.run == ref for operation in heard)

    def test_an_execution_tells_its_reads_writes_and_error(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        span = run.executor_started("writer", 3, attempt=2)
        run.executor_ended(
            FIRST,
            span,
            "writer",
            3,
            reads=["title"],
            writes={"draft": 1},
            error=ValueError("a value"),
        )
        execute = heard[-1]
        assert isinstance(execute, Execute)
        assert (execute.executor, execute.index) == ("writer", 3)
        assert execute.reads == ("title",)
        assert execute.writes == WriteSet((("draft", 1),))
        assert execute.error == "ValueError"

    def test_unknown_writes_stay_unknown(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.commit(FIRST, None)
        run.discard(FIRST, None, cause=DiscardCause.SWEEP)
        run.discard(FIRST, {}, cause=DiscardCause.SWEEP)
        assert [operation.writes for operation in heard[1:]] == [
            None,
            None,
            WriteSet(),
        ]

    def test_foreign_writes_are_never_the_ones_left_out(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        own = {f"key-{number:02}": 1 for number in range(WRITE_CAP + 8)}
        run.commit(FIRST, {**own, "stolen": 7})
        writes = heard[-1].writes
        assert writes.pairs[0] == ("stolen", 7)
        assert len(writes.pairs) == WRITE_CAP
        assert writes.count == WRITE_CAP + 9

    def test_reads_are_capped(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        span = run.executor_started("writer", 1)
        reads = [str(number) for number in range(WRITE_CAP + 1)]
        run.executor_ended(FIRST, span, "writer", 1, reads=reads)
        assert heard[-1].reads == tuple(reads[:WRITE_CAP])

    def test_what_only_shared_state_produces_is_heard(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.foreign_read(FIRST, "draft", 9, executor="writer")
        run.foreign_delivery(FIRST, DeliveryKind.MESSAGE, 9, message="m1")
        run.late(SECOND, LateKind.STAGE, writes={"draft": 1}, ledger=2)
        read, delivery, late = heard[1:]
        assert isinstance(read, ForeignRead)
        assert (read.key, read.writer, read.executor) == ("draft", 9, "writer")
        assert isinstance(delivery, ForeignDelivery)
        assert (delivery.origin, delivery.message) == (9, "m1")
        assert isinstance(late, Late)
        assert late.stale
        assert late.ledger == 2

    def test_checkpoints_name_their_parts(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.checkpoint_restored(FIRST, "c1", None, None)
        run.checkpoint_saved(FIRST, "c2", "c1", {"writer": 1, "edge": 0})
        restored, saved = heard[1:]
        assert isinstance(restored, CheckpointRestore)
        assert restored.parts is None
        assert isinstance(saved, CheckpointSave)
        assert (saved.checkpoint, saved.parent) == ("c2", "c1")
        assert saved.parts == (("writer", 1), ("edge", 0))

    def test_nothing_is_told_before_the_claim(self, heard, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        superstep(run, FIRST)
        run.discard(FIRST, {"draft": 1}, cause=DiscardCause.FAILED)
        run.late(FIRST, LateKind.SEND)
        run.checkpoint_saved(FIRST, "c1", None, None)
        run.foreign_read(FIRST, "draft", 9)
        run.foreign_delivery(FIRST, DeliveryKind.EVENT, 9)
        run.release(FIRST, Outcome.LOST)
        run.ended(Outcome.LOST)
        assert heard == []
        assert [span.name for span in traces.spans] == ["run press"]

    def test_a_second_release_is_ignored(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.release(FIRST, Outcome.SUPERSEDED)
        run.release(SECOND, Outcome.CANCELLED)
        releases = [found for found in heard if isinstance(found, Release)]
        assert [found.outcome for found in releases] == [Outcome.SUPERSEDED]

    def test_a_superstep_ends_once(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        run.superstep_ended(FIRST, 1)
        run.superstep_ended(FIRST, 1)
        assert [type(operation) for operation in heard] == [
            Claim,
            SuperstepStart,
            SuperstepEnd,
        ]

    def test_a_superstep_whose_start_nobody_heard_has_no_end(self, listen):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        span = run.executor_started("writer", 1)
        heard: list[Operation] = []
        listen(heard.append)
        run.executor_ended(FIRST, span, "writer", 1)
        run.superstep_ended(FIRST, 1)
        assert heard == []
        superstep(run, FIRST, 2)
        assert len(heard) == 4

    def test_listening_alone_makes_a_run_tell(self, listen):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        assert not run.telling
        listen(lambda _operation: None)
        assert run.telling
        assert not run.recording


class TestNumbers:
    @pytest.mark.parametrize(
        ("detail", "told"),
        [
            (Detail.OWNERSHIP, {Claim, Commit, Release}),
            (
                Detail.SUPERSTEPS,
                {Claim, SuperstepStart, Commit, SuperstepEnd, Release},
            ),
            (
                Detail.EXECUTORS,
                {Claim, SuperstepStart, Execute, Commit, SuperstepEnd, Release},
            ),
        ],
    )
    def test_numbers_have_no_gap_at_any_level_of_detail(
        self, heard, traces, detail, told
    ):
        instance = recorder_for(traces, detail=detail).instance("press", "default")
        for epoch in (1, 2):
            whole_run(instance.run(f"r{epoch}"), Owner(epoch, f"r{epoch}"))
        assert {type(operation) for operation in heard} == told
        numbers = [operation.seq for operation in heard]
        assert numbers == list(range(1, len(numbers) + 1))
        in_spans = [
            span.attributes[name]
            for span in traces.spans
            for name in ("tenure.seq", "tenure.end.seq")
            if name in span.attributes
        ]
        assert sorted(in_spans) == numbers

    def test_instances_count_for_themselves(self, heard):
        recorder = Recorder("engine/1.2")
        recorder.instance("press", "a").run("r1").claim(FIRST)
        recorder.instance("press", "b").run("r2").claim(FIRST)
        assert [operation.seq for operation in heard] == [1, 1]

    def test_a_run_that_nobody_hears_leaves_a_gap(self, traces, listen):
        instance = Recorder("engine/1.2").instance("press", "default")
        whole_run(instance.run("unheard"), FIRST)
        heard: list[Operation] = []
        listen(heard.append)
        instance.run("r2").claim(SECOND)
        assert heard[0].seq == 3


class TestSpans:
    def test_supersteps_are_inside_the_run_and_hold_what_they_did(self, traces):
        whole_run(recorder_for(traces).instance("press", "default").run("r1"), FIRST)
        run = traces.named("run press")
        step = traces.named("superstep")
        assert run.parent is None
        assert parent_of(traces.named("own press")) == id_of(run)
        assert parent_of(step) == id_of(run)
        assert parent_of(traces.named("execute writer")) == id_of(step)
        assert parent_of(traces.named("commit")) == id_of(step)

    def test_every_span_of_an_operation_names_who_acted(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        whole_run(run, FIRST)
        for span in traces.spans:
            assert span.attributes["tenure.engine"] == "engine/1.2"
            assert span.attributes["tenure.workflow.name"] == "press"
            assert span.attributes["tenure.instance.id"] == "default"
            assert span.attributes["tenure.run.id"] == "r1"
            assert span.attributes["tenure.run.epoch"] == 1
            assert span.instrumentation_scope.name == "tenure.runtime"
            assert span.instrumentation_scope.version == "1.2"
        for span in traces.spans:
            if span.name != "run press":
                assert span.attributes["tenure.owner.epoch"] == 1
                assert span.attributes["tenure.process.id"] == run.ref.process

    def test_listeners_and_spans_say_the_same(self, traces, heard):
        whole_run(recorder_for(traces).instance("press", "default").run("r1"), FIRST)
        by_id = {id_of(span): span for span in traces.spans}
        for operation in heard:
            span = by_id[operation.span.span_id]
            assert operation.span.trace_id == span.get_span_context().trace_id
            ends = isinstance(operation, Release | SuperstepEnd)
            name = "tenure.end.seq" if ends else "tenure.seq"
            assert span.attributes[name] == operation.seq

    def test_an_own_span_lasts_from_the_claim_to_the_release(self, traces, heard):
        whole_run(recorder_for(traces).instance("press", "default").run("r1"), FIRST)
        own = traces.named("own press")
        assert own.start_time == heard[0].time
        assert own.end_time == heard[-1].time
        assert own.attributes["tenure.run.outcome"] == "completed"

    def test_an_execution_says_what_it_touched(self, traces):
        whole_run(recorder_for(traces).instance("press", "default").run("r1"), FIRST)
        execute = traces.named("execute writer").attributes
        assert execute["tenure.executor.id"] == "writer"
        assert execute["tenure.superstep.index"] == 1
        assert execute["tenure.read.keys"] == ("title",)
        assert execute["tenure.write.keys"] == ("draft",)
        assert execute["tenure.write.epochs"] == (1,)

    def test_a_retry_says_which_attempt_it_is(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        for attempt in (1, 2):
            span = run.executor_started("writer", 1, attempt=attempt)
            run.executor_ended(FIRST, span, "writer", 1)
        first, second = traces.all_named("execute writer")
        assert "tenure.executor.attempt" not in first.attributes
        assert second.attributes["tenure.executor.attempt"] == 2

    def test_an_execution_links_to_the_spans_that_sent_its_messages(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        sender = run.executor_started("writer", 1)
        run.executor_ended(FIRST, sender, "writer", 1)
        sources = [sender.get_span_context(), None, trace.INVALID_SPAN_CONTEXT]
        receiver = run.executor_started("editor", 2, sources)
        run.executor_ended(FIRST, receiver, "editor", 2)
        assert linked_from(traces.named("execute editor")) == [
            sender.get_span_context().span_id
        ]

    def test_the_run_span_is_a_child_of_the_callers_span(self, traces):
        tracer = traces.provider.get_tracer("caller")
        instance = recorder_for(traces).instance("press", "default")
        with tracer.start_as_current_span("request") as request:
            run = instance.run("r1")
        whole_run(run, FIRST)
        assert parent_of(traces.named("run press")) == (
            request.get_span_context().span_id
        )

    def test_an_explicit_parent_wins_over_the_current_span(self, traces):
        tracer = traces.provider.get_tracer("caller")
        instance = recorder_for(traces).instance("press", "default")
        with tracer.start_as_current_span("request"):
            run = instance.run("r1", parent=Context())
        whole_run(run, FIRST)
        assert traces.named("run press").parent is None

    def test_telling_never_changes_the_current_context(self, traces):
        before = otel_context.get_current()
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        run.executor_started("writer", 1)
        assert otel_context.get_current() is before

    def test_the_current_span_of_another_run_is_never_the_parent(self, traces):
        tracer = traces.provider.get_tracer("other")
        run = recorder_for(traces).instance("press", "default").run("r1")
        with tracer.start_as_current_span("other run"):
            whole_run(run, FIRST)
        trace_id = traces.named("run press").get_span_context().trace_id
        for span in traces.spans:
            expected = span.name != "other run"
            assert (span.get_span_context().trace_id == trace_id) is expected

    def test_a_superstep_left_open_ends_with_its_run(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        run.release(FIRST, Outcome.ABANDONED)
        run.ended(Outcome.ABANDONED)
        assert "tenure.end.seq" not in traces.named("superstep").attributes

    def test_what_follows_a_superstep_is_inside_the_run_again(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        superstep(run, FIRST)
        run.checkpoint_saved(FIRST, "c1", None, {"writer": 1})
        run.ended(Outcome.COMPLETED)
        saved = traces.named("checkpoint save")
        assert parent_of(saved) == id_of(traces.named("run press"))
        assert saved.attributes["tenure.checkpoint.parts"] == ("writer",)
        assert saved.attributes["tenure.checkpoint.epochs"] == (1,)


class TestUserCode:
    def test_spans_of_user_code_are_inside_the_executor_that_made_them(self, traces):
        tracer = traces.provider.get_tracer("user")

        def user_code() -> None:
            run = recorder_for(traces).instance("press", "default").run("r1")
            run.claim(FIRST)
            span = run.executor_started("writer", 1)
            run.make_current(span)
            tracer.start_span("inside").end()
            run.make_current(None)
            tracer.start_span("after").end()
            run.executor_ended(FIRST, span, "writer", 1)
            run.ended(Outcome.COMPLETED)

        copy_context().run(user_code)
        executor, run = traces.named("execute writer"), traces.named("run press")
        assert parent_of(traces.named("inside")) == id_of(executor)
        assert parent_of(traces.named("after")) == id_of(run)

    def test_a_run_that_is_not_recorded_leaves_the_current_context_alone(self, heard):
        run = Recorder("engine/1.2").instance("press", "default").run("r1")
        run.claim(FIRST)
        before = otel_context.get_current()
        run.make_current(run.executor_started("writer", 1))
        assert otel_context.get_current() is before


class TestOwnership:
    def test_a_successor_links_to_the_tenure_before_it(self, traces):
        instance = recorder_for(traces).instance("press", "default")
        whole_run(instance.run("r1"), FIRST)
        whole_run(instance.run("r2"), SECOND)
        first, second = traces.all_named("own press")
        assert linked_from(first) == []
        assert linked_from(second) == [id_of(first)]

    def test_a_superseded_tenure_is_exported_before_its_run_has_ended(self, traces):
        instance = recorder_for(traces).instance("press", "default")
        old, new = instance.run("r1"), instance.run("r2")
        old.claim(FIRST)
        old.release(FIRST, Outcome.SUPERSEDED)
        new.claim(SECOND, superseded=1)
        own = traces.named("own press")
        assert own.attributes["tenure.run.id"] == "r1"
        assert own.attributes["tenure.run.outcome"] == "superseded"
        new.release(SECOND, Outcome.COMPLETED)
        successor = traces.all_named("own press")[1]
        assert successor.attributes["tenure.superseded.epoch"] == 1
        assert linked_from(successor) == [id_of(own)]

    def test_a_finalizers_discard_is_a_root_linked_to_its_run_and_the_owner(
        self, traces, heard
    ):
        tracer = traces.provider.get_tracer("bystander")
        instance = recorder_for(traces).instance("press", "default")
        old, new = instance.run("r1"), instance.run("r2")
        old.claim(FIRST)
        old.release(FIRST, Outcome.SUPERSEDED)
        new.claim(SECOND, superseded=1)
        with tracer.start_as_current_span("whoever dropped the last reference"):
            old.discard(
                SECOND,
                {},
                cause=DiscardCause.FINALIZER,
                fenced=True,
                ledger=1,
                trigger=Trigger.GC,
                detached=True,
            )
        old.ended(Outcome.ABANDONED)
        new.release(SECOND, Outcome.COMPLETED)
        discard = traces.named("discard")
        old_run = traces.named("run press")
        new_own = traces.all_named("own press")[1]
        assert discard.parent is None
        assert linked_from(discard) == [id_of(old_run), id_of(new_own)]
        assert discard.attributes["tenure.discard.fenced"] is True
        assert discard.attributes["tenure.finalizer.trigger"] == "gc"
        assert discard.attributes["tenure.ledger.epoch"] == 1
        assert discard.attributes["tenure.owner.run_id"] == "r2"
        told = next(found for found in heard if isinstance(found, Discard))
        assert told.span.span_id == id_of(discard)
        assert told.stale

    def test_a_late_write_is_a_root_as_well(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        run.late(SECOND, LateKind.STAGE, writes={"draft": 1}, executor="writer")
        late = traces.named("late stage")
        assert late.parent is None
        assert late.attributes["tenure.executor.id"] == "writer"

    def test_a_runs_own_discard_is_inside_its_superstep(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        run.superstep_started(FIRST, 1)
        run.discard(FIRST, {"draft": 1}, cause=DiscardCause.FAILED, index=1)
        run.superstep_ended(FIRST, 1)
        assert parent_of(traces.named("discard")) == id_of(traces.named("superstep"))

    def test_a_commit_says_what_it_took_over_on_purpose(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(SECOND)
        run.commit(SECOND, {"a": 1}, cause=CommitCause.RUN_ENTRY, inherited=(1,))
        commit = traces.named("commit").attributes
        assert commit["tenure.inherited.epochs"] == (1,)
        assert commit["tenure.commit.cause"] == "run_entry"


class TestEnds:
    def test_cancellation_leaves_the_status_unset(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        span = run.executor_started("writer", 1)
        cancelled = KeyboardInterrupt()
        run.executor_ended(FIRST, span, "writer", 1, error=cancelled)
        run.ended(Outcome.CANCELLED, cancelled)
        for name in ("execute writer", "run press"):
            assert traces.named(name).status.status_code is StatusCode.UNSET
        assert traces.named("run press").attributes["tenure.run.outcome"] == (
            "cancelled"
        )

    def test_a_failure_names_the_class_and_never_what_it_said(self, traces):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        span = run.executor_started("writer", 1)
        error = ValueError("card 4711")
        run.executor_ended(FIRST, span, "writer", 1, error=error)
        run.ended(Outcome.FAILED, error)
        for name in ("execute writer", "run press"):
            found = traces.named(name)
            assert found.status.status_code is StatusCode.ERROR
            assert found.attributes["error.type"] == "ValueError"
            assert "4711" not in found.to_json()

    def test_an_error_that_cannot_be_printed_does_no_harm(self, traces, caplog):
        class UnprintableError(Exception):
            def __str__(self) -> str:
                raise RuntimeError

        run = recorder_for(traces).instance("press", "default").run("r1")
        run.claim(FIRST)
        run.ended(Outcome.FAILED, UnprintableError())
        assert (
            traces
            .named("run press")
            .attributes["error.type"]
            .endswith("UnprintableError")
        )
        assert caplog.records == []

    def test_a_run_ends_once(self, traces, caplog):
        run = recorder_for(traces).instance("press", "default").run("r1")
        run.ended(Outcome.CANCELLED)
        run.ended(Outcome.FAILED)
        assert traces.named("run press").attributes["tenure.run.outcome"] == (
            "cancelled"
        )
        assert caplog.records == []


class TestKeys:
    def test_masks_apply_to_reads_and_to_writes(self, traces, heard, monkeypatch):
        monkeypatch.setenv("TENURE_KEYS", "hashed")
        run = recorder_for(traces).instance("press", "default").run("r1")
        whole_run(run, FIRST)
        run.foreign_read(FIRST, "secret", 9)
        run.discard(FIRST, {"secret": 1}, cause=DiscardCause.FAILED)
        run.late(FIRST, LateKind.STAGE, writes={"secret": 1})
        everything = "".join(span.to_json() for span in traces.spans) + repr(heard)
        for key in ("draft", "title", "secret"):
            assert key not in everything
        execute = next(found for found in heard if isinstance(found, Execute))
        commit = next(found for found in heard if isinstance(found, Commit))
        assert execute.writes.keys == commit.writes.keys
        assert execute.reads != execute.writes.keys

    def test_a_masked_write_set_keeps_its_epochs_and_its_count(self, heard):
        recorder = Recorder("engine/1.2", keys=KeyDisplay.OFF)
        run = recorder.instance("press", "default").run("r1")
        run.claim(FIRST)
        run.commit(FIRST, {f"key-{number}": number + 1 for number in range(40)})
        writes = heard[-1].writes
        assert writes.count == 40
        assert len(set(writes.keys)) == WRITE_CAP
        assert 1 not in writes.epochs
