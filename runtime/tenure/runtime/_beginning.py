"""What a run begins with. Pure data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class FreshMessage:
    """A message for the start executor.

    Attributes:
        message: The message.
    """

    message: Any


@dataclass(frozen=True, slots=True)
class Responses:
    """Answers to requests of earlier runs.

    Attributes:
        values: Answers by request id.
    """

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Requests of earlier runs that nobody will answer.

    Attributes:
        ids: Ids of the requests.
    """

    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Resumption:
    """What a checkpoint left undone.

    Attributes:
        checkpoint_id: The checkpoint; the newest one if `None`.
        values: Answers to its requests, by id, if there are any.
    """

    checkpoint_id: str | None = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """A checkpoint of another instance, for a new one to begin with.

    Attributes:
        source: The other instance, by its name in the store.
        checkpoint_id: The checkpoint; the newest one if `None`.
    """

    source: str
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class Erasure:
    """Nothing: all that the instance holds is to go."""


Beginning = FreshMessage | Responses | Withdrawal | Resumption | Branch | Erasure
