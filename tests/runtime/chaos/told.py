"""Operations that a victim has written down, one on a line."""

import json
from dataclasses import fields
from typing import Any

from tenure.instrumentation import operations as vocabulary
from tenure.instrumentation.operations import (
    CommitCause,
    DeliveryKind,
    DiscardCause,
    LateKind,
    Operation,
    Outcome,
    Owner,
    RunRef,
    Trigger,
    WriteSet,
)

_ENUMS: dict[tuple[str, str], Any] = {
    ("Release", "outcome"): Outcome,
    ("Release", "trigger"): Trigger,
    ("Commit", "cause"): CommitCause,
    ("Discard", "cause"): DiscardCause,
    ("Discard", "trigger"): Trigger,
    ("Late", "kind"): LateKind,
    ("ForeignDelivery", "kind"): DeliveryKind,
}


def read_operation(line: str) -> Operation:
    """Return an operation that a victim has written down."""
    found = json.loads(line)
    kind = getattr(vocabulary, found.pop("type"))
    for name, value in found.items():
        if value is None:
            continue
        if (kind.__name__, name) in _ENUMS:
            found[name] = _ENUMS[kind.__name__, name](value)
        elif name == "run":
            found[name] = RunRef(**value)
        elif name == "owner":
            found[name] = Owner(**value)
        elif name == "writes":
            pairs = tuple((key, epoch) for key, epoch in value["pairs"])
            found[name] = WriteSet(pairs, value["omitted"])
        elif isinstance(value, list):
            found[name] = tuple(
                tuple(one) if isinstance(one, list) else one for one in value
            )
    assert {one.name for one in fields(kind)} == set(found)
    operation: Operation = kind(**found)
    return operation
