"""What an instance holds in memory: state, requests, what fan-ins have collected."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenure.runtime._change import Change
from tenure.runtime._checkpoint import EMPTY, Collected, PendingRequest
from tenure.runtime._graph import Graph
from tenure.runtime._keeper import Restored
from tenure.runtime._mailbox import Mailbox
from tenure.runtime._requests import awaited
from tenure.runtime._state import CommittedState, StateSnapshot


class Contents:
    """What runs of an instance read and change.

    Who may change it is not decided here. Methods that begin with an underscore are
    called with the lock held.
    """

    def __init__(self) -> None:
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
        self._state: Final = CommittedState()
        # With a store: the checkpoint that all this reflects, and whether executors
        # have yet to get what they had saved with it.
        self._head: str | None = None
        self._looked_up = False

    def snapshot(self) -> StateSnapshot:
        """Return the committed state as it is now."""
        with self._lock:
            return self._state.snapshot()

    @property
    def state_values(self) -> Mapping[str, Any]:
        """Committed values for the owner's superstep; not a snapshot."""
        return self._state.values

    @property
    def head(self) -> str | None:
        """The checkpoint that the state and the requests in memory are those of."""
        return self._head

    def reflects(self, checkpoint_id: str) -> bool:
        """Say whether a run may go on from the memory as from that checkpoint."""
        return self._head == checkpoint_id and not self._looked_up

    def requests_after(self, change: Change) -> Mapping[str, PendingRequest]:
        """Return the requests that wait once `change` is committed."""
        if not (change.raised or change.settled):
            return self.requests
        left = {
            key: one for key, one in self.requests.items() if key not in change.settled
        }
        return {**left, **{one.request_id: one for one in change.raised}}

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

    def _take_in(self, change: Change, mailbox: Mailbox, graph: Graph) -> None:
        """Hold what a superstep has changed, and what fan-ins keep for answers."""
        self._state.commit(change.writes)
        if change.raised or change.settled:
            self.requests = self.requests_after(change)
        if self.collected or mailbox.collecting:
            runs = awaited(self.requests)
            held = mailbox.collected(graph.fan_ins) if runs else ()
            self.collected = [one for one in held if one[-1] in runs]

    def _hold(self, restored: Restored) -> None:
        """Hold what a checkpoint brings back."""
        self._state.replace(restored.state)
        self.requests = restored.requests
        self.collected = restored.collected
        self.unsaved = EMPTY
        self._head = restored.checkpoint.checkpoint_id

    def _hold_nothing(self) -> None:
        self._state.replace({})
        self.requests, self.unsaved, self._head = EMPTY, EMPTY, None
        self.collected = ()
