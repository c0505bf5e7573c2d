"""Books about spans: a processor that knows which are open."""

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from tenure.instrumentation import Recorder


class Books(SpanProcessor):
    """Keeps books about spans: which are open, and which have ended.

    Attributes:
        started: How many spans were started.
        open: Names of the spans that have not ended, by their ids.
        ended: The spans that have.
    """

    def __init__(self) -> None:
        self.started = 0
        self.open: dict[int, str] = {}
        self.ended: list[ReadableSpan] = []
        self.provider = TracerProvider()
        self.provider.add_span_processor(self)

    def recorder(self) -> Recorder:
        return Recorder("tenure/test", tracer_provider=self.provider)

    def on_start(self, span: ReadableSpan, parent_context: object = None) -> None:
        assert span.context is not None
        self.started += 1
        self.open[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        del self.open[span.context.span_id]
        self.ended.append(span)

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def orphans(self) -> list[str]:
        """Return the spans whose parent has not been exported."""
        known = {span.context.span_id for span in self.ended if span.context}
        return [
            span.name
            for span in self.ended
            if span.parent is not None and span.parent.span_id not in known
        ]
