"""Checkpoints as bytes, for stores that keep bytes: two parts, read apart.

A state is put together from the changes of a chain of checkpoints, so the changes are
one part. What is left for the next superstep is another, because nobody reads that of
an ancestor: a type that only old messages need may be gone by now.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from tenure.runtime._checkpoint import (
    Checkpoint,
    CheckpointKind,
    PendingRequest,
    Standing,
)
from tenure.runtime._codec import decode, lower, pack
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._requests import name_of
from tenure.runtime.errors import CheckpointError, StateTypeError
from tenure.runtime.stores._retention import FULL_EVERY

FORMAT: Final = 1
"""Version of what is written here."""


class Chain(NamedTuple):
    """How far the newest checkpoint of an instance is from a whole state.

    Attributes:
        head: The checkpoint.
        depth: How many checkpoints it is away.
        changed: How many bytes of changes that is.
        whole: How many bytes the whole state was.
    """

    head: str | None
    depth: int
    changed: int
    whole: int

    @property
    def worn(self) -> bool:
        """Whether the next checkpoint is to hold the whole state."""
        return self.depth >= FULL_EVERY or self.changed > self.whole


class Body(NamedTuple):
    """A checkpoint as bytes.

    Attributes:
        change: What changes in the state, or the whole of it.
        standing: What is left for the next superstep, and what the checkpoint is of.
        is_full: Whether `change` holds the whole state.
        chain: Where the instance is once it is kept.
    """

    change: bytes
    standing: bytes
    is_full: bool
    chain: Chain


def body_of(
    checkpoint: Checkpoint, state: Mapping[str, Any], chain: Chain | None
) -> Body:
    """Return a checkpoint as bytes.

    Args:
        checkpoint: The checkpoint.
        state: The whole state at it.
        chain: Where the instance is; `None` if that is not known.

    Raises:
        StateTypeError: It holds a value that cannot be kept, named by what it is for.
    """
    is_full = (
        chain is None
        or chain.head is None
        or chain.head != checkpoint.parent_id
        or chain.worn
    )
    if is_full or chain is None:
        whole = {"state": _state(state), "changed": list(checkpoint.writes)}
        change = pack({**whole, "deleted": checkpoint.deleted}, "state")
        chain = Chain(checkpoint.checkpoint_id, 0, 0, len(change))
    else:
        part = {"writes": _state(checkpoint.writes), "deleted": checkpoint.deleted}
        change = pack(part, "state")
        chain = Chain(
            checkpoint.checkpoint_id,
            chain.depth + 1,
            chain.changed + len(change),
            chain.whole,
        )
    return Body(change, _standing(checkpoint), is_full, chain)


def checkpoint_of(
    facts: Mapping[str, Any], standing: bytes, changes: Sequence[bytes]
) -> tuple[Checkpoint, dict[str, Any]]:
    """Return a checkpoint and the whole state at it.

    Args:
        facts: Its `checkpoint_id`, `parent_id`, `run_id`, `epoch`, `position`,
            `superstep` and `kind`.
        standing: As `body_of` made it.
        changes: Those of the checkpoint and its ancestors, the newest first, up to one
            that holds the whole state.

    Raises:
        CheckpointError: It cannot be read.
    """
    name = f"checkpoint {facts['checkpoint_id']!r}"
    try:
        return _assembled(facts, decode(standing), [decode(one) for one in changes])
    except CheckpointError as exc:
        raise CheckpointError(f"{name} cannot be read", str(exc)) from exc
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        reason = f"it is damaged: {type(exc).__name__}: {exc}"
        raise CheckpointError(f"{name} cannot be read", reason) from exc


def joined(changes: Sequence[bytes], position: int) -> bytes:
    """Return the whole state that changes lead to, for the newest of them to hold.

    Values stay the bytes that they are: nothing is built, so no type has to be known.

    Args:
        changes: As in `checkpoint_of`.
        position: That of the newest, for the error.

    Raises:
        CheckpointError: They cannot be read.
    """
    try:
        whole = _read_whole(changes[-1])
        for change in map(_read_part, reversed(changes[:-1])):
            whole.state.update(change.writes)
            for key in change.deleted:
                whole.state.pop(key, None)
            whole.changed, whole.deleted = list(change.writes), change.deleted
        return pack(whole, "state")
    except (msgspec.MsgspecError, StateTypeError) as exc:
        raise CheckpointError(
            f"the checkpoint at position {position} cannot be made whole", str(exc)
        ) from exc


class _Whole(msgspec.Struct):
    """A change that holds the whole state, its values as they are."""

    state: dict[str, msgspec.Raw]
    changed: list[str]
    deleted: list[str]


class _Part(msgspec.Struct):
    """A change that holds what changed only, its values as they are."""

    writes: dict[str, msgspec.Raw]
    deleted: list[str]


_read_whole: Final = msgspec.msgpack.Decoder(_Whole).decode
_read_part: Final = msgspec.msgpack.Decoder(_Part).decode


def _state(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: lower(value, f"state key {key!r}") for key, value in values.items()}


def _standing(checkpoint: Checkpoint) -> bytes:
    standing = checkpoint.standing
    parts: dict[str, Any] = {
        "format": FORMAT,
        "workflow": checkpoint.workflow,
        "instance": checkpoint.instance,
        "signature": checkpoint.signature,
    }
    if standing.messages:
        parts["messages"] = [
            [target, lower(message, f"message for {target!r}"), begun_by]
            for target, message, begun_by in standing.messages
        ]
    if standing.answers:
        parts["answers"] = [
            [target, request, lower(answer, f"answer for {target!r}")]
            for target, request, answer in standing.answers
        ]
    if standing.fan_ins:
        parts["fan_ins"] = [
            [edge, source, lower(message, f"message of {source!r}"), begun_by]
            for edge, source, message, begun_by in standing.fan_ins
        ]
    if standing.requests:
        parts["requests"] = [_request(one) for one in standing.requests]
    if standing.snapshots:
        parts["snapshots"] = {
            name: lower(snapshot, f"snapshot of executor {name!r}")
            for name, snapshot in standing.snapshots.items()
        }
    return pack(parts, "checkpoint")


def _request(one: PendingRequest) -> list[Any]:
    name = name_of(one.response_type)
    data = lower(one.data, f"request of {one.executor_id!r}")
    return [one.request_id, one.executor_id, data, name, one.begun_by]


def _assembled(
    facts: Mapping[str, Any], parts: dict[str, Any], changes: list[dict[str, Any]]
) -> tuple[Checkpoint, dict[str, Any]]:
    if parts["format"] > FORMAT:
        raise CheckpointError(
            f"it has format {parts['format']}", f"this code reads {FORMAT}"
        )
    state: dict[str, Any] = dict(changes[-1]["state"])
    for change in reversed(changes[:-1]):
        state.update(change["writes"])
        for key in change["deleted"]:
            state.pop(key, None)
    newest = changes[0]
    writes = newest.get("writes")
    if writes is None:
        writes = {key: state[key] for key in newest["changed"]}
    checkpoint = Checkpoint(
        checkpoint_id=facts["checkpoint_id"],
        parent_id=facts["parent_id"],
        workflow=parts["workflow"],
        instance=parts["instance"],
        signature=parts["signature"],
        run_id=RunId(facts["run_id"]),
        epoch=Epoch(facts["epoch"]),
        position=facts["position"],
        superstep=facts["superstep"],
        kind=cast("CheckpointKind", facts["kind"]),
        writes=writes,
        deleted=newest["deleted"],
        standing=Standing(
            [(target, one, by) for target, one, by in parts.get("messages", ())],
            [(target, one, answer) for target, one, answer in parts.get("answers", ())],
            [(edge, of, one, by) for edge, of, one, by in parts.get("fan_ins", ())],
            [PendingRequest(*one) for one in parts.get("requests", ())],
            parts.get("snapshots", {}),
        ),
    )
    return checkpoint, state
