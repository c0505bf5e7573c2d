"""One run: all that belongs to it and to no other run."""

import contextvars
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from tenure.instrumentation import RunRecorder
from tenure.instrumentation.operations import Outcome, Owner, Trigger
from tenure.runtime import _spawn
from tenure.runtime._beginning import Beginning
from tenure.runtime._checkpoint import EMPTY, PendingRequest
from tenure.runtime._epoch import Epoch, RunId, new_run_id
from tenure.runtime._events import RunEnded, WorkflowEvent
from tenure.runtime._ledger import Ledger
from tenure.runtime._mailbox import Mailbox
from tenure.runtime._ownership import NOBODY
from tenure.runtime._requests import awaited, shown
from tenure.runtime._stream_buffer import Entry
from tenure.runtime.errors import EventLoopError, OwnershipLostError

if TYPE_CHECKING:
    from tenure.runtime._holding import Holding


class Buffer(Protocol):
    """Where a run's consumer reads events."""

    @property
    def full(self) -> bool:
        """Whether the run has to wait for its consumer."""
        ...

    def put(self, entry: Entry) -> None:
        """Add an event."""
        ...

    def close(self) -> None:
        """Say that no event follows."""
        ...

    async def room(self) -> None:
        """Wait until there is room."""
        ...

    def unread_for(self) -> float:
        """Return for how many seconds it has been full and nobody has read."""
        ...


KEPT_EVENTS: Final = 1000
"""How many of its newest events a run keeps, whatever its length."""

NO_KWARGS: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has brought.

    Attributes:
        outputs: What executors yielded, in order.
        outcome: How the run ended.
        run_id: Identity of the run.
        epoch: Its epoch.
        supersteps: How many supersteps were committed.
        pending_requests: Requests that wait for an answer.
        omitted_events: How many of the oldest events `events` leaves out: a run keeps
            its newest thousand. A stream sees all of them.
    """

    outputs: tuple[Any, ...]
    outcome: Outcome
    run_id: RunId
    epoch: Epoch
    supersteps: int
    pending_requests: tuple[PendingRequest, ...]
    omitted_events: int
    _log: tuple[Entry, ...] = field(repr=False)

    @property
    def events(self) -> tuple[WorkflowEvent, ...]:
        """The run's events, the newest thousand, in order."""
        return tuple(
            kind(self.run_id, self.epoch, seq, *facts) for kind, seq, facts in self._log
        )


