"""An operation, or a finding, in the fewest words that say it."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tenure.detectors.anomalies import CATALOGUE
from tenure.detectors.findings import Finding
from tenure.detectors.report._visible import visible
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
    Receive,
    Release,
    Send,
    SuperstepEnd,
    SuperstepStart,
    WriteSet,
)

_INTERNAL: Final = "_"
"""Keys that begin so are an engine's own; they are counted, not listed."""

_LISTED: Final = 4
_LONGEST: Final = 60


def describe(operation: Operation) -> str:
    """Say what `operation` did; its epoch is for others to say."""
    say = _WORDS.get(type(operation))
    return visible(operation.name if say is None else say(operation))


def title(finding: Finding) -> str:
    """Return the name of its anomaly, as it stands in sentences."""
    anomaly = CATALOGUE.get(finding.anomaly)
    return finding.anomaly if anomaly is None else anomaly.title


def accusation(finding: Finding) -> str:
    """Say what `finding` is about in the few words that fit beside an arrow."""
    keys = listed(visible(key, _LONGEST) for key in finding.keys)
    name = title(finding)
    return f"{name}: {keys}" if keys else name


def clauses(finding: Finding) -> tuple[str, ...]:
    """Split the proof into its clauses: let, then, however."""
    found: list[str] = []
    rest = visible(finding.proof, 4_000)
    for word in ("then", "however"):
        clause, separator, after = rest.partition(f"; {word}")
        if separator:
            found.append(f"{clause};")
            rest = f"{word}{after}"
    return (*found, rest)


def listed(items: Iterable[str], more: int = 0) -> str:
    """List the first few items and count the rest, with `more` that are not there."""
    known = list(items)
    more += max(len(known) - _LISTED, 0)
    return ", ".join(known[:_LISTED] + ([f"{more} more"] if more else []))


def _keys(operation: Operation, writes: WriteSet | None) -> str:
    """List the keys, and the epoch that staged them where it is another one."""
    if writes is None:
        return "writes that are not known"
    if not writes.count:
        return "nothing"
    acting = operation.run.epoch
    pairs = sorted(writes.pairs, key=lambda pair: pair[1] == acting)
    shown = [
        f"{visible(key, _LONGEST)}{'' if epoch == acting else f' of epoch {epoch}'}"
        for key, epoch in pairs
        if not key.startswith(_INTERNAL) or epoch != acting
    ]
    if not shown:
        return f"{writes.count} key{'' if writes.count == 1 else 's'}"
    return listed(shown, writes.count - len(shown))


def _claim(operation: Claim) -> str:
    if operation.superseded is None:
        return "claims"
    return f"claims, supersedes epoch {operation.superseded}"


def _execute(operation: Execute) -> str:
    executor = visible(operation.executor, _LONGEST)
    if operation.error is not None:
        return f"{executor} ends with {operation.error}"
    if operation.writes is not None and operation.writes.count:
        return f"{executor} ends, staged {_keys(operation, operation.writes)}"
    return f"{executor} ends"


def _commit(operation: Commit) -> str:
    ordinary = operation.cause is CommitCause.SUPERSTEP
    at = "" if ordinary else f" at {operation.cause.value.replace('_', ' ')}"
    return f"commits{at}: {_keys(operation, operation.writes)}"


def _discard(operation: Discard) -> str:
    cause = operation.cause.value.replace("_", " ")
    if operation.fenced:
        return f"discard ({cause}) refused"
    return f"discards ({cause}): {_keys(operation, operation.writes)}"


def _late(operation: Late) -> str:
    writes = operation.writes
    keys = "" if writes is None else f": {_keys(operation, writes)}"
    return f"late {operation.kind.value}{keys}"


def _delivery(operation: ForeignDelivery) -> str:
    kind = operation.kind.value.replace("_", "-")
    return f"gets the {kind} of epoch {operation.origin}"


def _send(operation: Send) -> str:
    target = "" if operation.target is None else f" to {visible(operation.target)}"
    return f"sends message {visible(operation.message)}{target}"


def _receive(operation: Receive) -> str:
    executor = "an executor" if operation.executor is None else operation.executor
    return f"{visible(executor)} gets message {visible(operation.message)}"


_WORDS: Final[Mapping[type[Operation], Callable[[Any], str]]] = MappingProxyType({
    Claim: _claim,
    Release: lambda operation: f"releases ({operation.outcome.value})",
    SuperstepStart: lambda operation: f"superstep {operation.index} begins",
    SuperstepEnd: lambda operation: f"superstep {operation.index} ends",
    Execute: _execute,
    Commit: _commit,
    Discard: _discard,
    CheckpointSave: lambda operation: f"saves checkpoint {operation.checkpoint}",
    CheckpointRestore: lambda operation: f"restores checkpoint {operation.checkpoint}",
    Late: _late,
    Send: _send,
    Receive: _receive,
    ForeignRead: lambda operation: f"reads {operation.key} of epoch {operation.writer}",
    ForeignDelivery: _delivery,
})
