"""Operations as span attributes: the way out. The way back is `tenure.detectors`.

This module imports the standard library only.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tenure.instrumentation import semconv
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    Operation,
    Receive,
    Release,
    RunRef,
    Send,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

Attributes = dict[str, Any]
"""Span attributes: scalars and homogeneous sequences only."""


def run_attributes(run: RunRef) -> Attributes:
    """Return the attributes that every operation of `run` carries."""
    return {
        semconv.ENGINE: run.engine,
        semconv.WORKFLOW_NAME: run.workflow,
        semconv.INSTANCE_ID: run.instance,
        semconv.RUN_ID: run.run_id,
        semconv.RUN_EPOCH: run.epoch,
        semconv.PROCESS_ID: run.process,
    }


def operation_attributes(
    operation: Operation, common: Mapping[str, Any] | None = None
) -> Attributes:
    """Return the span attributes of `operation`; what is unknown is left out.

    Args:
        operation: What happened.
        common: The result of `run_attributes` for its run, where it is at hand.
    """
    found = dict(run_attributes(operation.run) if common is None else common)
    if operation.seq is not None:
        found[semconv.SEQ] = operation.seq
    if operation.owner is not None:
        found[semconv.OWNER_EPOCH] = operation.owner.epoch
        if operation.owner.run_id:
            found[semconv.OWNER_RUN_ID] = operation.owner.run_id
    _SPECIFIC[type(operation)](operation, found)
    return found


def span_name(operation: Operation) -> str:
    """Return the low-cardinality name of the span that carries `operation`."""
    match operation:
        case Claim() | Release():
            return f"own {operation.run.workflow}"
        case SuperstepStart() | SuperstepEnd():
            return "superstep"
        case Execute():
            return f"execute {operation.executor}"
        case Late():
            return f"late {operation.kind.value}"
        case _:
            return operation.name


def _put(found: Attributes, name: str, value: object) -> None:
    if value is not None:
        found[name] = value


def _put_writes(found: Attributes, writes: WriteSet | None) -> None:
    if writes is None:
        return
    found[semconv.WRITE_COUNT] = writes.count
    found[semconv.WRITE_OMITTED] = writes.omitted
    if writes.pairs:
        found[semconv.WRITE_KEYS] = writes.keys
        found[semconv.WRITE_EPOCHS] = writes.epochs


def _put_trigger(found: Attributes, trigger: Trigger | None) -> None:
    if trigger is not None:
        found[semconv.FINALIZER_TRIGGER] = trigger.value


def _claim(operation: Claim, found: Attributes) -> None:
    _put(found, semconv.SUPERSEDED_EPOCH, operation.superseded)


def _release(operation: Release, found: Attributes) -> None:
    found[semconv.RUN_OUTCOME] = operation.outcome.value
    _put_trigger(found, operation.trigger)


def _superstep(operation: SuperstepStart | SuperstepEnd, found: Attributes) -> None:
    found[semconv.SUPERSTEP_INDEX] = operation.index


def _execute(operation: Execute, found: Attributes) -> None:
    found[semconv.EXECUTOR_ID] = operation.executor
    _put(found, semconv.SUPERSTEP_INDEX, operation.index)
    if operation.reads:
        found[semconv.READ_KEYS] = operation.reads
    _put_writes(found, operation.writes)
    _put(found, semconv.ERROR_TYPE, operation.error)
    if operation.reduced:
        found[semconv.REDUCED_KEYS] = operation.reduced
    if operation.isolated:
        found[semconv.READ_ISOLATED] = True


def _commit(operation: Commit, found: Attributes) -> None:
    _put_writes(found, operation.writes)
    found[semconv.COMMIT_CAUSE] = operation.cause.value
    _put(found, semconv.SUPERSTEP_INDEX, operation.index)
    if operation.inherited:
        found[semconv.INHERITED_EPOCHS] = operation.inherited


def _discard(operation: Discard, found: Attributes) -> None:
    _put_writes(found, operation.writes)
    found[semconv.DISCARD_CAUSE] = operation.cause.value
    found[semconv.DISCARD_FENCED] = operation.fenced
    _put(found, semconv.LEDGER_EPOCH, operation.ledger)
    if operation.shared:
        found[semconv.LEDGER_SHARED] = True
    _put(found, semconv.SUPERSTEP_INDEX, operation.index)
    _put_trigger(found, operation.trigger)
    if operation.snapshots:
        found[semconv.SNAPSHOT_KEYS] = operation.snapshots


def _checkpoint(
    operation: CheckpointSave | CheckpointRestore, found: Attributes
) -> None:
    found[semconv.CHECKPOINT_ID] = operation.checkpoint
    _put(found, semconv.CHECKPOINT_PARENT_ID, operation.parent)
    if operation.parts is not None:
        found[semconv.CHECKPOINT_PARTS] = tuple(part for part, _ in operation.parts)
        found[semconv.CHECKPOINT_EPOCHS] = tuple(epoch for _, epoch in operation.parts)


def _save(operation: CheckpointSave, found: Attributes) -> None:
    _checkpoint(operation, found)
    _put(found, semconv.CHECKPOINT_PREVIOUS_ID, operation.previous)
    _put(found, semconv.CHECKPOINT_TAKEN, operation.taken)


def _late(operation: Late, found: Attributes) -> None:
    _put_writes(found, operation.writes)
    _put(found, semconv.LEDGER_EPOCH, operation.ledger)
    if operation.shared:
        found[semconv.LEDGER_SHARED] = True
    _put(found, semconv.EXECUTOR_ID, operation.executor)


def _foreign_read(operation: ForeignRead, found: Attributes) -> None:
    found[semconv.READ_KEYS] = (operation.key,)
    found[semconv.READ_WRITER_EPOCH] = operation.writer
    _put(found, semconv.EXECUTOR_ID, operation.executor)


def _foreign_delivery(operation: ForeignDelivery, found: Attributes) -> None:
    found[semconv.DELIVERY_KIND] = operation.kind.value
    found[semconv.ORIGIN_EPOCH] = operation.origin
    _put(found, semconv.MESSAGE_ID, operation.message)
    _put(found, semconv.EXECUTOR_ID, operation.executor)


def _send(operation: Send, found: Attributes) -> None:
    _message(operation, found)
    _put(found, semconv.MESSAGE_TARGET, operation.target)


def _message(operation: Send | Receive, found: Attributes) -> None:
    found[semconv.MESSAGE_ID] = operation.message
    _put(found, semconv.EXECUTOR_ID, operation.executor)
    _put(found, semconv.SUPERSTEP_INDEX, operation.index)


_SPECIFIC: Final[dict[type[Operation], Callable[[Any, Attributes], None]]] = {
    Claim: _claim,
    Release: _release,
    SuperstepStart: _superstep,
    SuperstepEnd: _superstep,
    Execute: _execute,
    Commit: _commit,
    Discard: _discard,
    CheckpointSave: _save,
    CheckpointRestore: _checkpoint,
    Late: _late,
    Send: _send,
    Receive: _message,
    ForeignRead: _foreign_read,
    ForeignDelivery: _foreign_delivery,
}
