"""Span attributes as operations: the way back from `instrumentation.attributes`.

Pure and tolerant: it never raises and never guesses. What cannot be read is named, and
leaves a gap in the positions besides, so that nothing can be called clean over it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar, cast

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
    Release,
    RunRef,
    SpanRef,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

_T = TypeVar("_T")
_E = TypeVar("_E", bound=StrEnum)
Attributes = Mapping[str, Any]


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


class _UnreadableError(Exception):
    """An attribute is missing or malformed; never leaves this module.

    Args:
        name: The attribute.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


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
    except _UnreadableError as unreadable:
        return Lifted(tuple(operations), (unreadable.name,))
    return Lifted(tuple(operations))


_MARKS: Final = (semconv.RUN_EPOCH, semconv.ENGINE, semconv.SEQ)
"""Any of these makes a span with the name of an operation one of tenure's."""


# Values.


def _typed(attributes: Attributes, name: str, kind: type[_T]) -> _T | None:
    value = attributes.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _UnreadableError(name)
    return value


def _int(attributes: Attributes, name: str) -> int | None:
    return _typed(attributes, name, int)


def _str(attributes: Attributes, name: str) -> str | None:
    return _typed(attributes, name, str)


def _flag(attributes: Attributes, name: str) -> bool:
    return _typed(attributes, name, bool) or False


def _need(value: _T | None, name: str) -> _T:
    if value is None:
        raise _UnreadableError(name)
    return value


def _list(attributes: Attributes, name: str, kind: type[_T]) -> tuple[_T, ...] | None:
    value = attributes.get(name)
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _UnreadableError(name)
    items = cast("Sequence[object]", value)
    found = tuple(
        item
        for item in items
        if isinstance(item, kind) and not (kind is int and isinstance(item, bool))
    )
    if len(found) != len(items):
        raise _UnreadableError(name)
    return found


def _choice(attributes: Attributes, name: str, choices: type[_E]) -> _E | None:
    value = _str(attributes, name)
    if value is None:
        return None
    try:
        return choices(value)
    except ValueError:
        raise _UnreadableError(name) from None


def _pairs(
    attributes: Attributes, keys: str, epochs: str
) -> tuple[tuple[str, int], ...] | None:
    named = _list(attributes, keys, str)
    numbered = _list(attributes, epochs, int)
    if named is None and numbered is None:
        return None
    if named is None or numbered is None or len(named) != len(numbered):
        raise _UnreadableError(epochs)
    return tuple(zip(named, numbered, strict=True))


def _writes(attributes: Attributes) -> WriteSet | None:
    pairs = _pairs(attributes, semconv.WRITE_KEYS, semconv.WRITE_EPOCHS)
    count = _int(attributes, semconv.WRITE_COUNT)
    omitted = _int(attributes, semconv.WRITE_OMITTED) or 0
    if pairs is None and count is None and omitted == 0:
        return None
    # Empty sequences are not told; then the count must say that nothing is listed.
    found = WriteSet(pairs or (), omitted)
    if omitted < 0:
        raise _UnreadableError(semconv.WRITE_OMITTED)
    if count != found.count and not (pairs and count is None):
        missing = semconv.WRITE_KEYS if pairs is None else semconv.WRITE_COUNT
        raise _UnreadableError(missing)
    return found


def _head(attributes: Attributes, span: SpanRef | None) -> dict[str, Any]:
    def text(name: str) -> str:
        return _need(_str(attributes, name), name)

    run = RunRef(
        engine=text(semconv.ENGINE),
        workflow=text(semconv.WORKFLOW_NAME),
        instance=text(semconv.INSTANCE_ID),
        run_id=text(semconv.RUN_ID),
        epoch=_need(_int(attributes, semconv.RUN_EPOCH), semconv.RUN_EPOCH),
        process=text(semconv.PROCESS_ID),
    )
    owner = _int(attributes, semconv.OWNER_EPOCH)
    owner_run = _str(attributes, semconv.OWNER_RUN_ID) or ""
    return {
        "run": run,
        "seq": _int(attributes, semconv.SEQ),
        "owner": None if owner is None else Owner(owner, owner_run),
        "span": span,
    }


# Spans.


def _own(span: _Span, found: list[Operation]) -> None:
    superseded = _int(span.attributes, semconv.SUPERSEDED_EPOCH)
    found.append(Claim(**span.at(span.start), superseded=superseded))
    if span.end is None:
        return
    head: dict[str, Any] = {**span.at(span.end), "seq": _end_seq(span)}
    outcome = _choice(span.attributes, semconv.RUN_OUTCOME, Outcome)
    found.append(
        Release(
            **head,
            outcome=_need(outcome, semconv.RUN_OUTCOME),
            trigger=_choice(span.attributes, semconv.FINALIZER_TRIGGER, Trigger),
        )
    )


