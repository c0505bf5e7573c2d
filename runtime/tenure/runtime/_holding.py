"""Who owns an instance, and what it holds: the engine's side of it."""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from tenure.instrumentation import InstanceRecorder, Recorder
from tenure.instrumentation.operations import DiscardCause, Outcome, Owner
from tenure.runtime import _spawn
from tenure.runtime._checkpoint import EMPTY, PendingRequest, Store
from tenure.runtime._epoch import Epoch, new_instance_suffix
from tenure.runtime._graph import Graph
from tenure.runtime._keeper import Keeper
from tenure.runtime._mailbox import Router
from tenure.runtime._ownership import Ownership
from tenure.runtime._run import Run
from tenure.runtime._state import CommittedState, StateSnapshot
from tenure.runtime.errors import OwnershipLostError, RunError, WorkflowBusyError

ConflictPolicy = Literal["reject", "wait", "supersede"]
"""What a run does that finds the instance owned by a live run."""

POLICIES: Final[tuple[str, ...]] = get_args(ConflictPolicy)
"""All of them."""


class Change(NamedTuple):
    """What a superstep changes, once it is committed.

    Attributes:
        writes: Each key and its value, or `DELETED`.
        raised: Requests that executors made.
        settled: Ids of requests that were answered or withdrawn.
    """

    writes: Mapping[str, Any] = EMPTY
    raised: tuple[PendingRequest, ...] = ()
    settled: tuple[str, ...] = ()


class Holding:
    """What runs own in turn: state, requests, and the word that says who the owner is.

    Claims may come from any thread.

    Args:
        graph: The workflow's graph.
        routers: Where messages of each executor go.
        key: Key of the instance.
        recorder: Who tells what happens.
        store: Where the instance is kept, if it is.
    """

    def __init__(
        self,
        graph: Graph,
        routers: Mapping[str, Router],
        key: str,
        recorder: Recorder,
        store: Store | None,
    ) -> None:
        self.key: Final = key
        # Processes share an instance of a store; in memory, a name is not enough.
        self.id: Final = f"{key}@{new_instance_suffix()}" if store is None else key
        self.graph: Final = graph
        self.routers: Final = routers
        self.recorder: Final[InstanceRecorder] = recorder.instance(graph.name, self.id)
        self.keeper: Final = None if store is None else Keeper(store, graph, key)
        # Requests that wait for an answer. Invariant: replaced as a whole.
        self.requests: Mapping[str, PendingRequest] = EMPTY
        # Held for claims, commits and releases: no await and no foreign code inside.
        # A finalizer never takes it, because it may interrupt whoever holds it.
        self._lock: Final = threading.Lock()
        self._ownership: Final = Ownership()
        self._state: Final = CommittedState()
        # Invariant: the run that owns the instance now, or `None`.
        self._current: Run | None = None
        self._queue: Final[deque[Run]] = deque()

    def snapshot(self) -> StateSnapshot:
        """Return the committed state as it is now."""
        with self._lock:
            return self._state.snapshot()

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not."""
        return self._ownership.owner

    @property
    def held(self) -> bool:
        """Whether a run owns the instance now."""
        return self._ownership.held

    # What runs do with it.

    @property
    def state_values(self) -> Mapping[str, Any]:
        """Committed values for the owner's superstep; not a snapshot."""
        return self._state.values

    def commit(self, run: Run, change: Change) -> None:
        """Make visible what `run` has done in this superstep, all or nothing.

        Args:
            run: Who commits.
            change: What changes.

        Raises:
            OwnershipLostError: The run does not own the instance any more. With a store
                the store has decided that before.
        """
        with self._lock:
            owner = self._ownership.owner
            if self.keeper is not None:
                owner = run.owner
            elif not self._ownership.owns(run.epoch):
                raise OwnershipLostError("commit", run.epoch, owner.epoch)
            self._state.commit(change.writes)
        if change.raised or change.settled:
            self.requests = self.requests_after(change)
        voice = run.voice
        if voice.telling or voice.measuring:
            writes = change.writes
            staged = dict.fromkeys(writes, int(run.epoch)) if writes else {}
            voice.commit(owner, staged, index=run.index)

    def requests_after(self, change: Change) -> Mapping[str, PendingRequest]:
        """Return the requests that wait once `change` is committed."""
        if not (change.raised or change.settled):
            return self.requests
        left = {
            key: one for key, one in self.requests.items() if key not in change.settled
        }
        return {**left, **{one.request_id: one for one in change.raised}}

    def confirm(self, run: Run, epoch: Epoch) -> None:
        """Take note of the epoch that the store gave to a run's claim.

        Args:
            run: A run that has claimed in this process.
            epoch: Its number in the store.

        Raises:
            OwnershipLostError: A successor has claimed meanwhile, in this process.
        """
        with self._lock:
            owner = self._ownership.confirm(run.epoch, epoch)
            if owner is None:
                newest = self._ownership.owner.epoch
                raise OwnershipLostError("claim", run.epoch, newest)
            run.own(owner)
        takeover, run.takeover = run.takeover, None
        predecessor, swept = takeover or (None, {})
        self._tell_takeover(run, predecessor, swept)

    def replace(
        self, state: dict[str, Any], requests: Mapping[str, PendingRequest]
    ) -> None:
        """Hold what a checkpoint brings back.

        Args:
            state: The whole state.
            requests: Requests that wait for an answer, by id.
        """
        with self._lock:
            self._state.replace(state)
        self.requests = requests

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
            self._took_over(granted, None, {})
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
        self._took_over(granted, run, swept)
        self._wake(granted)

    def take_from_gone(self, run: Run) -> None:
        """Take the instance for a waiting run whose predecessor nobody waits for.

        A predecessor that was created without a loop, stalls, or whose loop is closed,
        cannot say so itself.

        Args:
            run: A run in the queue; one that has been granted changes nothing.
        """
        with self._lock:
            current = self._current
            first = self._queue[0] if self._queue else None
            if first is not run or current is None or not current.gone:
                return
            self._queue.popleft()
            _, swept = self._take(run)
        run.turn = None
        self._took_over(run, current, swept)

    def lost(self, run: Run) -> None:
        """End a run that can do nothing any more, because its event loop is closed."""
        if not run.ended:
            run.ended = True
            run.outcome = Outcome.LOST
            self.release(run, Outcome.LOST)
            run.voice.ended(Outcome.LOST)

    # How a run becomes the owner.

    def admit(self, run: Run, policy: ConflictPolicy) -> None:
        """Claim for `run`, or queue it. Synchronous: the claim is made on return.

        Args:
            run: A new run.
            policy: What to do if a live run owns the instance.

        Raises:
            WorkflowBusyError: One does, and the policy is to reject.
        """
        try:
            predecessor, swept = self._claim(run, policy)
        except RunError as exc:
            run.voice.ended(Outcome.FAILED, exc)
            raise
        if run.epoch:
            self._took_over(run, predecessor, swept)

    def _claim(
        self, run: Run, policy: ConflictPolicy
    ) -> tuple[Run | None, dict[str, int]]:
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

    def _took_over(
        self, run: Run, predecessor: Run | None, swept: dict[str, int]
    ) -> None:
        """Record a claim, and end the run that it replaced.

        With a store the claim has no number yet: it is recorded when the store answers.
        """
        if self.keeper is None:
            self._tell_takeover(run, predecessor, swept)
        else:
            run.takeover = (predecessor, swept)
        if predecessor is None:
            return
        if predecessor.task is None:
            self._end_unstarted(predecessor)
        elif not predecessor.cancel():
            self.lost(predecessor)

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
