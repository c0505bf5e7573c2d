"""Opening, linking and closing the spans that carry operations.

Nothing here raises: a span processor may raise in `start_span` and in `end`, and the
operation must reach the listeners all the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanContext, Tracer

from tenure.instrumentation import semconv
from tenure.instrumentation._harmless import report_failure
from tenure.instrumentation.attributes import span_name
from tenure.instrumentation.listeners import anyone_listens
from tenure.instrumentation.operations import Operation, Release, SpanRef

ROOT: Final = Context()
"""The parent of a root span; passing none at all would mean the current context."""


def start(
    tracer: Tracer,
    name: str,
    parent: Context | None,
    attributes: Mapping[str, Any],
    links: Sequence[Link] = (),
    *,
    time: int | None = None,
) -> Span | None:
    """Start a span, never as the current one; `None` if a processor raised.

    Args:
        tracer: Where it comes from.
        name: Its name, of low cardinality.
        parent: Context of its parent; the current one if `None`.
        attributes: What samplers see as well.
        links: Causes that are not its parent.
        time: Its start in nanoseconds since 1970; now by default.
    """
    try:
        return tracer.start_span(
            name, context=parent, attributes=attributes, links=links, start_time=time
        )
    except Exception:  # noqa: BLE001 - processors may raise; runs must not notice
        report_failure()
        return None


def open_for(
    operation: Operation,
    tracer: Tracer,
    parent: Context,
    attributes: Mapping[str, Any],
    links: Sequence[Link] = (),
) -> Span | None:
    """Start the span that carries `operation`, which nobody has seen yet."""
    span = start(
        tracer, span_name(operation), parent, attributes, links, time=operation.time
    )
    if span is not None:
        carry(operation, span)
    return span


def carry(operation: Operation, span: Span) -> None:
    """Say which span carries `operation`, which nobody has seen yet."""
    if not anyone_listens():
        return
    context = span.get_span_context()
    if context.is_valid and span.is_recording():
        reference = SpanRef(context.trace_id, context.span_id)
        object.__setattr__(operation, "span", reference)


def close_for(operation: Operation, span: Span) -> None:
    """Prepare the end of a span that stands for two operations; `operation` ends it."""
    if not span.is_recording():
        return
    if operation.seq is not None:
        span.set_attribute(semconv.END_SEQ, operation.seq)
    if isinstance(operation, Release):
        span.set_attribute(semconv.RUN_OUTCOME, operation.outcome.value)
    carry(operation, span)


def end(span: Span | None, time: int | None = None) -> None:
    """End `span`, where there is one, at `time` or now."""
    if span is None:
        return
    try:
        span.end(time)
    except Exception:  # noqa: BLE001 - processors may raise; runs must not notice
        report_failure()


def link(span: Span | None) -> list[Link]:
    """Return a link to `span`, or none where there is nothing to link to."""
    return [] if span is None else links_to((span.get_span_context(),))


def links_to(sources: Iterable[SpanContext | None]) -> list[Link]:
    """Return links to `sources`, leaving out what is unknown."""
    return [
        Link(source) for source in sources if source is not None and source.is_valid
    ]


def is_new(span: Span, parent: Context | None) -> bool:
    """Say whether an SDK made `span`, be it recorded or not.

    Without an SDK the API hands out the parent's own span context, or an invalid one.
    """
    context = span.get_span_context()
    outer = trace.get_current_span(parent).get_span_context()
    return context.is_valid and context.span_id != outer.span_id
