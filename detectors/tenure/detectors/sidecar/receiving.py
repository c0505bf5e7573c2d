"""What happens to a message, whichever way it came: unpack, read, let in, send on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from tenure.detectors.sidecar import bodies
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.forward import Forwarder
from tenure.detectors.sidecar.intake import (
    ACCEPTED,
    LET_IN,
    STOPPING,
    Admission,
    Answer,
    Message,
    Room,
    Share,
    Signal,
    accepted_but,
    full,
    too_large,
)
from tenure.detectors.sidecar.worker import Worker
from tenure.instrumentation.operations import Operation


@dataclass(frozen=True, slots=True)
class Batch:
    """What one message brought for the detector.

    Attributes:
        operations: The operations.
        share: The memory that it takes until it is judged.
    """

    operations: tuple[Operation, ...]
    share: Share


@final
class Receiver:
    """Takes in messages. Safe to use from any thread.

    Args:
        room: The memory that messages may take.
        judge: Where what they bring goes.
        forwarder: What sends them on, if anything does.
        figures: Where they are counted.
        message_bytes: How large one may be, unpacked.
        doubt: Told what is lost before it can be judged.
    """

    def __init__(
        self,
        room: Room,
        judge: Worker[Batch],
        forwarder: Forwarder | None,
        figures: Figures,
        *,
        message_bytes: int,
        doubt: Callable[[str], object],
    ) -> None:
        self._room: Final = room
        self._judge: Final = judge
        self._forwarder: Final = forwarder
        self._figures: Final = figures
        self._doubt: Final = doubt
        self.message_bytes: Final = message_bytes
        # Set once. Messages that are on their way are let in as long as the judge does.
        self.stopping = False

    def share(self) -> Share:
        """Return what a message may take memory with; empty as yet."""
        return Share(self._room)

    def full(self) -> Answer:
        """Return the answer to a message for which there is no memory."""
        return full(self._room.limit)

    def refuse(self, transport: str, signal: Signal, answer: Answer) -> Answer:
        """Count a message that was refused before it was read; return `answer`.

        Args:
            transport: `grpc` or `http`.
            signal: What the message carries.
            answer: Why it was refused.
        """
        self._figures.answered(transport, signal.value, answer)
        if answer.admission is Admission.TOO_LARGE and signal is Signal.TRACES:
            self._doubt("messages that were too large")
        return answer

    def receive(self, message: Message, share: Share) -> Answer:
        """Take in one message. Never waits.

        Args:
            message: The message.
            share: The memory that it has taken, for its bytes as they came. It is given
                back when it is not needed any more, whatever the answer.

        Returns:
            What to tell whoever sent it.
        """
        try:
            answer = self._receive(message, share)
        except BaseException:
            share.shrink_to(0)
            raise
        self._figures.received(message, answer)
        return answer

    def _receive(self, message: Message, share: Share) -> Answer:
        if message.signal is Signal.TRACES:
            answer = self._read(message, share)
        else:
            answer = ACCEPTED
            share.shrink_to(0)
        if answer.admission not in LET_IN:
            share.shrink_to(0)
        elif self._forwarder is not None:
            self._forwarder.offer(message)
        return answer

    def _read(self, message: Message, share: Share) -> Answer:
        body = message.packed
        try:
            if message.gzipped:
                body = bodies.gunzip(body, self.message_bytes, share.grow)
            if len(body) > self.message_bytes:
                raise bodies.TooLargeError
            reading = bodies.read(body, message.format)
        except bodies.NoRoomError:
            return self.full()
        except bodies.TooLargeError:
            self._doubt("messages that were too large")
            return too_large(self.message_bytes)
        except bodies.UnreadableError as error:
            self._doubt("messages that could not be read")
            return Answer(
                Admission.UNREADABLE, f"The message cannot be read: {error.reason}."
            )
        return self._let_in(reading, len(body), share)

    def _let_in(self, reading: bodies.Reading, size: int, share: Share) -> Answer:
        # Of the spans of others nothing is kept.
        share.shrink_to(size if reading.operations else 0)
        if reading.operations:
            batch = Batch(reading.operations, share)
            if not self._judge.offer(batch):
                return STOPPING if self.stopping else self.full()
        for doubt in reading.doubts:
            self._doubt(doubt)
        self._figures.read(reading.spans, reading.rejected)
        return accepted_but(reading.rejected, reading.reasons)
