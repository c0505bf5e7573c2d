"""Span attributes as operations: the way back from `instrumentation.attributes`.

Pure and tolerant: it never raises and never guesses. What cannot be read is named, and
leaves a gap in the positions besides, so that nothing can be called clean over it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tenure.detectors._attributes import (
    Attributes,
    UnreadableError,
    array,
    choice,
    flag,
    integer,
    need,
    pairs,
    text,
    typed,
    write_set,
)
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import (
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
    Receive,
    Release,
    RunRef,
    Send,
    SpanRef,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
)


@dataclass(frozen=True, slots=True)
class Lifted:
    """What a span says.

    Attributes:
        operations: The operations that it carries, in their order.
        unreadable: Names of the attributes for want of which one could not be read.
    """

    operations: tuple[Operation, ...] = ()
    unreadable: tuple[str, ...] = ()


NOTHING: Final = Lifted()
"""What a span says that carries no operation."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A span as it came, with the facts that every operation has."""

    attributes: Attributes
    head: Mapping[str, Any]
    start: int
    end: int | None
    target: str

    def at(self, time: int) -> dict[str, Any]:
        return {**self.head, "time": time}


def lift(
    name: str,
    attributes: Attributes | None,
    *,
    start: int = 0,
    end: int | None = None,
    span: SpanRef | None = None,
) -> Lifted:
    """Read the operations that a span carries.

    Args:
        name: Name of the span.
        attributes: Its attributes; sequences may be lists or tuples.
        start: When it started, in nanoseconds since 1970.
        end: When it ended; `None` for one that has not, which then tells its first
            operation only.
        span: Which span it is.

    Returns:
        The operations, and what could not be read. Neither, for a span that is not one
        of tenure's.
    """
    kind, _, target = name.partition(" ")
    reader = _READERS.get(name) or _READERS.get(kind)
    if reader is None or not attributes or not any(n in attributes for n in _MARKS):
        return NOTHING
    operations: list[Operation] = []
    try:
        found = _Span(attributes, _head(attributes, span), start, end, target)
        reader(found, operations)
    except UnreadableError as unreadable:
        return Lifted(tuple(operations), (unreadable.name,))
    return Lifted(tuple(operations))


_MARKS: Final = (semconv.RUN_EPOCH, semconv.ENGINE, semconv.SEQ)
"""Any of these makes a span with the name of an operation one of tenure's."""


def _head(attributes: Attributes, span: SpanRef | None) -> dict[str, Any]:
    def told(name: str) -> str:
        return need(text(attributes, name), name)

    run = RunRef(
        engine=told(semconv.ENGINE),
        workflow=told(semconv.WORKFLOW_NAME),
        instance=told(semconv.INSTANCE_ID),
        run_id=told(semconv.RUN_ID),
        epoch=need(integer(attributes, semconv.RUN_EPOCH), semconv.RUN_EPOCH),
        process=told(semconv.PROCESS_ID),
    )
    owner = integer(attributes, semconv.OWNER_EPOCH)
    owner_run = text(attributes, semconv.OWNER_RUN_ID) or ""
    return {
        "run": run,
        "seq": integer(attributes, semconv.SEQ),
        "owner": None if owner is None else Owner(owner, owner_run),
        "span": span,
    }


# Spans.


def _own(span: _Span, found: list[Operation]) -> None:
    superseded = integer(span.attributes, semconv.SUPERSEDED_EPOCH)
    found.append(Claim(**span.at(span.start), superseded=superseded))
    if span.end is None:
        return
    head: dict[str, Any] = {**span.at(span.end), "seq": _end_seq(span)}
    outcome = choice(span.attributes, semconv.RUN_OUTCOME, Outcome)
    found.append(
        Release(
            **head,
            outcome=need(outcome, semconv.RUN_OUTCOME),
            trigger=choice(span.attributes, semconv.FINALIZER_TRIGGER, Trigger),
        )
    )


def _superstep(span: _Span, found: list[Operation]) -> None:
    index = need(
        integer(span.attributes, semconv.SUPERSTEP_INDEX), semconv.SUPERSTEP_INDEX
    )
    found.append(SuperstepStart(**span.at(span.start), index=index))
    if span.end is None:
        return
    # Who owned the instance at the end is not on the span.
    head: dict[str, Any] = span.at(span.end)
    head |= {"seq": _end_seq(span), "owner": None}
    found.append(SuperstepEnd(**head, index=index))


def _end_seq(span: _Span) -> int | None:
    """Position of the second operation; unnumbered only if the first one is."""
    seq = integer(span.attributes, semconv.END_SEQ)
    if seq is None and span.head["seq"] is not None:
        raise UnreadableError(semconv.END_SEQ)
    return seq


def _execute(span: _Span, found: list[Operation]) -> None:
    if span.end is None:
        return
    executor = need(text(span.attributes, semconv.EXECUTOR_ID), semconv.EXECUTOR_ID)
    found.append(
        Execute(
            **span.at(span.end),
            executor=executor,
            index=integer(span.attributes, semconv.SUPERSTEP_INDEX),
            reads=array(span.attributes, semconv.READ_KEYS, str) or (),
            writes=write_set(span.attributes),
            error=text(span.attributes, semconv.ERROR_TYPE),
            reduced=array(span.attributes, semconv.REDUCED_KEYS, str) or (),
            isolated=flag(span.attributes, semconv.READ_ISOLATED),
        )
    )


