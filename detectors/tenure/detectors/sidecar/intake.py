"""Which messages are let in: pure decisions, the same for every way they come.

What a decision is called over gRPC and over HTTP is up to the receivers.
"""

import threading
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, final


class Signal(StrEnum):
    """What a message of OTLP carries."""

    TRACES = "traces"
    METRICS = "metrics"
    LOGS = "logs"


class Format(StrEnum):
    """How a message is written."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class Admission(StrEnum):
    """What became of a message."""

    ACCEPTED = "accepted"
    """It will be judged, and sent on where that is asked for."""

    PARTIAL = "partial"
    """It was accepted, but for spans that cannot be read."""

    TOO_LARGE = "too_large"
    """It is larger than a message may be; sending it again is no use."""

    UNREADABLE = "unreadable"
    """It is not what it says it is; sending it again is no use."""

    UNSUPPORTED = "unsupported"
    """It is written or packed in a way that nobody here reads."""

    FULL = "full"
    """There is no room now; the sender should try again."""

    STOPPING = "stopping"
    """The sidecar is ending; the sender should try again elsewhere or later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sender of a message is told.

    Attributes:
        admission: What became of the message.
        reason: Why, as a sentence; empty for one that was accepted whole.
        rejected: How many of its spans were not accepted.
    """

    admission: Admission
    reason: str = ""
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Message:
    """One message of OTLP, as it came.

    Attributes:
        signal: What it carries.
        format: How it is written.
        packed: Its bytes.
        gzipped: Whether these are packed.
        transport: `grpc` or `http`.
    """

    signal: Signal
    format: Format
    packed: bytes
    gzipped: bool
    transport: str


LET_IN: Final = frozenset({Admission.ACCEPTED, Admission.PARTIAL})
"""What the sender need not send again."""

ACCEPTED: Final = Answer(Admission.ACCEPTED)
"""The answer to most messages."""

STOPPING: Final = Answer(Admission.STOPPING, "The sidecar is stopping.")
"""The answer to every message that comes too late."""


def too_large(limit: int) -> Answer:
    """Return the answer to a message of more than `limit` bytes."""
    return Answer(
        Admission.TOO_LARGE, f"The message has more than {limit} bytes, unpacked."
    )


def full(limit: int) -> Answer:
    """Return the answer to a message for which `limit` bytes leave no room."""
    return Answer(
        Admission.FULL, f"Messages that wait to be judged take all of {limit} bytes."
    )


def accepted_but(rejected: int, reasons: tuple[str, ...]) -> Answer:
    """Return the answer to a message some of whose spans cannot be read.

    Args:
        rejected: How many spans.
        reasons: What is wrong with them.
    """
    if not rejected:
        return ACCEPTED
    spans = "1 span" if rejected == 1 else f"{rejected} spans"
    return Answer(
        Admission.PARTIAL, f"{spans} cannot be read: {'; '.join(reasons)}.", rejected
    )


@final
class Room:
    """The bytes of memory that messages may take, and how many they take.

    Safe to use from any thread.

    Args:
        limit: How many bytes there are.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self._lock: Final = threading.Lock()
        # Invariant: 0 <= taken <= limit; changed under the lock only.
        self._taken = 0

    @property
    def taken(self) -> int:
        """How many bytes are taken."""
        return self._taken

    def take(self, size: int) -> bool:
        """Take `size` bytes, if there are as many; say whether there were."""
        with self._lock:
            if self._taken + size > self.limit:
                return False
            self._taken += size
            return True

    def give_back(self, size: int) -> None:
        """Give back `size` bytes that were taken."""
        with self._lock:
            assert size <= self._taken
            self._taken -= size


@final
class Share:
    """What one message has taken of a room; belongs to one thread at a time.

    Args:
        room: What it takes from.
    """

    __slots__ = ("_room", "size")

    def __init__(self, room: Room) -> None:
        self._room: Final = room
        self.size = 0

    def grow(self, size: int) -> bool:
        """Take `size` bytes more; say whether there were as many."""
        if not self._room.take(size):
            return False
        self.size += size
        return True

    def shrink_to(self, size: int) -> None:
        """Give back all but `size` bytes, which may be more than there are."""
        surplus = self.size - size
        if surplus > 0:
            self.size = size
            self._room.give_back(surplus)
