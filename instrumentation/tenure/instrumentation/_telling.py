"""How a run is told: what the methods of its recorder have in common."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from tenure.instrumentation import _spans, semconv
from tenure.instrumentation._harmless import harmless
from tenure.instrumentation._metrics import RunMeasures
from tenure.instrumentation._settings import Detail
from tenure.instrumentation._sources import InstanceSource
from tenure.instrumentation.attributes import operation_attributes
from tenure.instrumentation.building import builder
from tenure.instrumentation.listeners import anyone_listens, tell
from tenure.instrumentation.operations import (
    NO_WRITES,
    WRITE_CAP,
    Operation,
    RunRef,
    WriteSet,
)
from tenure.instrumentation.process import process_id

_write_set: Final = builder(WriteSet)


class RunTelling:
    """A run, its spans, and who would hear of it.

    Args:
        instance: The recorder of its instance.
        run_id: Unique identity of the run.
        parent: Context of the `run` span; the current one if `None`.
    """

    def __init__(
        self, instance: InstanceSource, run_id: str, parent: Context | None
    ) -> None:
        recorder = instance.recorder
        self._instance: Final = instance
        self._recorder: Final = recorder
        self._run_id: Final = run_id
        self._process: Final = process_id()
        self._sequence: Final[itertools.count[int]] = instance.sequence()
        self._tells_supersteps: Final = recorder.tells_supersteps
        self._tells_executors: Final = recorder.tells_executors
        self._measures: Final = (
            RunMeasures(recorder.instruments, recorder.engine, instance.workflow)
            if recorder.instruments.collected()
            else None
        )
        # `None` until the claim: before it there is no epoch to speak for.
        self.ref: RunRef | None = None
        self._common: dict[str, Any] = {}
        self._run_span: Span = trace.INVALID_SPAN
        self._own_span: Span | None = None
        self._superstep_span: Span | None = None
        self._context: Context = _spans.ROOT
        # The context of the current superstep's span, else of the run's.
        self._inside: Context = _spans.ROOT
        # Whether anybody makes spans, and whether this run's are recorded.
        self._traced = True
        self._recording = False
        # Invariant: `_owns` only between the claim and the release, once each.
        self._owns = False
        self._over = False
        # Whether the current superstep's start was told, so that its end is.
        self._superstep_told = False
        self._start(parent)

    @harmless
    def _start(self, parent: Context | None) -> None:
        recorder, instance = self._recorder, self._instance
        span = _spans.start(
            recorder.tracer,
            f"run {instance.workflow}",
            parent,
            {
                semconv.ENGINE: recorder.engine,
                semconv.WORKFLOW_NAME: instance.workflow,
                semconv.INSTANCE_ID: instance.instance,
                semconv.RUN_ID: self._run_id,
            },
        )
        if span is not None:
            self._run_span = span
            self._recording = span.is_recording()
            self._traced = self._recording or _spans.is_new(span, parent)
        self._context = trace.set_span_in_context(self._run_span, parent)
        self._inside = self._context

    @property
    def telling(self) -> bool:
        """Whether anybody would hear of a superstep now; checked before it is told."""
        return self._recording or anyone_listens()

    @property
    def audible(self) -> bool:
        """Whether anybody may hear anything of the run, as far as is known by now.

        Spans count even if the run's own are not recorded: a finalizer's are sampled
        for themselves.
        """
        return self._traced or self._measures is not None or anyone_listens()

    @property
    def measuring(self) -> bool:
        """Whether a meter provider takes measurements."""
        return self._measures is not None

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

    def _at_home(self) -> bool:
        return self._process == process_id()

    def _speaks(self) -> RunRef | None:
        """Return who speaks: nobody before the claim, and nobody in a fork.

        What a fork inherits of a run is a copy: its finalizers must not tell the
        parent's run a second time, under numbers that the parent uses as well.
        """
        return self.ref if self._at_home() else None

    def _write_set(self, writes: Mapping[str, int] | None) -> WriteSet | None:
        if writes is None:
            return None
        if not writes:
            return NO_WRITES
        if len(writes) > WRITE_CAP:
            acting = 0 if self.ref is None else self.ref.epoch
            found = WriteSet.staged_by(writes, acting)
        else:
            found = _write_set(pairs=tuple(writes.items()))
        mask = self._recorder.mask
        if mask is None:
            return found
        return WriteSet(
            tuple((mask(key), epoch) for key, epoch in found.pairs), found.omitted
        )

    def _key_list(self, keys: Sequence[str]) -> tuple[str, ...]:
        listed, mask = tuple(keys[:WRITE_CAP]), self._recorder.mask
        return listed if mask is None else tuple(mask(key) for key in listed)

    def _emit(self, operation: Operation) -> None:
        """Tell `operation` to listeners, and as a span of its own if they are recorded.

        Its parent is the current superstep's span, else the run's.
        """
        if self._recording:
            span = _spans.open_for(
                operation,
                self._recorder.tracer,
                self._inside,
                operation_attributes(operation, self._common),
            )
            tell(operation)
            _spans.end(span)
        else:
            tell(operation)

    def _emit_detached(self, operation: Operation) -> None:
        """Tell `operation` as a root span with links to its own run and to the owner.

        Whatever is current around a finalizer belongs to whoever dropped the last
        reference. A root is sampled for itself, so it may be recorded where the run
        is not.
        """
        span = None
        if self._traced:
            span = _spans.open_for(
                operation,
                self._recorder.tracer,
                _spans.ROOT,
                operation_attributes(operation, self._common),
                [
                    *_spans.link(self._run_span),
                    *_spans.link(self._instance.owner_span),
                ],
            )
        tell(operation)
        _spans.end(span)
