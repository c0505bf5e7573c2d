"""Who owns an instance, and what it holds: the engine's side of it."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from tenure.instrumentation import InstanceRecorder, Recorder
from tenure.instrumentation.operations import Outcome, Owner
from tenure.runtime import _spawn
from tenure.runtime._change import Change
from tenure.runtime._checkpoint import EMPTY, Claimed, Collected, PendingRequest, Store
from tenure.runtime._epoch import Epoch
from tenure.runtime._graph import Graph
from tenure.runtime._keeper import Durability, Keeper, Restored
from tenure.runtime._mailbox import Router
from tenure.runtime._mouths import mouth_of
from tenure.runtime._ownership import NOBODY, Ownership
from tenure.runtime._run import Run
from tenure.runtime._state import CommittedState, StateSnapshot
from tenure.runtime._telling import tell_claim, tell_commit
from tenure.runtime.errors import OwnershipLostError, RunError, WorkflowBusyError

ConflictPolicy = Literal["reject", "wait", "supersede"]
"""What a run does that finds the instance owned by a live run."""

POLICIES: Final[tuple[str, ...]] = get_args(ConflictPolicy)
"""All of them."""


class Holding:
    """What runs own in turn: state, requests, and the word that says who the owner is.

    Claims may come from any thread.

    With a store there are two words. The one here is claimed in the call that creates a
    run and fences the runs of this process at once. The store's has the epochs, and
    decides what is committed. From the moment at which a run has its epoch, the state
    in memory is that run's to change, and nobody else's: whatever a predecessor has
    still committed, the head that came with the epoch says so.

    Args:
        graph: The workflow's graph.
        routers: Where messages of each executor go.
        key: Key of the instance.
        recorder: Who tells what happens.
        durability: How the instance is kept, if it is.
        values: The store that its values must fit into all the same: its state is a
            value of another instance, which is kept there.
    """

    def __init__(
        self,
        graph: Graph,
        routers: Mapping[str, Router],
        key: str,
        recorder: Recorder,
        durability: Durability | None,
        values: Store | None = None,
    ) -> None:
        self.key: Final = key
        self.graph: Final = graph
        self.routers: Final = routers
        self.keeper: Final = (
            None if durability is None else Keeper(durability, graph, key)
        )
        store = None if durability is None else durability.store
        self.values: Final = values if store is None else store
        self.recorder: Final[InstanceRecorder] = mouth_of(
            recorder, graph.name, key, None if store is None else store.id
        )
        self.id: Final = self.recorder.instance
        # Requests that wait for an answer. Invariant: replaced as a whole.
        self.requests: Mapping[str, PendingRequest] = EMPTY
        # What fan-ins hold for answers yet to come. Invariant: replaced as a whole; a
        # message leaves it in a commit before anybody gets it, who might change it.
        self.collected: Sequence[Collected] = ()
        # Writes that a store failed to keep: the next checkpoint has them too.
        self.unsaved: Mapping[str, Any] = EMPTY
        # Held for claims, commits and releases: no await and no foreign code inside.
        # A finalizer never takes it, because it may interrupt whoever holds it.
        self._lock: Final = threading.Lock()
        self._ownership: Final = Ownership()
        self._state: Final = CommittedState()
        # Invariant: the run that owns the instance now, or `None`.
        self._current: Run | None = None
        self._queue: Final[deque[Run]] = deque()
        # With a store: the newest epoch that this process has got, the run that got it
        # and has not released it, and the checkpoint that the memory reflects.
        self._newest: Owner = NOBODY
        self._confirmed: Run | None = None
        self._head: str | None = None
        # Whether executors have yet to get what they had saved with that checkpoint.
        self._looked_up = False

    def __repr__(self) -> str:
        return f"<Instance {self.key!r} of workflow {self.graph.name!r}>"

    def snapshot(self) -> StateSnapshot:
        """Return the committed state as it is now."""
        with self._lock:
            return self._state.snapshot()

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not.

        With a store, the newest that has its epoch, as far as this process knows.
        """
        return self._ownership.owner if self.keeper is None else self._newest

    @property
    def held(self) -> bool:
        """Whether a run owns the instance now."""
        return self._ownership.held

    # What runs do with it.

    @property
    def state_values(self) -> Mapping[str, Any]:
        """Committed values for the owner's superstep; not a snapshot."""
        return self._state.values

    def commit(
        self,
        run: Run,
        change: Change,
        checkpoint_id: str | None = None,
        owner: Owner | None = None,
    ) -> bool:
        """Make visible what `run` has done in this superstep, all or nothing.

        Args:
            run: Who commits.
            change: What changes.
            checkpoint_id: The checkpoint that has it. With a store, the store has
                decided about the commit before.
            owner: Who owned the instance when the store did, if the store says so.

        Returns:
            Whether it was made visible here. If not, a successor has its epoch already,
            and has this commit from the store.

        Raises:
            OwnershipLostError: The run does not own the instance any more.
        """
        with self._lock:
            if self.keeper is not None:
                if self._confirmed is not run:
                    return False
                owner = owner or run.owner
                self._head = checkpoint_id
            else:
                owner = self._ownership.owner
                if not self._ownership.owns(run.rank):
                    raise OwnershipLostError("commit", run.epoch, owner.epoch)
            self._state.commit(change.writes)
            if change.raised or change.settled:
                self.requests = self.requests_after(change)
            run.requests = self.requests
            if self.collected or run.mailbox.collecting:
                awaited = {one.begun_by for one in self.requests.values()}
                held = run.mailbox.collected(self.graph.fan_ins)
                self.collected = [one for one in held if one[-1] in awaited]
        tell_commit(run, owner, change)
        return True

    def requests_after(self, change: Change) -> Mapping[str, PendingRequest]:
        """Return the requests that wait once `change` is committed."""
        if not (change.raised or change.settled):
            return self.requests
        left = {
            key: one for key, one in self.requests.items() if key not in change.settled
        }
        return {**left, **{one.request_id: one for one in change.raised}}

    # What runs do with it where it is kept in a store.

    def reflects(self, checkpoint_id: str) -> bool:
        """Say whether a run may go on from the memory as from that checkpoint."""
        return self._head == checkpoint_id and not self._looked_up

    @property
    def head(self) -> str | None:
        """The checkpoint that the state and the requests in memory are those of."""
        return self._head

    def confirm(self, run: Run, claimed: Claimed) -> None:
        """Take note of the epoch that the store gave to a run's claim.

        Args:
            run: A run that has claimed in this process.
            claimed: What the store has answered.

        Raises:
            OwnershipLostError: A successor has claimed meanwhile, in this process.
        """
        with self._lock:
            stands = self._current is run
            previous, before = self._confirmed, self._newest.epoch
            # One that does not stand any more is told all the same, if it is in order.
            taken = stands or claimed.epoch > before
            if taken:
                self._newest = Owner(claimed.epoch, run.run_id)
                self._confirmed = run
                run.own(self._newest)
                run.head, run.position = claimed.head, claimed.position
        if taken:
            # Each epoch follows the one below it: the store says that that one is over,
            # and by whom only if it was another process's.
            replaced = claimed.epoch - 1
            known = previous is None and replaced == before
            tell_claim(run, previous, None if known else replaced or None)
        if not stands:
            raise OwnershipLostError("claim", run.epoch, self._newest.epoch)

    def begin_with(
        self,
        state: dict[str, Any],
        requests: Mapping[str, PendingRequest],
        collected: Sequence[Collected],
    ) -> None:
        """Hold what an earlier holding of the same instance held; no run owns it yet.

        Args:
            state: The state.
            requests: Requests that wait for an answer, by id.
            collected: What fan-ins hold for the answers.
        """
        with self._lock:
            self._state.replace(state)
        self.requests, self.collected = requests, collected

    def replace(self, run: Run, restored: Restored) -> None:
        """Hold what a checkpoint brings back.

        Args:
            run: For whom.
            restored: What it brings.

        Raises:
            OwnershipLostError: A successor has its epoch already.
        """
        with self._lock:
            if self._confirmed is not run:
                raise OwnershipLostError("restore", run.epoch, self._newest.epoch)
            self._hold(restored)
            self._looked_up = False

    def empty(self, run: Run) -> None:
        """Hold nothing, because the store has nothing: it was emptied or replaced.

        Args:
            run: For whom.

        Raises:
            OwnershipLostError: A successor has its epoch already.
        """
        with self._lock:
            if self._confirmed is not run:
                raise OwnershipLostError("restore", run.epoch, self._newest.epoch)
            self._hold_nothing()

    def refresh(self, restored: Restored | None, since: str | None) -> None:
        """Hold what the store has, for nobody, if nothing has changed meanwhile.

        Args:
            restored: What the store has; `None` if it has nothing.
            since: The memory's head when the store was asked.
        """
        with self._lock:
            found = restored and restored.checkpoint.checkpoint_id
            # Where nothing is new, the memory may hold what the store failed to keep.
            if self._current is not None or self._head != since or found == since:
                return
            if restored is None:
                self._hold_nothing()
                return
            self._hold(restored)
            self._looked_up = True

    def _hold_nothing(self) -> None:
        self._state.replace({})
        self.requests, self.unsaved, self._head = EMPTY, EMPTY, None
        self.collected = ()

    def _hold(self, restored: Restored) -> None:
        self._state.replace(restored.state)
        self.requests = restored.requests
        self.collected = restored.collected
        self.unsaved = EMPTY
        self._head = restored.checkpoint.checkpoint_id

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
            released = self._ownership.release(run.rank)
            if released:
                self._current = None
                if outcome is not Outcome.COMPLETED:
                    # A thread of an executor may outlive the run, and go on reading.
                    self._state.branch()
                granted = self._grant_next()
            if self._confirmed is run:
                self._confirmed = None
        # With a store a run tells its own end, if no successor has told it before.
        if released if self.keeper is None else run.epoch:
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
        run.policy = policy
        try:
            predecessor, swept = self._claim(run, policy)
        except RunError as exc:
            run.voice.ended(Outcome.FAILED, exc)
            raise
        if run.rank:
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
        run.rank = Epoch(owner.epoch)
        if self.keeper is None:
            run.own(owner)
        else:
            owner = Owner(0, run.run_id)  # it has no epoch yet
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

        With a store the claim has no epoch yet: it is recorded when the store answers.
        """
        if self.keeper is None:
            replaced = None if predecessor is None else int(predecessor.epoch)
            tell_claim(run, predecessor, replaced, swept)
        if predecessor is None:
            return
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
        run.tell_end(run.outcome)
