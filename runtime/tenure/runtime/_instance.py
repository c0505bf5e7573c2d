"""One keyed piece of state, and the runs that own it in turn."""

import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, get_args

from tenure.instrumentation import InstanceRecorder, Recorder
from tenure.instrumentation.operations import DiscardCause, Outcome, Owner
from tenure.runtime import _spawn
from tenure.runtime._epoch import new_instance_suffix
from tenure.runtime._graph import Graph
from tenure.runtime._handle import RunHandle
from tenure.runtime._isolation import isolate
from tenure.runtime._mailbox import Router
from tenure.runtime._ownership import Ownership
from tenure.runtime._run import NO_KWARGS, Run
from tenure.runtime._state import CommittedState, StateSnapshot
from tenure.runtime._stream import RunStream
from tenure.runtime._stream_buffer import EventBuffer
from tenure.runtime.errors import (
    IsolationError,
    MessageTypeError,
    OwnershipLostError,
    RunError,
    WorkflowBusyError,
)

ConflictPolicy = Literal["reject", "wait", "supersede"]
"""What a run does that finds the instance owned by a live run."""

POLICIES: Final[tuple[str, ...]] = get_args(ConflictPolicy)
"""All of them."""


class Instance:
    """One keyed piece of state of a workflow. Runs own it in turn.

    Get one from `Workflow.instance`. `run` and `stream` may be called from any thread;
    what they return is used in one event loop.

    Args:
        graph: The workflow's graph.
        routers: Where messages of each executor go.
        key: Key of the instance.
        on_conflict: What a run does by default that finds it owned.
        recorder: Who tells what happens.
    """

    def __init__(
        self,
        graph: Graph,
        routers: Mapping[str, Router],
        key: str,
        on_conflict: ConflictPolicy,
        recorder: Recorder,
    ) -> None:
        self.key: Final = key
        self.id: Final = f"{key}@{new_instance_suffix()}"
        self.graph: Final = graph
        self.routers: Final = routers
        self.recorder: Final[InstanceRecorder] = recorder.instance(graph.name, self.id)
        self._on_conflict: Final = on_conflict
        # Held for claims, commits and releases: no await and no foreign code inside.
        # A finalizer never takes it, because it may interrupt whoever holds it.
        self._lock: Final = threading.Lock()
        self._ownership: Final = Ownership()
        self._state: Final = CommittedState()
        # Invariant: the run that owns the instance now, or `None`.
        self._current: Run | None = None
        self._queue: Final[deque[Run]] = deque()

    def __repr__(self) -> str:
        return f"<Instance {self.key!r} of workflow {self.graph.name!r}>"

    # What users do with it.

    def run(
        self,
        message: Any,  # noqa: ANN401 - a message is any value
        *,
        on_conflict: ConflictPolicy | None = None,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunHandle:
        """Run the workflow on this instance to its end.

        The instance is claimed in this call, before anything is awaited. A handle that
        is never awaited gives its claim back when it is dropped.

        Args:
            message: Input for the start executor, which gets a copy of its own.
            on_conflict: What to do if a live run owns the instance: `"reject"`,
                `"wait"` behind it, or `"supersede"` it. The workflow's own policy by
                default.
            **kwargs: Read by executors as `ctx.kwargs`.

        Returns:
            A handle to await, once: a coroutine as far as asyncio is concerned, so it
            goes into `asyncio.run`, `create_task`, `gather` and `wait_for`. Awaiting it
            returns a `RunResult`, and raises what the run failed with.

        Raises:
            MessageTypeError: The start executor has no handler for `message`.
            WorkflowBusyError: A live run owns the instance, and the policy is to
                reject.
        """
        policy = self._policy(on_conflict)
        run = Run(self, self._input(message), kwargs or NO_KWARGS)
        self._admit(run, policy)
        return RunHandle(run)

    def stream(
        self,
        message: Any,  # noqa: ANN401 - a message is any value
        *,
        on_conflict: ConflictPolicy | None = None,
        buffer: int = 64,
        stall_after: float = 30.0,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunStream:
        """Run the workflow on this instance and read its events as they happen.

        The instance is claimed in this call. Use the stream as an async context
        manager: leaving the block ends the run. It is an async iterator as well, and
        safe to break out of: a stream that is dropped ends its run too.

        Args:
            message: Input for the start executor.
            on_conflict: As in `run`.
            buffer: How many events may wait for the reader before the run waits.
            stall_after: Seconds without a reader, the buffer being full, after which
                any other run may supersede this one.
            **kwargs: Read by executors as `ctx.kwargs`.

        Returns:
            The stream.

        Raises:
            MessageTypeError: The start executor has no handler for `message`.
            WorkflowBusyError: A live run owns the instance, and the policy is to
                reject.
        """
        policy = self._policy(on_conflict)
        if buffer < 1:
            raise ValueError(f"buffer={buffer}: a stream buffers at least one event")
        events = EventBuffer(buffer)
        run = Run(self, self._input(message), kwargs or NO_KWARGS, events, stall_after)
        self._admit(run, policy)
        return RunStream(run, events)

    @property
    def state(self) -> StateSnapshot:
        """The committed state: a read-only snapshot, unchanged by later commits."""
        with self._lock:
            return self._state.snapshot()

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not."""
        return self._ownership.owner

    @property
    def busy(self) -> bool:
        """Whether a run owns the instance now."""
        return self._ownership.held

    # What runs do with it.

    @property
    def state_values(self) -> Mapping[str, Any]:
        """Committed values for the owner's superstep; not a snapshot."""
        return self._state.values

    def commit(self, run: Run) -> Mapping[str, Any]:
        """Make visible what `run` has staged in this superstep, all or nothing.

        Args:
            run: Who commits.

        Returns:
            Each committed key and its value.

        Raises:
            OwnershipLostError: The run does not own the instance any more.
            WriteConflictError: Two executors staged a key that has no reducer.
        """
        run.check()
        writes = run.ledger.merge(self._state.values)
        with self._lock:
            owner = self._ownership.owner
            if not self._ownership.owns(run.epoch):
                raise OwnershipLostError("commit", run.epoch, owner.epoch)
            self._state.commit(writes)
        voice = run.voice
        if voice.telling or voice.measuring:
            staged = dict.fromkeys(writes, int(run.epoch)) if writes else {}
            voice.commit(owner, staged, index=run.index)
        return writes

    def release(self, run: Run, outcome: Outcome) -> None:
        """End the tenure of `run`, and let the next one in the queue begin its own.

        Args:
            run: Who releases; one that owns nothing changes nothing.
            outcome: How it ended.
        """
        granted: Run | None = None
        with self._lock:
            if run in self._queue:
                self._queue.remove(run)
            released = self._ownership.release(run.epoch)
            if released:
                self._current = None
                if outcome is not Outcome.COMPLETED:
                    # A thread of an executor may outlive the run, and go on reading.
                    self._state.branch()
                granted = self._grant_next()
        if released:
            run.voice.release(run.owner, outcome)
        if granted is not None:
            granted.voice.claim(granted.owner)
            self._wake(granted)

    def left(self, run: Run) -> None:
        """Take note, in the run's loop, that the consumer of `run` has left.

        A run that has never started ends here. One that goes on cleaning up is
        superseded if others wait for the instance.
        """
        if run.task is None:
            self._end_unstarted(run)
            return
        with self._lock:
            if self._current is not run or not self._queue:
                return
            granted, swept = self._take(self._queue.popleft())
        self._tell_takeover(granted, run, swept)
        self._wake(granted)

    def lost(self, run: Run) -> None:
        """End a run that can do nothing any more, because its event loop is closed."""
        if not run.ended:
            run.ended = True
            run.outcome = Outcome.LOST
            self.release(run, Outcome.LOST)
            run.voice.ended(Outcome.LOST)

    # How a run becomes the owner.

    def _policy(self, asked: ConflictPolicy | None) -> ConflictPolicy:
        policy = asked or self._on_conflict
        if policy not in POLICIES:
            raise ValueError(f"on_conflict={policy!r}: use one of {POLICIES}")
        return policy

    def _input(self, message: Any) -> Any:  # noqa: ANN401 - a message is any value
        """Check that the start executor takes a run's input; isolate it from others."""
        dispatch = self.graph.executors[self.graph.start].dispatch
        if dispatch.find(message) is None:
            takes = f"{self.graph.start!r} takes {dispatch.takes()}"
            raise MessageTypeError("", type(message).__qualname__, (takes,))
        # What cannot be copied changes hands, as between two executors.
        with suppress(IsolationError):
            return isolate(message, "input")
        return message

    def _admit(self, run: Run, policy: ConflictPolicy) -> None:
        try:
            predecessor, swept = self._claim(run, policy)
        except RunError as exc:
            run.voice.ended(Outcome.FAILED, exc)
            raise
        if run.epoch:
            self._tell_takeover(run, predecessor, swept)

    def _claim(
        self, run: Run, policy: ConflictPolicy
    ) -> tuple[Run | None, dict[str, int]]:
        """Claim for `run`, or queue it. Synchronous: the claim is made on return."""
        with self._lock:
            current = self._current
            if current is not None and not current.gone and policy != "supersede":
                if policy == "reject":
                    raise WorkflowBusyError(
                        self.graph.name, self.key, current.run_id, current.epoch
                    )
                run.turn = _spawn.Signal()
                self._queue.append(run)
                return None, {}
            return current, self._take(run)[1]

    def _take(self, run: Run) -> tuple[Run, dict[str, int]]:
        """Make `run` the owner, whoever was it; return what was swept. Lock held."""
        predecessor = self._current
        owner = self._ownership.claim(run.run_id)
        run.own(owner)
        self._current = run
        if predecessor is None:
            return run, {}
        self._state.branch()
        return run, predecessor.fence(owner)

    def _grant_next(self) -> Run | None:
        while self._queue:
            waiting = self._queue.popleft()
            if not waiting.gone:
                return self._take(waiting)[0]
        return None

    def _tell_takeover(
        self, run: Run, predecessor: Run | None, swept: dict[str, int]
    ) -> None:
        """Record a claim: first that it ended another's tenure, last what it swept."""
        if predecessor is None:
            run.voice.claim(run.owner)
            return
        predecessor.voice.release(predecessor.owner, Outcome.SUPERSEDED)
        run.voice.claim(run.owner, superseded=int(predecessor.epoch))
        run.voice.discard(
            run.owner,
            swept,
            cause=DiscardCause.SWEEP,
            ledger=int(predecessor.epoch),
        )
        if predecessor.task is None:
            self._end_unstarted(predecessor)
        elif not predecessor.cancel():
            self.lost(predecessor)

    def _wake(self, run: Run) -> None:
        turn, run.turn = run.turn, None
        if turn is not None and run.task is not None and run.loop is not None:
            _spawn.call_soon(run.loop, turn.wake)

    def _end_unstarted(self, run: Run) -> None:
        """End a run that nobody has awaited or iterated; it gives its claim back."""
        if run.ended:
            return
        run.ended = True
        run.outcome = Outcome.ABANDONED
        if run.successor is not None and run.abandoned is None:
            run.outcome = Outcome.SUPERSEDED
            run.error = OwnershipLostError("start", run.epoch, run.successor.epoch)
        self.release(run, run.outcome)
        run.voice.ended(run.outcome)