class Run:
    """The state of one run.

    Belongs to the task that drives it. Other threads may call `abandon`; its instance
    may call `fence` and `cancel`.

    Args:
        instance: The instance that it runs on.
        beginning: What it begins with.
        kwargs: What executors read as `ctx.kwargs`.
        voice: Who tells what it does.
        buffer: Where its consumer reads events, if it has one.
        stall_after: Seconds without a reader, its buffer being full, after which a
            successor may supersede it.
        deadline: Seconds after which it is cancelled, from when it begins to wait for
            its turn; no limit if `None`.
    """

    __slots__ = (
        "_abandoned",
        "_log",
        "_seq",
        "_task",
        "beginning",
        "buffer",
        "context",
        "deadline",
        "discarded",
        "ended",
        "epoch",
        "error",
        "final",
        "forward",
        "head",
        "index",
        "instance",
        "kwargs",
        "ledger",
        "loop",
        "lost",
        "mailbox",
        "origin",
        "outcome",
        "outputs",
        "overdue",
        "owner",
        "policy",
        "position",
        "previous",
        "rank",
        "requests",
        "run_id",
        "stall_after",
        "successor",
        "swept",
        "turn",
        "voice",
    )

    def __init__(
        self,
        instance: "Holding",
        beginning: Beginning,
        kwargs: Mapping[str, Any],
        buffer: Buffer | None = None,
        stall_after: float = 30.0,
        deadline: float | None = None,
    ) -> None:
        self.instance: Final = instance
        self.beginning: Final = beginning
        self.deadline: Final = deadline
        # Whether the deadline has passed.
        self.overdue = False
        self.kwargs: Final = MappingProxyType(dict(kwargs)) if kwargs else NO_KWARGS
        self.run_id: Final = new_run_id()
        self.voice: Final[RunRecorder] = instance.recorder.run(self.run_id)
        self.buffer: Final = buffer
        self.stall_after: Final = stall_after
        self.context: Final = contextvars.copy_context()
        self.loop: _spawn.Loop | None = _spawn.running_loop()
        self.mailbox: Final = Mailbox(instance.graph.positions)
        # Invariant: `owner` is this run's own claim; epoch 0 means it has none yet.
        self.owner: Owner = NOBODY
        self.epoch = Epoch(0)
        self.ledger = Ledger(self.epoch)
        self.turn: _spawn.Signal | None = None
        self.successor: Owner | None = None
        # Its claim in this process; 0 while it has none. Without a store, the epoch.
        self.rank = Epoch(0)
        # What it does if it finds the instance owned.
        self.policy = "reject"
        # What it had staged when it was fenced, until somebody has told of that.
        self.swept: dict[str, int] | None = None
        # With a store: the checkpoint that it follows, the one that its claim had found
        # if it went back from there and has yet to tell, how many commits came before,
        # whether the store has refused it, and whether it has given the instance back.
        self.head: str | None = None
        self.previous: str | None = None
        self.position = 0
        self.lost = False
        self.final = False
        # Requests that were pending at its last commit.
        self.requests: Mapping[str, PendingRequest] = EMPTY
        self.index = 0
        self.outputs: list[Any] = []
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.ended = False
        self.discarded = False
        self._task: _spawn.Task[None] | None = None
        self._abandoned: Trigger | None = None
        # Takes its events besides the buffer, where it is a run of a sub-workflow.
        self.forward: Callable[[WorkflowEvent], None] | None = None
        # What it is one and the same work with, wherever it is done again.
        self.origin: str = self.run_id
        self._seq = 0
        self._log: Final[deque[Entry]] = deque(maxlen=KEPT_EVENTS)

    # Ownership.

    def own(self, owner: Owner) -> None:
        """Take note that this run has become the owner."""
        self.owner = owner
        self.epoch = Epoch(owner.epoch)
        self.ledger = Ledger(self.epoch)

    def fence(self, successor: Owner) -> dict[str, int]:
        """Take note that `successor` owns the instance now; return what it swept."""
        self.successor = successor
        self.swept = self.ledger.close()
        return self.swept

    def take_swept(self) -> dict[str, int] | None:
        """Return what was swept, to whoever tells of it first; `None` to others."""
        swept, self.swept = self.swept, None
        return swept

    def lose(self) -> None:
        """Take note that the store has another owner, and end."""
        self.lost = True
        self.interrupt()

    @property
    def abandoned(self) -> Trigger | None:
        """How the consumer left, if it did."""
        return self._abandoned

    @property
    def task(self) -> "_spawn.Task[None] | None":
        """The task that drives it, once it has one."""
        return self._task

    @property
    def stalled(self) -> bool:
        """Whether it waits for a consumer that has not read for too long."""
        return self.buffer is not None and self.buffer.unread_for() > self.stall_after

    @property
    def gone(self) -> bool:
        """Whether nobody waits for this run any more; any other run may replace it."""
        if self._abandoned is not None:
            return True
        return self.stalled or (self.loop is not None and self.loop.is_closed())

    def check(self) -> None:
        """Refuse to go on for a run that no longer owns, or that nobody waits for.

        Raises:
            OwnershipLostError: It was superseded, here or in another process, or its
                consumer has left.
        """
        if self.successor is not None or self._abandoned is not None or self.lost:
            newest = self.instance.owner.epoch
            raise OwnershipLostError("commit", self.epoch, newest)

    # How it ends before its time.

    def abandon(self, trigger: Trigger) -> None:
        """Take note that the consumer has left; the run's loop will do the rest.

        May be called from any thread and from a finalizer: it takes no lock and tells
        nobody.
        """
        if self.ended or self._abandoned is not None:
            return
        self._abandoned = trigger
        if self.loop is not None:
            _spawn.call_soon(self.loop, self._leave)

    def cancel(self) -> bool:
        """Cancel the run's task, from any thread.

        Returns:
            Whether there is a loop that will.
        """
        return self.loop is not None and _spawn.call_soon(self.loop, self.interrupt)

    def insist_on_loop(self) -> None:
        """Refuse to wait for it in another loop than its own, which would wake nobody.

        Raises:
            EventLoopError: This is not the loop that drives it.
        """
        if self.loop is _spawn.running_loop():
            return
        closed = self.loop is not None and self.loop.is_closed()
        state = "closed" if closed else "another one"
        raise EventLoopError(self.run_id, f"the loop that drives it is {state}")

    def interrupt(self) -> bool:
        """Cancel the run's task, in its loop; say whether there was one to cancel."""
        return self._task is not None and self._task.cancel()

    def _leave(self) -> None:
        self.interrupt()
        self.instance.left(self)

    def start(self, task: "_spawn.Task[None]") -> None:
        """Take note of the task that drives the run."""
        self._task = task

    # What it tells its consumer.

    def note(self, kind: type[WorkflowEvent], *facts: Any) -> None:  # noqa: ANN401
        """Tell the consumer an event."""
        self._seq += 1
        entry = (kind, self._seq, facts)
        self._log.append(entry)
        if self.buffer is not None:
            self.buffer.put(entry)
        if self.forward is not None:
            self.forward(kind(self.run_id, self.epoch, self._seq, *facts))

    def tell_end(self, outcome: Outcome) -> None:
        """Tell the consumer how the run has ended, and that nothing follows."""
        undelivered = self.mailbox.undelivered(awaited(self.requests))
        self.note(RunEnded, outcome, undelivered)
        if self.buffer is not None:
            self.buffer.close()

    def result(self) -> RunResult:
        """Return what the run has brought.

        Raises:
            WorkflowError: It has failed, or was superseded.
        """
        if self.error is not None:
            raise self.error
        return RunResult(
            tuple(self.outputs),
            self.outcome or Outcome.LOST,
            self.run_id,
            self.epoch,
            self.index,
            tuple(map(shown, self.requests.values())),
            self._seq - len(self._log),
            tuple(self._log),
        )
