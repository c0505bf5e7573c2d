"""A workflow: a frozen graph and its instances."""

import importlib.metadata
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from tenure.instrumentation import Recorder
from tenure.runtime._checkpoint import CheckpointInfo, PendingRequest, Store
from tenure.runtime._detached import AttachedStream
from tenure.runtime._epoch import RunId
from tenure.runtime._graph import Graph
from tenure.runtime._handle import RunHandle
from tenure.runtime._holding import ConflictPolicy
from tenure.runtime._inputs import NOTHING
from tenure.runtime._instance import Instance
from tenure.runtime._keeper import (
    Durability,
    GraphChangePolicy,
    SaveFailurePolicy,
)
from tenure.runtime._mailbox import Router
from tenure.runtime._signature import signature_of
from tenure.runtime._state import StateSnapshot
from tenure.runtime._stream import RunStream

DEFAULT_KEY: Final = "default"
"""Key of the instance that `Workflow.run` and `Workflow.stream` use."""


class Workflow:
    """A workflow that `WorkflowBuilder.build` has checked.

    `run`, `stream` and `state` are those of its default instance. Safe to share between
    threads.

    Args:
        graph: The graph.
        on_conflict: What a run does by default that finds its instance owned.
        recorder: Who tells what happens; one of its own by default.
        store: Where instances are kept, if they are.
        on_save_failure: What a run does whose checkpoint cannot be saved.
        on_graph_change: What one does that is to go on from one of another graph.
    """

    def __init__(
        self,
        graph: Graph,
        on_conflict: ConflictPolicy,
        recorder: Recorder | None,
        store: Store | None = None,
        on_save_failure: SaveFailurePolicy = "fail",
        on_graph_change: GraphChangePolicy = "fail",
    ) -> None:
        self._durability: Final = (
            None
            if store is None
            else Durability(
                store, signature_of(graph), on_save_failure, on_graph_change
            )
        )
        self._graph: Final = graph
        self._on_conflict: Final[ConflictPolicy] = on_conflict
        self._recorder: Final = recorder or Recorder(_engine())
        self._routers: Final = {name: Router(graph, name) for name in graph.executors}
        self._making: Final = threading.Lock()
        self._instances: Final[dict[str, Instance]] = {}
        self._default: Final = self.instance(DEFAULT_KEY)

    def __repr__(self) -> str:
        return f"<Workflow {self.name!r}>"

    @property
    def name(self) -> str:
        """Name of the workflow."""
        return self._graph.name

    @property
    def graph(self) -> Graph:
        """Its executors and edges."""
        return self._graph

    @property
    def routers(self) -> Mapping[str, Router]:
        """Where messages of each executor go."""
        return self._routers

    @property
    def recorder(self) -> Recorder:
        """Who tells what happens."""
        return self._recorder

    @property
    def state(self) -> StateSnapshot:
        """Committed state of the default instance, as a snapshot."""
        return self._default.state

    def instance(self, key: str) -> Instance:
        """Return the instance of that key: its own state, its own owner.

        It is made when it is first asked for, and kept until `forget`.

        Args:
            key: Any string, such as a customer's number.
        """
        with self._making:
            found = self._instances.get(key)
            if found is None:
                found = self._instances[key] = Instance(
                    self._graph,
                    self._routers,
                    key,
                    self._on_conflict,
                    self._recorder,
                    self._durability,
                    self.instance,
                )
            return found

    def forget(self, key: str) -> bool:
        """Drop the instance of that key and its state, unless a run owns it.

        What a store holds of it stays; `Instance.erase` removes that.

        Args:
            key: Key of the instance; the default one only loses its state by a run.

        Returns:
            Whether there is no such instance any more.
        """
        if key == DEFAULT_KEY:
            return False
        with self._making:
            found = self._instances.get(key)
            if found is not None and found.busy:
                return False
            self._instances.pop(key, None)
            return True

    def run(
        self,
        message: Any = NOTHING,  # noqa: ANN401 - a message is any value
        *,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        on_conflict: ConflictPolicy | None = None,
        deadline: float | None = None,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunHandle:
        """Run the workflow on its default instance; see `Instance.run`."""
        return self._default.run(
            message,
            responses=responses,
            checkpoint_id=checkpoint_id,
            on_conflict=on_conflict,
            deadline=deadline,
            **kwargs,
        )

    def stream(
        self,
        message: Any = NOTHING,  # noqa: ANN401 - a message is any value
        *,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        on_conflict: ConflictPolicy | None = None,
        deadline: float | None = None,
        buffer: int = 64,
        stall_after: float = 30.0,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunStream:
        """Run the workflow on its default instance and read its events as they happen.

        See `Instance.stream`.
        """
        return self._default.stream(
            message,
            responses=responses,
            checkpoint_id=checkpoint_id,
            on_conflict=on_conflict,
            deadline=deadline,
            buffer=buffer,
            stall_after=stall_after,
            **kwargs,
        )

    def start(
        self,
        message: Any = NOTHING,  # noqa: ANN401 - a message is any value
        *,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: str | None = None,
        on_conflict: ConflictPolicy | None = None,
        deadline: float | None = None,
        keep_events: int = 1000,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunId:
        """Start a run of the default instance that goes on by itself.

        See `Instance.start`.
        """
        return self._default.start(
            message,
            responses=responses,
            checkpoint_id=checkpoint_id,
            on_conflict=on_conflict,
            deadline=deadline,
            keep_events=keep_events,
            **kwargs,
        )

    def attach(self, run_id: str, *, after: int = 0) -> AttachedStream:
        """Read the events of a run that `start` has started; see `Instance.attach`."""
        return self._default.attach(run_id, after=after)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run that `start` has started; see `Instance.cancel`."""
        await self._default.cancel(run_id)

    def resume(
        self,
        *,
        responses: Mapping[str, Any] | None = None,
        on_conflict: ConflictPolicy | None = None,
        deadline: float | None = None,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunHandle:
        """Go on from the newest checkpoint; see `Instance.resume`."""
        return self._default.resume(
            responses=responses, on_conflict=on_conflict, deadline=deadline, **kwargs
        )

    async def fork(self, checkpoint_id: str | None, key: str) -> Instance:
        """Fork the default instance; see `Instance.fork`."""
        return await self._default.fork(checkpoint_id, key)

    async def refresh(self) -> StateSnapshot:
        """Look up what other processes have done; see `Instance.refresh`."""
        return await self._default.refresh()

    async def history(self) -> Sequence[CheckpointInfo]:
        """Return the default instance's checkpoints; see `Instance.history`."""
        return await self._default.history()

    async def prune(self, *, keep: int) -> int:
        """Remove the default instance's older checkpoints; see `Instance.prune`."""
        return await self._default.prune(keep=keep)

    def erase(self, *, on_conflict: ConflictPolicy | None = None) -> RunHandle:
        """Remove all that the default instance holds; see `Instance.erase`."""
        return self._default.erase(on_conflict=on_conflict)

    def cancel_requests(
        self, ids: Iterable[str], *, on_conflict: ConflictPolicy | None = None
    ) -> RunHandle:
        """Withdraw requests of the default instance; see `Instance.cancel_requests`."""
        return self._default.cancel_requests(ids, on_conflict=on_conflict)

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """Requests of the default instance that wait for an answer."""
        return self._default.pending_requests


def _engine() -> str:
    return f"tenure/{importlib.metadata.version('tenure')}"
