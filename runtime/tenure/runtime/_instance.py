"""One keyed piece of state, and what users do with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import isnan
from typing import Any, Final

from tenure.instrumentation import Recorder
from tenure.instrumentation.operations import Owner
from tenure.runtime._beginning import (
    Beginning,
    Branch,
    Erasure,
    Resumption,
    Withdrawal,
)
from tenure.runtime._checkpoint import CheckpointInfo, PendingRequest
from tenure.runtime._detached import AttachedStream, DetachedRuns, ReplayBuffer
from tenure.runtime._epoch import RunId
from tenure.runtime._graph import Graph
from tenure.runtime._handle import RunHandle, begin
from tenure.runtime._holding import POLICIES, ConflictPolicy, Holding
from tenure.runtime._inputs import NOTHING, beginning_of, keeper_of
from tenure.runtime._keeper import Durability
from tenure.runtime._mailbox import Router
from tenure.runtime._requests import find_requests, shown
from tenure.runtime._run import NO_KWARGS, Run
from tenure.runtime._state import StateSnapshot
from tenure.runtime._stream import RunStream
from tenure.runtime._stream_buffer import EventBuffer
from tenure.runtime.errors import CheckpointNotFoundError


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
        durability: How it is kept, if it is.
        sibling: Returns the workflow's instance of another key.
    """

    def __init__(
        self,
        graph: Graph,
        routers: Mapping[str, Router],
        key: str,
        on_conflict: ConflictPolicy,
        recorder: Recorder,
        durability: Durability | None,
        sibling: "Callable[[str], Instance]",
    ) -> None:
        self.key: Final = key
        self._graph: Final = graph
        self._on_conflict: Final = on_conflict
        self._holding: Final = Holding(graph, routers, key, recorder, durability)
        self._sibling: Final = sibling
        self._detached: Final = DetachedRuns()

    def __repr__(self) -> str:
        return f"<Instance {self.key!r} of workflow {self._graph.name!r}>"

    @property
    def id(self) -> str:
        """Identity in telemetry."""
        return self._holding.id

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
        """Run the workflow on this instance to its end.

        The instance is claimed in this call, before anything is awaited. A handle that
        is never awaited gives its claim back when it is dropped.

        Args:
            message: Input for the start executor, which gets a copy of its own.
            responses: Instead of a message, answers to pending requests, by id.
            checkpoint_id: Instead of a message, the checkpoint to go on from; with
                `responses`, it answers the requests that wait there.
            on_conflict: What to do if a live run owns the instance: `"reject"`,
                `"wait"` behind it, or `"supersede"` it. The workflow's own policy by
                default.
            deadline: Seconds after which the run is cancelled and fails with
                `DeadlineError`, the wait for its turn included; no limit by default.
            **kwargs: Read by executors as `ctx.kwargs`.

        Returns:
            A handle to await, once: a coroutine as far as asyncio is concerned, so it
            goes into `asyncio.run`, `create_task`, `gather` and `wait_for`. Awaiting it
            returns a `RunResult`, and raises what the run failed with.

        Raises:
            MessageTypeError: The start executor has no handler for `message`.
            StateTypeError: The workflow's store cannot hold `message`.
            UnknownRequestError: No such request waits for an answer. With a store,
                raised when the handle is awaited.
            ResponseTypeError: An answer is not of the type that was asked for; as
                above.
            WorkflowBusyError: A live run owns the instance, and the policy is to
                reject. If a run of another process does, raised when the handle is
                awaited.
            TypeError: Neither message, responses nor checkpoint_id is given, or a
                message with another of them.
        """
        beginning = beginning_of(self._holding, message, responses, checkpoint_id)
        return RunHandle(self._start(beginning, on_conflict, kwargs, deadline))

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
        """Run the workflow on this instance and read its events as they happen.

        The instance is claimed in this call. Use the stream as an async context
        manager: leaving the block ends the run. It is an async iterator as well, and
        safe to break out of: a stream that is dropped ends its run too.

        Args:
            message: Input for the start executor.
            responses: As in `run`.
            checkpoint_id: As in `run`.
            on_conflict: As in `run`.
            deadline: As in `run`.
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
        if buffer < 1:
            raise ValueError(f"buffer={buffer}: a stream buffers at least one event")
        beginning = beginning_of(self._holding, message, responses, checkpoint_id)
        events = EventBuffer(buffer)
        run = self._start(beginning, on_conflict, kwargs, deadline, events, stall_after)
        return RunStream(run, events)

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
        """Start a run that goes on by itself, whoever reads it or leaves.

        Call it in a running event loop. `attach` reads its events, as often as one
        likes; the run never waits for a reader.

        Args:
            message: As in `run`.
            responses: As in `run`.
            checkpoint_id: As in `run`.
            on_conflict: As in `run`.
            deadline: As in `run`.
            keep_events: How many of its newest events can be read again.
            **kwargs: Read by executors as `ctx.kwargs`.

        Returns:
            Identity of the run.

        Raises:
            WorkflowBusyError: A live run owns the instance, and the policy is to
                reject.
            EventLoopError: No event loop runs in this thread.
        """
        if keep_events < 1:
            raise ValueError(f"keep_events={keep_events}: keep at least one event")
        beginning = beginning_of(self._holding, message, responses, checkpoint_id)
        events = ReplayBuffer(keep_events)
        run = self._start(beginning, on_conflict, kwargs, deadline, events)
        begin(run)
        self._detached.add(run, events)
        return run.run_id

    def attach(self, run_id: str, *, after: int = 0) -> AttachedStream:
        """Read the events of a run that `start` has started.

        Args:
            run_id: Identity of the run.
            after: Number of the last event that the reader has had; 0 for none.

        Raises:
            RunNotFoundError: There is no such run, or it ended long ago.
            ValueError: `after` is less than 0.
        """
        return self._detached.attach(run_id, after)

    async def cancel(self, run_id: str) -> None:
        """Cancel a run that `start` has started, and wait for its clean-up.

        Args:
            run_id: Identity of the run.

        Raises:
            RunNotFoundError: There is no such run, or it ended long ago.
            EventLoopError: The run is driven by another loop, or by one that is closed.
        """
        await self._detached.cancel(run_id)

    def resume(
        self,
        *,
        responses: Mapping[str, Any] | None = None,
        on_conflict: ConflictPolicy | None = None,
        deadline: float | None = None,
        **kwargs: Any,  # noqa: ANN401 - handed to executors as they are
    ) -> RunHandle:
        """Go on from the newest checkpoint; one that left nothing undone runs nothing.

        Executors may have been invoked before for what they are given now: what they do
        outside has to bear it.

        Args:
            responses: Answers to pending requests, by id. Other than with `run`, what
                else was left undone is gone on with too.
            on_conflict: As in `run`.
            deadline: As in `run`.
            **kwargs: Read by executors as `ctx.kwargs`.

        Raises:
            CheckpointError: The workflow has no store; or, when the handle is awaited,
                the checkpoint cannot be read or was taken of another graph.
            UnknownRequestError: No such request waits for an answer; as above.
            ResponseTypeError: An answer is not of the type that was asked for; as
                above.
        """
        keeper_of(self._holding, "resume")
        beginning = Resumption(None, None if responses is None else dict(responses))
        return RunHandle(self._start(beginning, on_conflict, kwargs, deadline))

    def cancel_requests(
        self, ids: Iterable[str], *, on_conflict: ConflictPolicy | None = None
    ) -> RunHandle:
        """Withdraw requests that nobody will answer. It claims like any run.

        Args:
            ids: Ids of the requests, or the id of one.
            on_conflict: As in `run`.

        Raises:
            UnknownRequestError: No such request waits for an answer. With a store,
                raised when the handle is awaited.
        """
        wanted = (ids,) if isinstance(ids, str) else tuple(ids)
        if self._holding.keeper is None:
            find_requests(wanted, self._holding.requests)
        return RunHandle(self._start(Withdrawal(wanted), on_conflict, {}))

    async def fork(self, checkpoint_id: str | None, key: str) -> "Instance":
        """Make a new instance that begins with what a checkpoint of this one holds.

        It has the state, the messages on their way and the requests; nothing is run.
        `resume` goes on with what was left undone, `run` begins anew. This instance
        stays as it is, and need not be idle.

        Args:
            checkpoint_id: The checkpoint; the newest one if `None`.
            key: Key of the new instance; one that has never been used.

        Returns:
            The new instance.

        Raises:
            CheckpointError: The workflow has no store, the checkpoint cannot be read or
                was taken of another graph, or there is an instance of that key.
        """
        keeper = keeper_of(self._holding, "fork")
        # Looked up first, because a claim would use up the key for nothing.
        found = (await keeper.restore(checkpoint_id, strict=True)).checkpoint
        made = self._sibling(key)
        branch = Branch(keeper.name, found.checkpoint_id)
        await made._begin_as(branch)  # noqa: SLF001 - a twin
        return made

    async def _begin_as(self, branch: Branch) -> None:
        await RunHandle(self._start(branch, "reject", {}))

    async def refresh(self) -> StateSnapshot:
        """Look up what other processes have done: `state` and `pending_requests`.

        A run does that by itself. Nothing is claimed; while a run of this process owns
        the instance, nothing is looked up either.

        Returns:
            The committed state.

        Raises:
            CheckpointError: The workflow has no store, or the newest checkpoint cannot
                be read.
        """
        keeper, holding = keeper_of(self._holding, "refresh"), self._holding
        since = holding.head
        if not holding.held:
            restored = None
            with suppress(CheckpointNotFoundError):
                restored = await keeper.restore(None, strict=False)
            holding.refresh(restored, since)
        return holding.snapshot()

    @property
    def pending_requests(self) -> tuple[PendingRequest, ...]:
        """Requests that wait for an answer, as far as this process knows."""
        return tuple(map(shown, self._holding.requests.values()))

    async def history(self) -> Sequence[CheckpointInfo]:
        """Return the instance's checkpoints that are kept, the newest first.

        Raises:
            CheckpointError: The workflow has no store, or it cannot be read.
        """
        keeper = keeper_of(self._holding, "history")
        return await keeper.store.history(keeper.name)

    async def prune(self, *, keep: int) -> int:
        """Remove all checkpoints but the newest; a run that owns the instance goes on.

        Args:
            keep: How many are kept. They can be gone back to as before.

        Returns:
            How many were removed.

        Raises:
            ValueError: `keep` is less than one.
            CheckpointError: The workflow has no store, or it cannot be used.
        """
        keeper = keeper_of(self._holding, "prune")
        return await keeper.store.prune(keeper.name, keep)

    def erase(self, *, on_conflict: ConflictPolicy | None = None) -> RunHandle:
        """Remove all that the instance holds: state, requests and every checkpoint.

        It claims like any run. What stays is who has owned the instance, and its key;
        so do instances that were forked from it, and events of runs that `start` has
        started in this process.

        Args:
            on_conflict: As in `run`.

        Raises:
            WorkflowBusyError: As in `run`.
            CheckpointError: The store cannot be used; or all is removed, and bytes of
                it are still in a file that somebody else is reading. Raised when the
                handle is awaited.
        """
        return RunHandle(self._start(Erasure(), on_conflict, {}))

    @property
    def state(self) -> StateSnapshot:
        """The committed state: a read-only snapshot, unchanged by later commits."""
        return self._holding.snapshot()

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not."""
        return self._holding.owner

    @property
    def busy(self) -> bool:
        """Whether a run owns the instance now."""
        return self._holding.held

    def _start(
        self,
        beginning: Beginning,
        on_conflict: ConflictPolicy | None,
        kwargs: Mapping[str, Any],
        deadline: float | None = None,
        buffer: EventBuffer | ReplayBuffer | None = None,
        stall_after: float = 30.0,
    ) -> Run:
        policy = on_conflict or self._on_conflict
        if policy not in POLICIES:
            raise ValueError(f"on_conflict={policy!r}: use one of {POLICIES}")
        if deadline is not None and isnan(deadline):
            raise ValueError(f"deadline={deadline}: pass a number of seconds")
        run = Run(
            self._holding, beginning, kwargs or NO_KWARGS, buffer, stall_after, deadline
        )
        self._holding.admit(run, policy)
        return run
