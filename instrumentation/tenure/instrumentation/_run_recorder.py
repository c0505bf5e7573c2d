"""What is told of one run: who owned, and which writes did not become state."""

from collections.abc import Mapping, Sequence
from time import time_ns
from typing import Final

from opentelemetry.trace import Status, StatusCode

from tenure.instrumentation import _spans, semconv
from tenure.instrumentation._exchange_recorder import ExchangeRecorder
from tenure.instrumentation._harmless import harmless
from tenure.instrumentation._superstep_recorder import SuperstepRecorder
from tenure.instrumentation.attributes import operation_attributes, run_attributes
from tenure.instrumentation.building import builder
from tenure.instrumentation.listeners import anyone_listens, tell
from tenure.instrumentation.operations import (
    Claim,
    Discard,
    DiscardCause,
    Late,
    LateKind,
    Outcome,
    Owner,
    Release,
    RunRef,
    Trigger,
)

_run_ref: Final = builder(RunRef)
_claim: Final = builder(Claim)
_release: Final = builder(Release)


class RunRecorder(SuperstepRecorder, ExchangeRecorder):
    """What is told of one run.

    Methods may be called from any thread, except from a finalizer. Each takes `owner`:
    who owned the instance in the very step that is told, with no await between. None of
    them raises. Between `claim` and `ended` an operation that concerns ownership takes
    its number even if nobody hears it, so that a trace of the others shows a gap.

    Args:
        instance: The recorder of its instance.
        run_id: Unique identity of the run.
        parent: Context of the `run` span; the current one if `None`.
    """

    # Ownership.

    @harmless
    def claim(self, owner: Owner, *, superseded: int | None = None) -> None:
        """Tell that the run has become the owner.

        Args:
            owner: The run itself, with its new epoch.
            superseded: Epoch that it replaced by policy, where it did. Tell that run's
                `release` first.
        """
        if not self._at_home():
            return
        instance = self._instance
        self.ref = run = _run_ref(
            engine=self._recorder.engine,
            workflow=instance.workflow,
            instance=instance.instance,
            run_id=self._run_id,
            epoch=owner.epoch,
            process=self._process,
        )
        self._owns = True
        if self._measures is not None:
            self._measures.claimed()
        if not (self._traced or anyone_listens()):
            next(self._sequence)  # counted all the same, so that later ones show a gap
            return
        self._common = run_attributes(run)
        operation = _claim(
            run=run,
            seq=next(self._sequence),
            owner=owner,
            time=time_ns(),
            superseded=superseded,
        )
        if self._traced:
            self._open_own(operation)
        tell(operation)

    def _open_own(self, operation: Claim) -> None:
        """Start the `own` span, linked to the `own` span of the previous owner."""
        self._run_span.set_attribute(semconv.RUN_EPOCH, operation.run.epoch)
        span = _spans.open_for(
            operation,
            self._recorder.tracer,
            self._context,
            operation_attributes(operation, self._common),
            _spans.link(self._instance.owner_span),
        )
        self._own_span = self._instance.owner_span = span
        # A record-only sampler goes by the epoch, which the `run` span did not have.
        if span is not None and span.is_recording():
            self._recording = True

    @harmless
    def release(
        self, owner: Owner, outcome: Outcome, *, trigger: Trigger | None = None
    ) -> None:
        """Tell that the run is no longer the owner; a second call is ignored.

        Args:
            owner: Who owned the instance until now.
            outcome: How its tenure ended.
            trigger: How the end came about, where a finalizer did it.
        """
        run = self._speaks()
        if run is None or not self._owns:
            return
        self._owns = False
        if self._own_span is None and not anyone_listens():
            next(self._sequence)
            return
        operation = _release(
            run=run,
            seq=next(self._sequence),
            owner=owner,
            time=time_ns(),
            outcome=outcome,
            trigger=trigger,
        )
        span, self._own_span = self._own_span, None
        if span is not None:
            _spans.close_for(operation, span)
        tell(operation)
        _spans.end(span, operation.time)

    @harmless
    def ended(self, outcome: Outcome, error: BaseException | None = None) -> None:
        """Tell that the run's own cleanup has finished; this ends the `run` span.

        A second call is ignored.

        Args:
            outcome: How the run ended.
            error: What it failed with, where it did.
        """
        if self._over or not self._at_home():
            return
        self._over = True
        # A span that never ends is never exported.
        self._close_superstep(None)
        span = self._run_span
        if span.is_recording():
            span.set_attribute(semconv.RUN_OUTCOME, outcome.value)
            if error is not None:
                span.set_attribute(semconv.ERROR_TYPE, type(error).__qualname__)
            # Cancellation is no error, and what an exception says may hold values.
            if isinstance(error, Exception):
                span.set_status(Status(StatusCode.ERROR))
        _spans.end(span)
        if self._measures is not None:
            self._measures.ended(outcome)

    # Writes that did not become state.

    @harmless
    def discard(
        self,
        owner: Owner,
        writes: Mapping[str, int] | None,
        *,
        cause: DiscardCause,
        fenced: bool = False,
        ledger: int | None = None,
        shared: bool = False,
        trigger: Trigger | None = None,
        index: int | None = None,
        snapshots: Sequence[str] = (),
        detached: bool = False,
    ) -> None:
        """Tell that staged writes were thrown away, or were to be.

        Args:
            owner: Who owned the instance at the discard.
            writes: Each key thrown away and its staging epoch; `None` if unknown.
            cause: Why.
            fenced: Whether it was refused, so that nothing was thrown away.
            ledger: Epoch whose ledger was acted on, where known.
            shared: Whether all runs share the map that was acted on.
            trigger: How the end came about, where a finalizer did it.
            index: Number of the superstep, where it belongs to one.
            snapshots: Those of the keys that hold snapshots for a checkpoint.
            detached: Whether a finalizer did it: its span is a root with links.
        """
        run = self._speaks()
        if run is None:
            return
        operation = Discard(
            run=run,
            seq=next(self._sequence),
            owner=owner,
            time=time_ns(),
            writes=self._write_set(writes),
            cause=cause,
            fenced=fenced,
            ledger=ledger,
            shared=shared,
            trigger=trigger,
            index=index,
            snapshots=self._key_list(snapshots) if snapshots else (),
        )
        if detached:
            self._emit_detached(operation)
        else:
            self._emit(operation)
        if self._measures is not None:
            self._measures.discarded(cause, fenced=fenced)

    @harmless
    def late(
        self,
        owner: Owner,
        kind: LateKind,
        *,
        writes: Mapping[str, int] | None = None,
        ledger: int | None = None,
        shared: bool = False,
        executor: str | None = None,
    ) -> None:
        """Tell that the run, no longer the owner, still tried to write.

        Args:
            owner: Who owned the instance when it tried.
            kind: What it tried.
            writes: Each key that it tried to stage and its epoch.
            ledger: Epoch whose ledger took the write, where known.
            shared: Whether all runs share the map that took the write.
            executor: The executor that did it, where known.
        """
        run = self._speaks()
        if run is None:
            return
        operation = Late(
            run=run,
            seq=next(self._sequence),
            owner=owner,
            time=time_ns(),
            kind=kind,
            writes=self._write_set(writes),
            ledger=ledger,
            shared=shared,
            executor=executor,
        )
        self._emit_detached(operation)
