"""Operations from spans, inside the process that makes them.

The only module here that imports the OpenTelemetry SDK.
"""

import logging
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from tenure.detectors._lift import lift
from tenure.detectors.detector import Detector
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import SpanRef

_logger = logging.getLogger(__name__)


class OwnershipSpanProcessor(SpanProcessor):
    """Feeds a detector with the operations that spans carry.

    A span that stands for two operations tells the first when it starts, so that a
    claim is known before its `own` span ends. Never raises and never blocks; spans of
    the detectors themselves are ignored. Spans that were sampled out never arrive,
    which shows as a gap: the verdict is then `inconclusive`, unless the detector
    listens as well.

    Args:
        detector: What is fed; it may be fed on other ways as well.
    """

    def __init__(self, detector: Detector) -> None:
        self._detector: Final = detector

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Feed the first operation of a span that stands for two."""
        name = span.name
        if name.startswith("own ") or name == "superstep":
            self._feed(span, ended=False)

    def on_end(self, span: ReadableSpan) -> None:
        """Feed the operations of a span that has ended."""
        self._feed(span, ended=True)

    def shutdown(self) -> None:
        """Do nothing: the detector keeps what it found."""

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return true: nothing is ever held back."""
        return True

    def _feed(self, span: ReadableSpan, *, ended: bool) -> None:
        try:
            self._read(span, ended=ended)
        except Exception:
            # What a processor raises reaches user code.
            _logger.exception("A span could not be read by the race detector")

    def _read(self, span: ReadableSpan, *, ended: bool) -> None:
        scope = span.instrumentation_scope
        if scope is not None and scope.name == semconv.DETECTORS_SCOPE:
            return
        context = span.context
        start = span.start_time or 0
        lifted = lift(
            span.name,
            span.attributes,
            start=start,
            end=(span.end_time or start) if ended else None,
            span=SpanRef(context.trace_id, context.span_id) if context else None,
        )
        if lifted.unreadable:
            self._detector.doubt(f"spans without a readable {lifted.unreadable[0]}")
        for operation in lifted.operations:
            self._detector.feed(operation)
