"""The one mouth: engines and instrumentors tell a recorder, and it tells everybody.

A recorder hands each operation to the listeners of this process, whether or not an SDK
is present, and emits it as a span. Only this part of tenure touches OpenTelemetry's
API on behalf of an engine. It never attaches a context: parents are passed explicitly,
because a span that is current across a `yield` becomes the parent of the next run.

A recorder never raises into its caller, never blocks and never records values. It must
not be called from a finalizer: exporters hold locks that the interrupted code may own.
"""

import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Link, Span, SpanContext, Status, StatusCode

from tenure.instrumentation import semconv
from tenure.instrumentation._metrics import Instruments
from tenure.instrumentation._settings import (
    Detail,
    KeyDisplay,
    detail_from_environment,
    key_mask,
    keys_from_environment,
)
from tenure.instrumentation.attributes import (
    operation_attributes,
    run_attributes,
    span_name,
)
from tenure.instrumentation.listeners import anyone_listens, tell
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
    RunRef,
    SpanRef,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)
from tenure.instrumentation.process import process_id

_logger = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")

_EMPTY: Final = Context()
"""The parent of a root span; passing none at all would mean the current context."""


def _harmless(
    method: Callable[Concatenate[_S, _P], _R],
) -> Callable[Concatenate[_S, _P], _R | None]:
    """Log what `method` raises instead of raising it into a run."""

    @functools.wraps(method)
    def harmless(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return method(self, *args, **kwargs)
        except Exception:  # noqa: BLE001 - processors may raise; runs must not notice
            _logger.exception("Telemetry of a run could not be recorded")
            return None

    return harmless


def _link(span: Span | None) -> list[Link]:
    if span is None or not span.get_span_context().is_valid:
        return []
    return [Link(span.get_span_context())]


class Recorder:
    """What one engine tells.

    Safe to share between threads.

    Args:
        engine: Engine and version, such as `tenure/0.1.0`.
        scope: Instrumentation scope of its spans and metrics.
        detail: How much is told; `TENURE_DETAIL`, else everything, by default.
        keys: How state keys appear; `TENURE_KEYS`, else as they are, by default.
        tracer_provider: Where spans go; the global provider by default.
        meter_provider: Where metrics go; the global provider by default.

    Raises:
        TelemetryConfigError: An environment variable has a value that is not known.
    """

    def __init__(
        self,
        engine: str,
        *,
        scope: str = semconv.RUNTIME_SCOPE,
        detail: Detail | None = None,
        keys: KeyDisplay | None = None,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        version = engine.partition("/")[2]
        self.engine: Final = engine
        self.detail: Final = detail_from_environment() if detail is None else detail
        self.mask: Final = key_mask(keys_from_environment() if keys is None else keys)
        self.tracer: Final = trace.get_tracer(
            scope, version, tracer_provider, schema_url=semconv.SCHEMA_URL
        )
        self.instruments: Final = Instruments(scope, version, meter_provider)

    def instance(self, workflow: str, instance: str) -> "InstanceRecorder":
        """Return the recorder of one instance; keep it as long as the instance lives.

        Args:
            workflow: Name of the workflow.
            instance: Identity of the instance, unique among all that are alive.
        """
        return InstanceRecorder(self, workflow, instance)


class InstanceRecorder:
    """What is told of one instance: it numbers the operations.

    Args:
        recorder: The engine's recorder.
        workflow: Name of the workflow.
        instance: Identity of the instance.
    """

    def __init__(self, recorder: Recorder, workflow: str, instance: str) -> None:
        self.recorder: Final = recorder
        self.workflow: Final = workflow
        self.instance: Final = instance
        self.owner_span: Span | None = None
        self._sequence: Final = itertools.count(1)

    def next_seq(self) -> int:
        """Take the next position; one that is not emitted shows as lost telemetry."""
        return next(self._sequence)

    def run(self, run_id: str, *, parent: Context | None = None) -> "RunRecorder":
        """Start the `run` span.

        Call it synchronously in the call that creates the run: that is where the
        caller's context is the current one.

        Args:
            run_id: Unique identity of the run.
            parent: Context of the `run` span; the current one by default.
        """
        return RunRecorder(self, run_id, parent)


class RunRecorder:
    """What is told of one run.

    Methods may be called from any thread, except from a finalizer. Each takes `owner`:
    who owned the instance in the very step that is told, with no await between.

    Args:
        instance: The recorder of its instance.
        run_id: Unique identity of the run.
        parent: Context of the `run` span; the current one if `None`.
    """

    def __init__(
        self, instance: InstanceRecorder, run_id: str, parent: Context | None
    ) -> None:
        self._instance: Final = instance
        self._recorder: Final = instance.recorder
        self._run_id: Final = run_id
        self._started: Final = time.perf_counter()
        self._measured = self._recorder.instruments.collected()
        self._own_span: Span | None = None
        self._superstep_span: Span | None = None
        self._superstep_started = 0.0
        self._counted = False
        self._common: dict[str, Any] = {}
        self.ref: RunRef | None = None
        self._run_span: Span = trace.INVALID_SPAN
        self._context: Context = _EMPTY
        self._recording = False
        self._start(parent)

    @_harmless
    def _start(self, parent: Context | None) -> None:
        recorder, instance = self._recorder, self._instance
        self._run_span = recorder.tracer.start_span(
            f"run {instance.workflow}",
            context=parent,
            attributes={
                semconv.ENGINE: recorder.engine,
                semconv.WORKFLOW_NAME: instance.workflow,
                semconv.INSTANCE_ID: instance.instance,
                semconv.RUN_ID: self._run_id,
            },
        )
        self._recording = self._run_span.is_recording()
        self._context = trace.set_span_in_context(self._run_span, parent)

    @property
    def telling(self) -> bool:
        """Whether anybody would hear of a superstep now; checked before it is told."""
        return self._recording or anyone_listens()

    @property
    def measuring(self) -> bool:
        """Whether a meter provider takes measurements."""
        return self._measured

    @property
    def recording(self) -> bool:
        """Whether the spans of this run are recorded."""
        return self._recording

    @property
    def detail(self) -> Detail:
        """How much is told."""
        return self._recorder.detail

    @property
    def context(self) -> Context:
        """The context in which the `run` span is current."""
        return self._context

    # Ownership.

    @_harmless
    def claim(self, owner: Owner, *, superseded: int | None = None) -> None:
        """Tell that the run has become the owner.

        Args:
            owner: The run itself, with its new epoch.
            superseded: Epoch that it replaced by policy, where it did. Tell that run's
                `release` first.
        """
        instance = self._instance
        self.ref = RunRef(
            self._recorder.engine,
            instance.workflow,
            instance.instance,
            self._run_id,
            owner.epoch,
            process_id(),
        )
        self._common = run_attributes(self.ref)
        self._run_span.set_attribute(semconv.RUN_EPOCH, owner.epoch)
        if self._measured:
            self._counted = True
            self._recorder.instruments.run_active.add(1, self._labels())
        operation = Claim(**self._head(owner), superseded=superseded)
        self._own_span = self._open(
            operation, self._context, _link(instance.owner_span)
        )
        instance.owner_span = self._own_span
        tell(operation)

    @_harmless
    def release(self, owner: Owner, outcome: Outcome) -> None:
        """Tell that the run is no longer the owner; a second call is ignored.

        Args:
            owner: Who owned the instance until now.
            outcome: How its tenure ended.
        """
        span, self._own_span = self._own_span, None
        if span is None or self.ref is None:
            return
        operation = Release(**self._head(owner), outcome=outcome)
        self._close(span, operation, outcome)
        tell(operation)

    @_harmless
    def ended(self, outcome: Outcome, error: BaseException | None = None) -> None:
        """Tell that the run's own cleanup has finished; this ends the `run` span.

        Args:
            outcome: How the run ended.
            error: What it failed with, where it did.
        """
        span = self._run_span
        span.set_attribute(semconv.RUN_OUTCOME, outcome.value)
        if error is not None:
            span.set_attribute(semconv.ERROR_TYPE, type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        span.end()
        if not self._measured:
            return
        instruments, labels = self._recorder.instruments, self._labels()
        if self._counted:
            instruments.run_active.add(-1, labels)
        instruments.run_duration.record(
            time.perf_counter() - self._started,
            {**labels, semconv.RUN_OUTCOME: outcome.value},
        )

    # Supersteps and executors.

    @_harmless
    def superstep_started(self, owner: Owner, index: int) -> None:
        """Tell that superstep `index` delivers its messages."""
        if self._measured:
            self._superstep_started = time.perf_counter()
        if not self._tells(Detail.SUPERSTEPS):
            return
        operation = SuperstepStart(**self._head(owner), index=index)
        self._superstep_span = self._open(operation, self._context)
        tell(operation)

    @_harmless
    def superstep_ended(self, owner: Owner, index: int) -> None:
        """Tell that superstep `index` has been committed or discarded."""
        if self._measured:
            self._recorder.instruments.superstep_duration.record(
                time.perf_counter() - self._superstep_started, self._labels()
            )
        span, self._superstep_span = self._superstep_span, None
        if span is None:
            return
        operation = SuperstepEnd(**self._head(owner), index=index)
        self._close(span, operation, None)
        tell(operation)

    @_harmless
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
            The span, or `None` where executors are not told. Hand it to
            `executor_ended`.
        """
        if not self._tells(Detail.EXECUTORS):
            return None
        attributes = {**self._common, semconv.EXECUTOR_ID: executor}
        if index is not None:
            attributes[semconv.SUPERSTEP_INDEX] = index
        if attempt > 1:
            attributes[semconv.EXECUTOR_ATTEMPT] = attempt
        links = [Link(source) for source in sources if source is not None]
        return self._recorder.tracer.start_span(
            f"execute {executor}",
            context=self._inside(),
            attributes=attributes,
            links=links if self._recording else None,
        )

    @_harmless
    def executor_ended(
        self,
        owner: Owner,
        span: Span | None,
        executor: str,
        index: int | None,
        *,
        reads: Sequence[str] = (),
        writes: dict[str, int] | None = None,
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
            error: What it raised, where it did.
        """
        if span is None:
            return
        mask = self._recorder.mask
        if mask is not None:
            reads = [mask(key) for key in reads]
        operation = Execute(
            **self._head(owner),
            executor=executor,
            index=index,
            reads=tuple(reads[:WRITE_CAP]),
            writes=self._writes(writes),
            error=None if error is None else type(error).__qualname__,
        )
        self._carry(operation, span)
        if span.is_recording():
            span.set_attributes(operation_attributes(operation, self._common))
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR, str(error)))
        tell(operation)
        span.end()

    # Writes.

    @_harmless
    def commit(
        self,
        owner: Owner,
        writes: dict[str, int] | None,
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
        if self._measured:
            self._recorder.instruments.commits.add(1, self._labels())
        if not self._tells(Detail.OWNERSHIP):
            return
        self._emit(
            Commit(
                **self._head(owner),
                writes=self._writes(writes),
                cause=cause,
                index=index,
                inherited=inherited,
            )
        )

    @_harmless
    def discard(
        self,
        owner: Owner,
        writes: dict[str, int] | None,
        *,
        cause: DiscardCause,
        fenced: bool = False,
        ledger: int | None = None,
        trigger: Trigger | None = None,
        index: int | None = None,
        detached: bool = False,
    ) -> None:
        """Tell that staged writes were thrown away, or were to be.

        Args:
            owner: Who owned the instance at the discard.
            writes: Each key thrown away and the epoch that staged it; `None` if unknown.
            cause: Why.
            fenced: Whether it was refused, so that nothing was thrown away.
            ledger: Epoch whose ledger was acted on, where known.
            trigger: How the end came about, where a finalizer did it.
            index: Number of the superstep, where it belongs to one.
            detached: Whether a finalizer did it: its span is a root with links.
        """
        if self._measured:
            labels = {
                **self._labels(),
                semconv.DISCARD_CAUSE: cause.value,
                semconv.DISCARD_FENCED: fenced,
            }
            self._recorder.instruments.discards.add(1, labels)
        operation = Discard(
            **self._head(owner),
            writes=self._writes(writes),
            cause=cause,
            fenced=fenced,
            ledger=ledger,
            trigger=trigger,
            index=index,
        )
        self._emit(operation, detached=detached)

    @_harmless
    def late(
        self,
        owner: Owner,
        kind: LateKind,
        *,
        writes: dict[str, int] | None = None,
        ledger: int | None = None,
        executor: str | None = None,
    ) -> None:
        """Tell that the run, no longer the owner, still tried to write.

        Args:
            owner: Who owned the instance when it tried.
            kind: What it tried.
            writes: Each key that it tried to stage and its epoch.
            ledger: Epoch whose ledger took the write, where known.
            executor: The executor that did it, where known.
        """
        operation = Late(
            **self._head(owner),
            kind=kind,
            writes=self._writes(writes),
            ledger=ledger,
            executor=executor,
        )
        self._emit(operation, detached=True)

    # Checkpoints.

    @_harmless
    def checkpoint_saved(
        self,
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: dict[str, int] | None,
    ) -> None:
        """Tell that a durable copy was made; `parts` maps each part to its epoch."""
        if self._tells(Detail.OWNERSHIP):
            self._emit(
                CheckpointSave(
                    **self._head(owner),
                    checkpoint=checkpoint,
                    parent=parent,
                    parts=None if parts is None else tuple(parts.items()),
                )
            )

    @_harmless
    def checkpoint_restored(
        self,
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: dict[str, int] | None,
    ) -> None:
        """Tell that a durable copy was restored; `parts` as in `checkpoint_saved`."""
        if self._tells(Detail.OWNERSHIP):
            self._emit(
                CheckpointRestore(
                    **self._head(owner),
                    checkpoint=checkpoint,
                    parent=parent,
                    parts=None if parts is None else tuple(parts.items()),
                )
            )

    # What only engines without isolation produce.

    @_harmless
    def foreign_read(
        self, owner: Owner, key: str, writer: int, executor: str | None = None
    ) -> None:
        """Tell that the run read what epoch `writer` had staged and not committed."""
        mask = self._recorder.mask
        self._emit(
            ForeignRead(
                **self._head(owner),
                key=key if mask is None else mask(key),
                writer=writer,
                executor=executor,
            )
        )

    @_harmless
    def foreign_delivery(
        self,
        owner: Owner,
        kind: DeliveryKind,
        origin: int,
        *,
        message: str | None = None,
        executor: str | None = None,
    ) -> None:
        """Tell that something of epoch `origin` was delivered to the run."""
        self._emit(
            ForeignDelivery(
                **self._head(owner),
                kind=kind,
                origin=origin,
                message=message,
                executor=executor,
            )
        )

    # How it is told.

    def _tells(self, level: Detail) -> bool:
        return level <= self._recorder.detail and self.telling

    def _head(self, owner: Owner) -> dict[str, Any]:
        return {
            "run": self.ref,
            "seq": self._instance.next_seq(),
            "owner": owner,
            "time": time.time_ns(),
        }

    def _labels(self) -> dict[str, str]:
        return {
            semconv.ENGINE: self._recorder.engine,
            semconv.WORKFLOW_NAME: self._instance.workflow,
        }

    def _writes(self, writes: dict[str, int] | None) -> WriteSet | None:
        if writes is None:
            return None
        found = WriteSet.staged_by(writes, self.ref.epoch if self.ref else 0)
        mask = self._recorder.mask
        if mask is None:
            return found
        return WriteSet(
            tuple((mask(key), epoch) for key, epoch in found.pairs), found.omitted
        )

    def _inside(self) -> Context:
        """The context of the current superstep's span, else of the run's."""
        if self._superstep_span is None:
            return self._context
        return trace.set_span_in_context(self._superstep_span, self._context)

    def _open(
        self, operation: Operation, parent: Context, links: Sequence[Link] = ()
    ) -> Span:
        span = self._recorder.tracer.start_span(
            span_name(operation),
            context=parent,
            attributes=(
                operation_attributes(operation, self._common)
                if self._recording or parent is _EMPTY
                else None
            ),
            links=links,
            start_time=operation.time,
        )
        self._carry(operation, span)
        return span

    def _carry(self, operation: Operation, span: Span) -> None:
        """Say which span carries `operation`, which nobody has seen yet."""
        context = span.get_span_context()
        if span.is_recording() and context.is_valid:
            reference = SpanRef(context.trace_id, context.span_id)
            object.__setattr__(operation, "span", reference)

    def _close(self, span: Span, operation: Operation, outcome: Outcome | None) -> None:
        """End a span that stands for two operations, at the second."""
        if span.is_recording():
            if operation.seq is not None:
                span.set_attribute(semconv.END_SEQ, operation.seq)
            if outcome is not None:
                span.set_attribute(semconv.RUN_OUTCOME, outcome.value)
        self._carry(operation, span)
        span.end()

    def _emit(self, operation: Operation, *, detached: bool = False) -> None:
        """Tell `operation` to listeners and as a span of its own.

        A detached span is a root with links to its own run and to the owner: whatever
        is current around a finalizer belongs to whoever dropped the last reference.
        """
        if detached:
            links = [*_link(self._run_span), *_link(self._instance.owner_span)]
            span = self._open(operation, _EMPTY, links)
        else:
            span = self._open(operation, self._inside())
        tell(operation)
        span.end()