def _superstep(span: _Span, found: list[Operation]) -> None:
    index = _need(
        _int(span.attributes, semconv.SUPERSTEP_INDEX), semconv.SUPERSTEP_INDEX
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
    seq = _int(span.attributes, semconv.END_SEQ)
    if seq is None and span.head["seq"] is not None:
        raise _UnreadableError(semconv.END_SEQ)
    return seq


def _execute(span: _Span, found: list[Operation]) -> None:
    if span.end is None:
        return
    executor = _need(_str(span.attributes, semconv.EXECUTOR_ID), semconv.EXECUTOR_ID)
    found.append(
        Execute(
            **span.at(span.end),
            executor=executor,
            index=_int(span.attributes, semconv.SUPERSTEP_INDEX),
            reads=_list(span.attributes, semconv.READ_KEYS, str) or (),
            writes=_writes(span.attributes),
            error=_str(span.attributes, semconv.ERROR_TYPE),
            reduced=_list(span.attributes, semconv.REDUCED_KEYS, str) or (),
            isolated=_flag(span.attributes, semconv.READ_ISOLATED),
        )
    )


def _commit(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    cause = _choice(attributes, semconv.COMMIT_CAUSE, CommitCause)
    found.append(
        Commit(
            **span.at(span.start),
            writes=_writes(attributes),
            cause=_need(cause, semconv.COMMIT_CAUSE),
            index=_int(attributes, semconv.SUPERSTEP_INDEX),
            inherited=_list(attributes, semconv.INHERITED_EPOCHS, int) or (),
        )
    )


def _discard(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    cause = _choice(attributes, semconv.DISCARD_CAUSE, DiscardCause)
    fenced = _typed(attributes, semconv.DISCARD_FENCED, bool)
    found.append(
        Discard(
            **span.at(span.start),
            writes=_writes(attributes),
            cause=_need(cause, semconv.DISCARD_CAUSE),
            fenced=_need(fenced, semconv.DISCARD_FENCED),
            ledger=_int(attributes, semconv.LEDGER_EPOCH),
            shared=_flag(attributes, semconv.LEDGER_SHARED),
            trigger=_choice(attributes, semconv.FINALIZER_TRIGGER, Trigger),
            index=_int(attributes, semconv.SUPERSTEP_INDEX),
            snapshots=_list(attributes, semconv.SNAPSHOT_KEYS, str) or (),
        )
    )


def _save(span: _Span, found: list[Operation]) -> None:
    taken = _list(span.attributes, semconv.CHECKPOINT_TAKEN, str)
    found.append(CheckpointSave(**_checkpoint(span), taken=taken))


def _restore(span: _Span, found: list[Operation]) -> None:
    found.append(CheckpointRestore(**_checkpoint(span)))


def _checkpoint(span: _Span) -> dict[str, Any]:
    attributes = span.attributes
    checkpoint = _str(attributes, semconv.CHECKPOINT_ID)
    parts = _pairs(attributes, semconv.CHECKPOINT_PARTS, semconv.CHECKPOINT_EPOCHS)
    return {
        **span.at(span.start),
        "checkpoint": _need(checkpoint, semconv.CHECKPOINT_ID),
        "parent": _str(attributes, semconv.CHECKPOINT_PARENT_ID),
        "parts": parts,
    }


def _late(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    try:
        kind = LateKind(span.target)
    except ValueError:
        raise _UnreadableError("name") from None
    found.append(
        Late(
            **span.at(span.start),
            kind=kind,
            writes=_writes(attributes),
            ledger=_int(attributes, semconv.LEDGER_EPOCH),
            shared=_flag(attributes, semconv.LEDGER_SHARED),
            executor=_str(attributes, semconv.EXECUTOR_ID),
        )
    )


def _foreign_read(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    keys = _list(attributes, semconv.READ_KEYS, str)
    if keys is None or len(keys) != 1:
        raise _UnreadableError(semconv.READ_KEYS)
    writer = _int(attributes, semconv.READ_WRITER_EPOCH)
    found.append(
        ForeignRead(
            **span.at(span.start),
            key=keys[0],
            writer=_need(writer, semconv.READ_WRITER_EPOCH),
            executor=_str(attributes, semconv.EXECUTOR_ID),
        )
    )


def _foreign_delivery(span: _Span, found: list[Operation]) -> None:
    attributes = span.attributes
    kind = _choice(attributes, semconv.DELIVERY_KIND, DeliveryKind)
    origin = _int(attributes, semconv.ORIGIN_EPOCH)
    found.append(
        ForeignDelivery(
            **span.at(span.start),
            kind=_need(kind, semconv.DELIVERY_KIND),
            origin=_need(origin, semconv.ORIGIN_EPOCH),
            message=_str(attributes, semconv.MESSAGE_ID),
            executor=_str(attributes, semconv.EXECUTOR_ID),
        )
    )


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
    "foreign read": _foreign_read,
    "foreign delivery": _foreign_delivery,
}
"""By whole name, or by first word where the rest of the name is a target."""
