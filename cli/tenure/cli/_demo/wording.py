"""An operation in the fewest words that a lane of a timeline has room for."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    CommitCause,
    Discard,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    Operation,
    Release,
    SuperstepEnd,
    SuperstepStart,
    WriteSet,
)

_INTERNAL: Final = "_"
"""Keys that begin so are an engine's own; they are counted, not listed."""


def describe(operation: Operation) -> str:
    """Say what `operation` did; who did it stands at the head of its lane."""
    return _WORDS[type(operation)](operation)


def _keys(operation: Operation, writes: WriteSet | None) -> str:
    """List the keys, and the epoch that staged them where it is another one."""
    if writes is None:
        return "writes that are not known"
    if not writes.count:
        return "nothing"
    acting = operation.run.epoch
    listed = [
        key if epoch == acting else f"{key} of epoch {epoch}"
        for key, epoch in writes.pairs
        if not key.startswith(_INTERNAL)
    ]
    if len(listed) < writes.count:
        listed.append(f"{writes.count - len(listed)} more")
    return ", ".join(listed)


def _claim(operation: Claim) -> str:
    if operation.superseded is None:
        return "claims"
    return f"claims, supersedes epoch {operation.superseded}"


def _execute(operation: Execute) -> str:
    if operation.error is not None:
        return f"{operation.executor} ends with {operation.error}"
    return f"{operation.executor} ends"


def _commit(operation: Commit) -> str:
    at = "" if operation.cause is CommitCause.SUPERSTEP else " at "
    cause = operation.cause.value.replace("_", " ") if at else ""
    return f"commits{at}{cause}: {_keys(operation, operation.writes)}"


def _discard(operation: Discard) -> str:
    cause = operation.cause.value.replace("_", " ")
    if operation.fenced:
        return f"discard ({cause}) refused"
    return f"discards ({cause}): {_keys(operation, operation.writes)}"


def _late(operation: Late) -> str:
    writes = operation.writes
    keys = "" if writes is None else f": {_keys(operation, writes)}"
    return f"late {operation.kind.value}{keys}"


_WORDS: Final[Mapping[type[Operation], Callable[[Any], str]]] = {
    Claim: _claim,
    Release: lambda operation: f"releases ({operation.outcome.value})",
    SuperstepStart: lambda operation: f"superstep {operation.index} begins",
    SuperstepEnd: lambda operation: f"superstep {operation.index} ends",
    Execute: _execute,
    Commit: _commit,
    Discard: _discard,
    CheckpointSave: lambda _: "saves a checkpoint",
    CheckpointRestore: lambda _: "restores a checkpoint",
    Late: _late,
    ForeignRead: lambda operation: f"reads {operation.key} of epoch {operation.writer}",
    ForeignDelivery: lambda operation: (
        f"gets the {operation.kind.value} of epoch {operation.origin}"
    ),
}
