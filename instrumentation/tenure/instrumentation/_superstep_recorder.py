"""What every superstep tells: the hot path of the recorder.

Four operations and five calls a superstep, whoever listens, so no method here has a
wrapper, builds attributes or makes a span unless the span is recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import time_ns
from typing import Any, Final

from opentelemetry import context as context_api
from opentelemetry import trace
from opentelemetry.trace import Span, SpanContext, Status, StatusCode

from tenure.instrumentation import _spans, semconv
from tenure.instrumentation._harmless import report_failure
from tenure.instrumentation._telling import RunTelling
from tenure.instrumentation.attributes import operation_attributes
from tenure.instrumentation.building import builder
from tenure.instrumentation.listeners import anyone_listens, tell
from tenure.instrumentation.operations import (
    Commit,
    CommitCause,
    Execute,
    Owner,
    SuperstepEnd,
    SuperstepStart,
)

_superstep_start: Final = builder(SuperstepStart)
_superstep_end: Final = builder(SuperstepEnd)
_execute: Final = builder(Execute)
_commit: Final = builder(Commit)
_NOTHING: Final[dict[str, Any]] = {}


class SuperstepRecorder(RunTelling):
    """What is told of the supersteps of one run."""

    def superstep_started(self, owner: Owner, index: int) -> None:
        """Tell that superstep `index` delivers its messages."""
        try:
            if self._measures is not None:
                self._measures.superstep_started()
            recording, run = self._recording, self.ref
            if run is None or not self._tells_supersteps:
                return
            if not recording and not anyone_listens():
                return
            operation = _superstep_start(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                index=index,
            )
            self._superstep_told = True
            if recording:
                self._open_superstep(operation)
            tell(operation)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()

    def superstep_ended(self, owner: Owner, index: int) -> None:
        """Tell that superstep `index` has been committed or discarded."""
        try:
            if self._measures is not None:
                self._measures.superstep_ended()
            run = self.ref
            if run is None or not self._superstep_told:
                return
            self._superstep_told = False
            operation = _superstep_end(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                index=index,
            )
            if self._superstep_span is not None:
                self._close_superstep(operation)
            tell(operation)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()

    def executor_started(
        self,
        executor: str,
        index: int | None,
        sources: Iterable[SpanContext | None] = (),
        attempt: int = 1,
    ) -> Span | None:
        """Start the span of an executor invocation.

        Args:
            executor: The executor.
            index: Number of the superstep, where the engine has one.
            sources: Spans that sent the messages which it gets.
            attempt: Number of the attempt, from 1.

        Returns:
            The span inside which the executor works: its own, or the run's where only
            listeners hear of executors; `None` where nobody does. Hand it to
            `executor_ended`, whatever it is.
        """
        try:
            if self.ref is None or not self._tells_executors:
                return None
            if not self._recording:
                return self._run_span if anyone_listens() else None
            attributes = {**self._common, semconv.EXECUTOR_ID: executor}
            if index is not None:
                attributes[semconv.SUPERSTEP_INDEX] = index
            if attempt > 1:
                attributes[semconv.EXECUTOR_ATTEMPT] = attempt
            span = _spans.start(
                self._recorder.tracer,
                f"execute {executor}",
                self._inside,
                attributes,
                _spans.links_to(sources),
            )
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()
            return self._run_span
        else:
            # The listeners hear of it all the same.
            return self._run_span if span is None else span

    def executor_ended(
        self,
        owner: Owner,
        span: Span | None,
        executor: str,
        index: int | None,
        *,
        reads: Sequence[str] = (),
        writes: Mapping[str, int] | None = None,
        reduced: Sequence[str] = (),
        isolated: bool = False,
        error: BaseException | None = None,
    ) -> None:
        """Tell an executor invocation, as a whole, at its end.

        Args:
            owner: Who owned the instance when it ended.
            span: What `executor_started` returned.
            executor: The executor.
            index: Number of the superstep, where the engine has one.
            reads: State keys that it read.
            writes: Each key that it staged and the staging epoch; `None` if unknown.
            reduced: Those of the staged keys whose writes a declared reducer joins.
            isolated: Whether it read no sibling's staged writes.
            error: What it raised, where it did.
        """
        try:
            run = self.ref
            if run is None or span is None:
                return
            operation = _execute(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                executor=executor,
                index=index,
                reads=self._key_list(reads) if reads else (),
                writes=None if writes is None else self._write_set(writes),
                error=None if error is None else type(error).__qualname__,
                reduced=self._key_list(reduced) if reduced else (),
                isolated=isolated,
            )
            if span is self._run_span:
                tell(operation)
            else:
                self._end_executor(operation, span, error)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()

    def commit(
        self,
        owner: Owner,
        writes: Mapping[str, int] | None,
        *,
        cause: CommitCause = CommitCause.SUPERSTEP,
        index: int | None = None,
        inherited: tuple[int, ...] = (),
    ) -> None:
        """Tell that staged writes became committed state.

        Args:
            owner: Who owned the instance at the commit.
            writes: Each key and the epoch that staged it; `None` if unknown.
            cause: Why.
            index: Number of the superstep, where it belongs to one.
            inherited: Released epochs whose writes the run took over on purpose.
        """
        try:
            if self._measures is not None:
                self._measures.committed()
            run = self.ref
            if run is None or not (self._recording or anyone_listens()):
                return
            operation = _commit(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                writes=None if writes is None else self._write_set(writes),
                cause=cause,
                index=index,
                inherited=inherited,
            )
            if self._recording:
                self._emit(operation)
            else:
                tell(operation)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()

    def make_current(self, span: Span | None) -> None:
        """Make `span` the parent of the spans that user code starts from here on.

        Call it only in a task that the engine made for this run: its context ends with
        it, so nothing has to be detached and nobody else sees the span.

        Args:
            span: What `executor_started` returned; the run's span if `None`.
        """
        if not self._recording:
            return
        inside = self._context
        if span is not None:
            inside = trace.set_span_in_context(span, inside)
        context_api.attach(inside)

    def _open_superstep(self, operation: SuperstepStart) -> None:
        span = _spans.open_for(
            operation,
            self._recorder.tracer,
            self._context,
            operation_attributes(operation, self._common),
        )
        self._superstep_span = span
        if span is not None:
            self._inside = trace.set_span_in_context(span, self._context)

    def _close_superstep(self, operation: SuperstepEnd | None) -> None:
        """End the superstep's span; without an `operation` because the run is over."""
        span, self._superstep_span = self._superstep_span, None
        self._inside = self._context
        if span is None:
            return
        if operation is None:
            _spans.end(span)
            return
        _spans.close_for(operation, span)
        _spans.end(span, operation.time)

    def _end_executor(
        self, operation: Execute, span: Span, error: BaseException | None
    ) -> None:
        if span.is_recording():
            _spans.carry(operation, span)
            # The span has the common attributes since its start.
            span.set_attributes(operation_attributes(operation, _NOTHING))
            # Cancellation is no error, and what an exception says may hold values.
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR))
        tell(operation)
        _spans.end(span)
