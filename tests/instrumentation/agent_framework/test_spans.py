"""The spans: one trace with the caller, links to the engine's, none left open."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan

from tenure.instrumentation import semconv
from tenure.instrumentation.agent_framework import _engine

from . import stories
from .stories import STORIES, settled
from .test_operations import needs_discards

Instrumenting = Callable[..., AbstractContextManager[None]]


def attribute(span: ReadableSpan, name: str) -> object:
    assert span.attributes is not None
    return span.attributes.get(name)


@pytest.mark.parametrize("name", STORIES)
async def test_every_run_span_ends_with_an_outcome(
    name: str, instrumenting: Instrumenting, traces
) -> None:
    with instrumenting(tracer_provider=traces.provider):
        await settled(STORIES[name].play())
    runs = [span for span in traces.spans if span.name.startswith("run ")]
    owns = [span for span in traces.spans if span.name.startswith("own ")]
    assert len(runs) == len(owns) >= 1
    for span in [*runs, *owns]:
        assert attribute(span, semconv.RUN_OUTCOME)
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.name == _engine.SCOPE


async def test_a_run_is_a_child_of_what_its_caller_was_doing(
    instrumenting: Instrumenting, traces
) -> None:
    tracer = traces.provider.get_tracer("test")
    with (
        instrumenting(tracer_provider=traces.provider),
        tracer.start_as_current_span("request") as request,
    ):
        await settled(stories.chain())
        assert trace.get_current_span() is request
    runs = traces.all_named("run WorkflowBuilder")
    assert len(runs) == 2
    for run in runs:
        assert run.parent is not None
        assert run.parent.span_id == request.get_span_context().span_id


@needs_discards
async def test_a_stale_discard_is_a_root_with_links_to_its_run_and_to_the_owner(
    instrumenting: Instrumenting, traces
) -> None:
    with instrumenting(tracer_provider=traces.provider):
        await settled(stories.lost_write())
    discard = traces.named("discard")
    runs = {
        attribute(span, semconv.RUN_EPOCH): span
        for span in traces.all_named("run WorkflowBuilder")
    }
    owns = {
        attribute(span, semconv.RUN_EPOCH): span
        for span in traces.all_named("own WorkflowBuilder")
    }
    assert discard.parent is None
    assert [link.context.span_id for link in discard.links] == [
        runs[1].context.span_id,
        owns[2].context.span_id,
    ]
    assert attribute(runs[1], semconv.RUN_OUTCOME) == "abandoned"
    assert attribute(discard, semconv.WRITE_KEYS) == ("b_key",)
    assert attribute(discard, semconv.FINALIZER_TRIGGER) == "refcount"


async def test_a_failed_run_carries_its_error(
    instrumenting: Instrumenting, traces
) -> None:
    with instrumenting(tracer_provider=traces.provider):
        await settled(stories.failed_superstep("raises"))
    failed = traces.all_named("run WorkflowBuilder")[0]
    assert attribute(failed, semconv.ERROR_TYPE) == "LookupError"
    assert failed.status.status_code is trace.StatusCode.ERROR


def test_its_spans_join_the_engines_own_trace() -> None:
    """In a process of its own, because the engine uses the global provider."""
    script = """
        import asyncio
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
            InMemorySpanExporter,
        )
        from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler
        from agent_framework.observability import enable_instrumentation
        from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

        class Sends(Executor):
            @handler
            async def send(self, text: str, context: WorkflowContext[str, str]) -> None:
                if self.id == "x":
                    await context.send_message(text)
                else:
                    await context.yield_output(text)

        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        enable_instrumentation()
        AgentFrameworkInstrumentor().instrument()
        x, y = Sends(id="x"), Sends(id="y")
        workflow = WorkflowBuilder(start_executor=x, name="w").add_edge(x, y).build()
        with trace.get_tracer("test").start_as_current_span("request"):
            asyncio.run(workflow.run("a"))
        spans = exporter.get_finished_spans()
        ours = [s for s in spans if s.instrumentation_scope.name.startswith("tenure")]
        theirs = [s for s in spans if s not in ours]
        named = {span.name: span for span in spans}
        (engine,) = [s for s in theirs if s.name.startswith("workflow.run")]
        run = named["run w"]
        assert run.context.trace_id == engine.context.trace_id
        assert run.parent == engine.parent == named["request"].context
        assert [link.context.span_id for link in run.links] == [engine.context.span_id]
        sent = {s.context.span_id for s in theirs if "message.send" in s.name}
        linked = {link.context.span_id for link in named["execute y"].links}
        assert linked and linked <= sent, (linked, sent)
        own = {s.context.span_id for s in ours}
        assert all(s is run or s.parent.span_id in own for s in ours)
        assert not any(s.parent and s.parent.span_id in own for s in theirs)
    """
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
