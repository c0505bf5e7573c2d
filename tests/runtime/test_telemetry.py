"""What a run tells OpenTelemetry, and the traps that it does not fall into."""

import asyncio
import gc
import logging
from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tenure.detectors import Detector, OwnershipSpanProcessor, Verdict
from tenure.instrumentation import Detail, Recorder
from tenure.runtime import (
    Executor,
    ExecutorInvoked,
    RunStream,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from tenure.runtime.testing import FailingExecutor, HeldExecutor, turns


class Telemetry:
    """A real SDK whose spans stay in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("test")
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])

    def recorder(self, detail: Detail = Detail.EXECUTORS) -> Recorder:
        return Recorder(
            "tenure/test",
            detail=detail,
            tracer_provider=self.provider,
            meter_provider=self.meters,
        )

    def spans(self, name: str) -> list[ReadableSpan]:
        return [one for one in self.exporter.get_finished_spans() if one.name == name]

    def of_run(self, name: str, epoch: int) -> ReadableSpan:
        [found] = [
            one
            for one in self.spans(name)
            if one.attributes and one.attributes.get("tenure.run.epoch") == epoch
        ]
        return found


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    found = Telemetry()
    yield found
    found.provider.shutdown()
    found.meters.shutdown()


@pytest.fixture
def held() -> HeldExecutor:
    return HeldExecutor()


@pytest.fixture
def workflow(telemetry: Telemetry, held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held, recorder=telemetry.recorder()).build()


async def read_until_staged(stream: RunStream, held: HeldExecutor) -> None:
    async for event in stream:
        if isinstance(event, ExecutorInvoked):
            break
    await held.staged["a"].wait()


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


async def test_after_a_dropped_stream_the_next_run_has_the_callers_parent(
    telemetry: Telemetry,
    workflow: Workflow,
    held: HeldExecutor,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with telemetry.tracer.start_as_current_span("request.1"):
        stream = workflow.stream("a")
        await read_until_staged(stream, held)
        del stream
    with telemetry.tracer.start_as_current_span("request.2"):
        held.released["b"].set()
        await workflow.run("b")
    await held.ended["a"].wait()
    await turns(5)

    [first] = telemetry.spans("request.1")
    [second] = telemetry.spans("request.2")
    assert parent_of(telemetry.of_run("run press", 1)) == id_of(first)
    assert parent_of(telemetry.of_run("run press", 2)) == id_of(second)
    assert "Failed to detach context" not in caplog.text


async def test_the_ambient_span_of_the_call_is_the_parent_not_that_of_the_first_read(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    held.released["a"].set()
    with telemetry.tracer.start_as_current_span("request.1"):
        stream = workflow.stream("a")
    with telemetry.tracer.start_as_current_span("request.2"):
        async for _ in stream:
            pass
    [first] = telemetry.spans("request.1")
    assert parent_of(telemetry.of_run("run press", 1)) == id_of(first)


async def test_reading_a_stream_leaves_the_readers_current_span_as_it_was(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    held.released["a"].set()
    with telemetry.tracer.start_as_current_span("request") as request:
        async for _ in workflow.stream("a"):
            assert trace.get_current_span() is request
        assert trace.get_current_span() is request


async def test_the_own_span_of_a_superseded_run_is_ended_and_exported(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    first = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    second = workflow.run("b", on_conflict="supersede")
    superseded = telemetry.of_run("own press", 1)
    assert superseded.attributes is not None
    assert superseded.attributes["tenure.run.outcome"] == "superseded"
    held.released["b"].set()
    await second
    await asyncio.gather(first, return_exceptions=True)
    successor = telemetry.of_run("own press", 2)
    assert [link.context.span_id for link in successor.links] == [id_of(superseded)]
    run = telemetry.of_run("run press", 1)
    assert run.attributes is not None
    assert run.attributes["tenure.run.outcome"] == "superseded"


async def test_a_finalizers_discard_is_a_root_that_links_to_its_run_and_the_owner(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    gc.collect()
    gc.disable()
    try:
        stream = workflow.stream("a")
        await read_until_staged(stream, held)
        knot: list[object] = [stream]
        knot.append(knot)
        del stream, knot
        with telemetry.tracer.start_as_current_span("request.2"):
            second = asyncio.create_task(workflow.run("b", on_conflict="supersede"))
            await held.staged["b"].wait()
            gc.collect()
            await held.ended["a"].wait()
            held.released["b"].set()
            await second
    finally:
        gc.enable()
    fenced = telemetry.of_run("discard", 1)
    assert fenced.parent is None
    assert [link.context.span_id for link in fenced.links] == [
        id_of(telemetry.of_run("run press", 1)),
        id_of(telemetry.of_run("own press", 2)),
    ]


async def test_a_cancelled_run_says_so_although_its_status_is_unset(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    task = asyncio.create_task(workflow.run("a"))
    await held.staged["a"].wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    run = telemetry.of_run("run press", 1)
    assert run.attributes is not None
    assert run.attributes["tenure.run.outcome"] == "cancelled"
    assert run.status.status_code is trace.StatusCode.UNSET


async def test_a_failed_run_has_the_error_status_and_names_the_error(
    telemetry: Telemetry,
) -> None:
    failing = FailingExecutor(fails_for=frozenset({"a"}))
    workflow = WorkflowBuilder("press", start=failing, recorder=telemetry.recorder())
    with pytest.raises(Exception, match="failed on request"):
        await workflow.build().run("a")
    run = telemetry.of_run("run press", 1)
    assert run.status.status_code is trace.StatusCode.ERROR
    assert run.attributes is not None
    assert run.attributes["error.type"] == "ExecutorError"


class Passing(Executor):
    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        tracer = self.telemetry.tracer
        with tracer.start_as_current_span(f"call of {self.id}"):
            ctx.set_state(self.id, message)
        await ctx.send_message(message)

    def __init__(self, name: str, telemetry: Telemetry) -> None:
        super().__init__(name)
        self.telemetry = telemetry


async def test_spans_form_the_tree_of_run_own_superstep_execute_and_commit(
    telemetry: Telemetry,
) -> None:
    @executor
    async def end(message: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(message)

    first, second = Passing("first", telemetry), Passing("second", telemetry)
    workflow = (
        WorkflowBuilder("tree", start=first, recorder=telemetry.recorder())
        .add_fan_out(first, [second, end])
        .add_edge(second, end)
        .build()
    )
    await workflow.run("x")

    [run] = telemetry.spans("run tree")
    [own] = telemetry.spans("own tree")
    supersteps = telemetry.spans("superstep")
    commits = telemetry.spans("commit")
    assert parent_of(own) == id_of(run)
    assert [parent_of(one) for one in supersteps] == [id_of(run)] * 3
    assert [parent_of(one) for one in commits] == [id_of(one) for one in supersteps]
    [executed] = telemetry.spans("execute first")
    assert parent_of(executed) == id_of(supersteps[0])
    assert parent_of(telemetry.spans("call of first")[0]) == id_of(executed)
    assert parent_of(telemetry.spans("call of second")[0]) == id_of(
        telemetry.spans("execute second")[0]
    )
    links = telemetry.spans("execute second")[0].links
    assert [link.context.span_id for link in links] == [id_of(executed)]


async def test_user_spans_of_a_plain_function_in_a_thread_are_children_of_its_span(
    telemetry: Telemetry,
) -> None:
    @executor
    def threaded(message: str, ctx: WorkflowContext[None, str]) -> None:
        with telemetry.tracer.start_as_current_span("call"):
            ctx.set_state("x", message)

    workflow = WorkflowBuilder("t", start=threaded, recorder=telemetry.recorder())
    await workflow.build().run("x")
    assert parent_of(telemetry.spans("call")[0]) == id_of(
        telemetry.spans("execute threaded")[0]
    )


@pytest.mark.parametrize("detail", list(Detail))
async def test_sequence_numbers_have_no_gap_at_any_level_of_detail(
    detail: Detail, telemetry: Telemetry
) -> None:
    held = HeldExecutor()
    held.released["a"].set()
    recorder = telemetry.recorder(detail)
    workflow = WorkflowBuilder("press", start=held, recorder=recorder).build()
    await workflow.run("a")
    await workflow.run("a")
    numbers: list[int] = []
    for span in telemetry.exporter.get_finished_spans():
        for name in ("tenure.seq", "tenure.end.seq"):
            if span.attributes and name in span.attributes:
                number = span.attributes[name]
                assert isinstance(number, int)
                numbers.append(number)
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def test_a_detector_over_spans_and_one_that_listens_agree(
    telemetry: Telemetry,
) -> None:
    over_spans, listening = Detector(), Detector()
    telemetry.provider.add_span_processor(OwnershipSpanProcessor(over_spans))
    held = HeldExecutor(cleanup_turns=3)
    recorder = telemetry.recorder()
    workflow = WorkflowBuilder("press", start=held, recorder=recorder).build()
    with listening.listen():
        stream = workflow.stream("a")
        await read_until_staged(stream, held)
        del stream
        held.released["b"].set()
        await workflow.run("b")
        await held.ended["a"].wait()
        await turns(5)
    told = [(one.anomaly, one.severity) for one in listening.findings]
    assert [(one.anomaly, one.severity) for one in over_spans.findings] == told
    assert {slug for slug, _ in told} == {"stale-discard", "late-write"}
    assert over_spans.verdict is listening.verdict is Verdict.CLEAN


class Explosive(SpanProcessor):
    def on_start(self, span: object, parent_context: object = None) -> None:
        raise RuntimeError("a processor that raises")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("a processor that raises")


async def test_a_span_processor_that_raises_never_reaches_the_run(
    telemetry: Telemetry, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry.provider.add_span_processor(Explosive())
    held = HeldExecutor()
    held.released["a"].set()
    recorder = telemetry.recorder()
    workflow = WorkflowBuilder("press", start=held, recorder=recorder).build()
    with caplog.at_level(logging.CRITICAL):
        result = await workflow.run("a")
    assert result.outputs == ("a",)
    assert dict(workflow.state) == {"a_key": "a"}


async def test_metrics_count_runs_commits_and_discards_by_cause(
    telemetry: Telemetry, workflow: Workflow, held: HeldExecutor
) -> None:
    stream = workflow.stream("a")
    await read_until_staged(stream, held)
    del stream
    held.released["b"].set()
    await workflow.run("b")
    await held.ended["a"].wait()
    await turns(5)
    data = telemetry.reader.get_metrics_data()
    assert data is not None
    points = {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    assert sum(point.value for point in points["tenure.run.active"]) == 0
    assert sum(point.value for point in points["tenure.commits"]) == 1
    discards = {
        (
            point.attributes["tenure.discard.cause"],
            point.attributes["tenure.discard.fenced"],
        ): point.value
        for point in points["tenure.discards"]
    }
    assert discards == {("sweep", False): 1, ("abandoned", True): 1}
    outcomes = {
        point.attributes["tenure.run.outcome"]
        for point in points["tenure.run.duration"]
    }
    assert outcomes == {"abandoned", "completed"}


async def test_values_never_appear_in_telemetry(telemetry: Telemetry) -> None:
    secret = "a value that must stay where it is"

    @executor
    async def keep(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("key", message)
        await ctx.yield_output(message)
        raise RuntimeError(message)

    workflow = WorkflowBuilder("w", start=keep, recorder=telemetry.recorder()).build()
    with pytest.raises(Exception, match=secret):
        await workflow.run(secret)
    for span in telemetry.exporter.get_finished_spans():
        assert secret not in span.to_json()
