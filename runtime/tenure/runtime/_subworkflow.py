"""A workflow as an executor of another.

Its state is one value in its parent's state: read when a message comes, staged when its
run has ended. So it is committed with the parent's superstep, saved in the parent's
checkpoints, and gone if the parent's superstep fails. Its runs have epochs of their
own, in an instance that lives as long as the invocation.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from tenure.runtime._beginning import Beginning, FreshMessage, Responses
from tenure.runtime._checkpoint import PendingRequest, Store
from tenure.runtime._context import WorkflowContext
from tenure.runtime._executor import Executor
from tenure.runtime._handle import RunHandle
from tenure.runtime._handlers import Handler, ResponseHandler
from tenure.runtime._holding import Holding
from tenure.runtime._invocation import Invocation
from tenure.runtime._requests import coerced, name_of, revived
from tenure.runtime._retry import Retry
from tenure.runtime._run import Buffer, Run, RunResult
from tenure.runtime._signature import signature_of
from tenure.runtime._stream_buffer import Entry
from tenure.runtime._workflow import Workflow

Answerer = Callable[[Any], Any]
"""Answers a sub-workflow's request, or returns `None` to pass it on; may be async."""


class WorkflowExecutor(Executor):
    """Runs a workflow for each message, and sends its outputs on as messages.

    Where no edge leaves it, its outputs are outputs of the parent.

    The sub-workflow takes what its own start executor takes. It sees the run's keyword
    arguments, its events reach the parent's consumer with their path, and it is
    cancelled with its parent. Requests of its executors become requests of the parent,
    under the same ids, unless `answer` answers them.

    Args:
        workflow: The workflow; it needs no store of its own, the parent's keeps it.
        id: Name in the parent; the workflow's name by default.
        answer: Called with the data of each request of the sub-workflow; what it
            returns is the answer, and `None` passes the request on to the parent.
        retry: As in `Executor`: the whole sub-workflow is run again, from the state
            that it had. What an executor inside raised counts as its failure.
        timeout: As in `Executor`, for the whole sub-workflow.
        concurrency: As in `Executor`.
    """

    def __init__(
        self,
        workflow: Workflow,
        id: str | None = None,  # noqa: A002 - the public name
        *,
        answer: Answerer | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        super().__init__(
            id or workflow.name, retry=retry, timeout=timeout, concurrency=concurrency
        )
        self.workflow: Final = workflow
        self._answer: Final = answer

    def read_handlers(self, workflow: str) -> tuple[Handler, ...]:
        """Return one handler for all that the sub-workflow's start executor takes."""
        del workflow
        graph = self.workflow.graph
        start = graph.executors[graph.start].dispatch
        return tuple(
            Handler(self._run_message, one.message, None, is_async=True)
            for one in start.handlers
        )

    def read_responders(self, workflow: str) -> tuple[ResponseHandler, ...]:
        """Return a handler for each kind of answer that the sub-workflow takes."""
        del workflow
        return tuple(
            ResponseHandler(
                self._run_response, one.request, one.response, is_async=True
            )
            for member in self.workflow.graph.executors.values()
            for one in member.dispatch.responders
        )

    @property
    def has_snapshot(self) -> bool:
        """Whether an executor of the sub-workflow has something of its own to save."""
        return any(
            one.factory is None and one.executor.has_snapshot
            for one in self.workflow.graph.executors.values()
        )

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return what the sub-workflow's executors have to save."""
        found: dict[str, Any] = {}
        for name, one in self.workflow.graph.executors.items():
            if one.factory is None and one.executor.has_snapshot:
                snapshot = one.executor.on_checkpoint_save()
                found[name] = await _awaited(snapshot)
        return found

    async def on_checkpoint_restore(self, snapshot: Mapping[str, Any]) -> None:
        """Give the sub-workflow's executors what they had saved."""
        for name, one in self.workflow.graph.executors.items():
            if name in snapshot:
                await _awaited(one.executor.on_checkpoint_restore(snapshot[name]))

    def signature_lines(self) -> Iterator[str]:
        """Yield the sub-workflow's own signature."""
        yield f"workflow {self._signature}"

    @functools.cached_property
    def _signature(self) -> str:
        """Signature of the sub-workflow's graph, which never changes."""
        return signature_of(self.workflow.graph)

    @property
    def state_key(self) -> str:
        """Where the sub-workflow's state is in its parent's."""
        return f"workflow:{self.id}"

    async def _run_message(
        self, message: object, ctx: WorkflowContext[Any, Any]
    ) -> None:
        await self._run(FreshMessage(message), ctx)

    async def _run_response(
        self, _data: object, response: object, ctx: WorkflowContext[Any, Any]
    ) -> None:
        await self._run(Responses({ctx.request_id or "": response}), ctx)

    async def _run(self, beginning: Beginning, ctx: WorkflowContext[Any, Any]) -> None:
        """Run the sub-workflow once, and again for requests that are answered here."""
        assert isinstance(ctx, Invocation)  # it is this engine that calls
        holding = self._holding(ctx)
        asked = set(holding.requests)
        following: Beginning | None = beginning
        for place in itertools.count(1):
            if following is None:
                break
            origin = f"{ctx.idempotency_key}/{place}"
            result = await self._drive(holding, following, ctx, origin)
            hand_on = ctx.send_message if ctx.leads_on else ctx.yield_output
            for output in result.outputs:
                await hand_on(output)
            new = [
                one for one in result.pending_requests if one.request_id not in asked
            ]
            asked.update(one.request_id for one in new)
            following = await self._answered(new)
        requests = tuple(holding.requests.values())
        ctx.set_state(self.state_key, self._kept(holding, requests))
        ctx.pass_on(requests)

    async def _drive(
        self,
        holding: Holding,
        beginning: Beginning,
        ctx: Invocation,
        origin: str,
    ) -> RunResult:
        outer = ctx.buffer
        buffer = None if outer is None else _Outer(outer)
        run = Run(holding, beginning, ctx.kwargs, buffer)
        run.origin = origin
        run.forward = ctx.forward
        holding.admit(run, "reject")
        return await RunHandle(run)

    async def _answered(self, requests: Sequence[PendingRequest]) -> Responses | None:
        if self._answer is None:
            return None
        answers: dict[str, Any] = {}
        for request in requests:
            answer = await _awaited(self._answer(request.data))
            if answer is not None:
                answers[request.request_id] = coerced(answer, request)
        return Responses(answers) if answers else None

    def _holding(self, ctx: Invocation) -> Holding:
        """Return an instance that holds what earlier invocations have left."""
        child = self.workflow
        holding = Holding(
            child.graph,
            child.routers,
            f"{ctx.instance_key}/{self.id}",
            child.recorder,
            None,
            ctx.values,
        )
        kept: Mapping[str, Any] | None = ctx.get_state(self.state_key)
        if kept is not None:
            waiting = ctx.waiting
            requests = (PendingRequest(*one) for one in kept["requests"])
            # The parent may have withdrawn some.
            left = {
                one.request_id: revived(one, child.graph.shared)
                for one in requests
                if one.request_id in waiting
            }
            same = kept.get("graph") == self._signature
            collected = [tuple(one) for one in kept["fan_ins"]] if same else ()
            holding.begin_with(kept["state"], left, collected)
        return holding

    def _kept(
        self, holding: Holding, requests: Sequence[PendingRequest]
    ) -> dict[str, Any]:
        """Return what the next invocation goes on with, as a value of the parent."""
        kept: dict[str, Any] = {
            "state": dict(holding.snapshot()),
            "requests": [_written(one, holding.values) for one in requests],
        }
        if holding.collected:
            for _, source, message, _ in holding.collected:
                if holding.values is not None:
                    holding.values.check(message, f"message of {source!r}")
            kept["fan_ins"] = [list(one) for one in holding.collected]
            kept["graph"] = self._signature
        return kept


class _Outer:
    """The buffer of a sub-workflow's run: it has room while its parent's has.

    Its events are put there by `forward`, with their path.

    Args:
        buffer: The parent's buffer.
    """

    def __init__(self, buffer: Buffer) -> None:
        self._buffer: Final = buffer

    @property
    def full(self) -> bool:
        """Whether the parent's is."""
        return self._buffer.full

    def put(self, entry: Entry) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    async def room(self) -> None:
        """Wait until there is room in the parent's."""
        await self._buffer.room()

    def unread_for(self) -> float:
        """Return 0: the parent's run knows."""
        return 0.0


async def _awaited(value: Any) -> Any:  # noqa: ANN401 - what foreign code returns
    return await value if inspect.isawaitable(value) else value


def _written(one: PendingRequest, values: Store | None) -> list[Any]:
    wanted = one.response_type if values is None else name_of(one.response_type)
    return [one.request_id, one.executor_id, one.data, wanted, one.begun_by]