def _commit(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    cause = choice(attributes, semconv.COMMIT_CAUSE, CommitCause)
    found.append(
        Commit(
            **span.at(span.start),
            writes=write_set(attributes),
            cause=need(cause, semconv.COMMIT_CAUSE),
            index=integer(attributes, semconv.SUPERSTEP_INDEX),
            inherited=array(attributes, semconv.INHERITED_EPOCHS, int) or (),
        )
    )


def _discard(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    cause = choice(attributes, semconv.DISCARD_CAUSE, DiscardCause)
    fenced = typed(attributes, semconv.DISCARD_FENCED, bool)
    found.append(
        Discard(
            **span.at(span.start),
            writes=write_set(attributes),
            cause=need(cause, semconv.DISCARD_CAUSE),
            fenced=need(fenced, semconv.DISCARD_FENCED),
            ledger=integer(attributes, semconv.LEDGER_EPOCH),
            shared=flag(attributes, semconv.LEDGER_SHARED),
            trigger=choice(attributes, semconv.FINALIZER_TRIGGER, Trigger),
            index=integer(attributes, semconv.SUPERSTEP_INDEX),
            snapshots=array(attributes, semconv.SNAPSHOT_KEYS, str) or (),
        )
    )


def _save(span: _Span, found: list[Operation]) -> None:
    previous = text(span.attributes, semconv.CHECKPOINT_PREVIOUS_ID)
    taken = array(span.attributes, semconv.CHECKPOINT_TAKEN, str)
    found.append(CheckpointSave(**_checkpoint(span), previous=previous, taken=taken))


def _restore(span: _Span, found: list[Operation]) -> None:
    found.append(CheckpointRestore(**_checkpoint(span)))


def _checkpoint(span: _Span) -> dict[str, Any]:
    attributes = span.attributes
    checkpoint = text(attributes, semconv.CHECKPOINT_ID)
    parts = pairs(attributes, semconv.CHECKPOINT_PARTS, semconv.CHECKPOINT_EPOCHS)
    return {
        **span.at(span.start),
        "checkpoint": need(checkpoint, semconv.CHECKPOINT_ID),
        "parent": text(attributes, semconv.CHECKPOINT_PARENT_ID),
        "parts": parts,
    }


def _late(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    try:
        kind = LateKind(span.target)
    except ValueError:
        raise UnreadableError("name") from None
    found.append(
        Late(
            **span.at(span.start),
            kind=kind,
            writes=write_set(attributes),
            ledger=integer(attributes, semconv.LEDGER_EPOCH),
            shared=flag(attributes, semconv.LEDGER_SHARED),
            executor=text(attributes, semconv.EXECUTOR_ID),
        )
    )


def _foreign_read(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    keys = array(attributes, semconv.READ_KEYS, str)
    if keys is None or len(keys) != 1:
        raise UnreadableError(semconv.READ_KEYS)
    writer = integer(attributes, semconv.READ_WRITER_EPOCH)
    found.append(
        ForeignRead(
            **span.at(span.start),
            key=keys[0],
            writer=need(writer, semconv.READ_WRITER_EPOCH),
            executor=text(attributes, semconv.EXECUTOR_ID),
        )
    )


def _foreign_delivery(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    kind = choice(attributes, semconv.DELIVERY_KIND, DeliveryKind)
    origin = integer(attributes, semconv.ORIGIN_EPOCH)
    found.append(
        ForeignDelivery(
            **span.at(span.start),
            kind=need(kind, semconv.DELIVERY_KIND),
            origin=need(origin, semconv.ORIGIN_EPOCH),
            message=text(attributes, semconv.MESSAGE_ID),
            executor=text(attributes, semconv.EXECUTOR_ID),
        )
    )


def _send(span: _Span, found: list[Operation]) -> None:
    target = text(span.attributes, semconv.MESSAGE_TARGET)
    found.append(Send(**_message(span), target=target))


def _receive(span: _Span, found: list[Operation]) -> None:
    found.append(Receive(**_message(span)))


def _message(span: _Span) -> dict[str, Any]:
    message = text(span.attributes, semconv.MESSAGE_ID)
    return {
        **span.at(span.start),
        "message": need(message, semconv.MESSAGE_ID),
        "executor": text(span.attributes, semconv.EXECUTOR_ID),
        "index": integer(span.attributes, semconv.SUPERSTEP_INDEX),
    }


_Reader = Callable[[_Span, list[Operation]], None]

_READERS: Final[Mapping[str, _Reader]] = {
    "own": _own,
    "superstep": _superstep,
    "execute": _execute,
    "commit": _commit,
    "discard": _discard,
    "checkpoint save": _save,
    "checkpoint restore": _restore,
    "late": _late,
    "send": _send,
    "receive": _receive,
    "foreign read": _foreign_read,
    "foreign delivery": _foreign_delivery,
}
"""By whole name, or by first word where the rest of the name is a target."""
