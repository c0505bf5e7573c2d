"""One superstep: deliver, execute side by side, wait for all, commit or discard."""

import hashlib
import inspect
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from anyio import to_thread
from opentelemetry.trace import Span, SpanContext

from tenure.instrumentation.operations import LateKind
from tenure.runtime import _spawn
from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._context import DONE, WorkflowContext
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import (
    ExecutorCompleted,
    ExecutorInvoked,
    OutputYielded,
    RequestRaised,
    SubworkflowEvent,
    SuperstepCompleted,
    SuperstepStarted,
    WorkflowEvent,
)
from tenure.runtime._graph import FanInEdge
from tenure.runtime._guarded import place_of, time_limit, with_retries
from tenure.runtime._handlers import Handler, ResponseHandler
from tenure.runtime._holding import Change
from tenure.runtime._isolation import isolate
from tenure.runtime._keeper import save_snapshots
from tenure.runtime._ledger import Ledger, Page
from tenure.runtime._mailbox import Delivery, Router, Sent
from tenure.runtime._requests import Answer, shown, type_named
from tenure.runtime._run import Run
from tenure.runtime._saving import save
from tenure.runtime._stream_buffer import Room
from tenure.runtime._types import describe, may_flow
from tenure.runtime.errors import (
    ExecutorError,
    IsolationError,
    MessageTypeError,
    StateTypeError,
)


class Turn:
    """What one executor gets and brings in one superstep.

    Args:
        page: Where it stages; a failed attempt's is replaced.
        deliveries: Its messages, in order.
        dispatch: What finds its handlers.
        router: Where its own messages go.
        head: The checkpoint that the superstep follows, if there is one.
    """

    __slots__ = (
        "at",
        "deliveries",
        "dispatch",
        "head",
        "outputs",
        "page",
        "raised",
        "router",
        "sent",
        "settled",
    )

    def __init__(
        self,
        page: Page,
        deliveries: list[Delivery],
        dispatch: Dispatch,
        router: Router,
        head: str | None,
    ) -> None:
        self.page = page
        self.head: Final = head
        # Which of its messages is handled now, from 1.
        self.at = 0
        self.deliveries: Final = deliveries
        self.dispatch: Final = dispatch
        self.router: Final = router
        self.sent: Final[list[Sent]] = []
        self.outputs: Final[list[Any]] = []
        self.raised: Final[list[PendingRequest]] = []
        self.settled: Final[list[str]] = []

    def handler_of(self, message: object) -> Handler | ResponseHandler:
        """Return the handler that takes `message`, which may be an answer.

        Raises:
            MessageTypeError: There is none: a factory's executors differ in what they
                take.
        """
        found: Handler | ResponseHandler | None
        if type(message) is Answer:
            data, response = message.request.data, message.response
            found = self.dispatch.find_responder(data, response)
        else:
            found = self.dispatch.find(message)
        if found is not None:
            return found
        takes = f"{self.page.executor!r} takes {self.dispatch.takes()}"
        raise MessageTypeError("", type(message).__qualname__, (takes,))

    def mark(self) -> tuple[Page, int, int, int]:
        """Return what was staged, sent, yielded and asked so far, for `begin_again`."""
        return self.page, len(self.sent), len(self.outputs), len(self.raised)

    def begin_again(self, ledger: Ledger, mark: tuple[Page, int, int, int]) -> None:
        """Let an attempt begin on a page of its own, with what was there before it.

        A failed attempt's page takes no more: a thread or a task that it left behind
        reaches nobody.

        Args:
            ledger: The run's ledger.
            mark: What was there before the first attempt.
        """
        before, sent, outputs, raised = mark
        page = before.branch()
        ledger.replace(self.page, page)
        self.page = page
        del self.sent[sent:], self.outputs[outputs:], self.raised[raised:]


class Invocation(WorkflowContext[Any, Any]):
    """The engine's side of a context: one executor handling one message."""

    __slots__ = ("_at", "_executor_id", "_request_id", "_run", "_span", "_turn")

    def __init__(self, run: Run, turn: Turn, span: Span | None) -> None:
        page = turn.page
        self._over = False
        self._kept = run.instance.keeper is not None
        self._request_id: str | None = None
        self._page = page
        self._run: Final = run
        self._turn: Final = turn
        self._at: Final = turn.at
        self._executor_id: Final = page.executor
        self._span: Final = span
        self._reads: dict[str, None] | None = None if span is None else {}
        self._staged: dict[str, None] | None = None if span is None else {}

    @property
    def run_id(self) -> RunId:
        """Identity of the run."""
        return self._run.run_id

    @property
    def epoch(self) -> Epoch:
        """Epoch of the run."""
        return self._run.epoch

    @property
    def instance_key(self) -> str:
        """Key of the instance that the run owns."""
        return self._run.instance.key

    @property
    def superstep(self) -> int:
        """Number of the superstep, from 1."""
        return self._run.index

    @property
    def executor_id(self) -> str:
        """The executor."""
        return self._executor_id

    @property
    def kwargs(self) -> Mapping[str, Any]:
        """The keyword arguments that the run was started with, read-only."""
        return self._run.kwargs

    @property
    def idempotency_key(self) -> str:
        """What is the same whenever this very work is done again."""
        run, turn = self._run, self._turn
        work = f"{run.origin}/{run.index}" if turn.head is None else turn.head
        holding = run.instance
        parts = (holding.graph.name, holding.key, work, self._executor_id, self._at)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]

    @property
    def reads(self) -> tuple[str, ...]:
        """State keys that it read, in order."""
        return tuple(self._reads) if self._reads else ()

    @property
    def writes(self) -> dict[str, int]:
        """State keys that it staged, each with the run's epoch."""
        staged = self._staged
        return dict.fromkeys(staged, int(self._run.epoch)) if staged else {}

    @property
    def reduced(self) -> tuple[str, ...]:
        """Those of the staged keys whose writes a declared reducer joins."""
        staged, reducers = self._staged, self._page.reducers
        if not staged or not reducers:
            return ()
        return tuple(key for key in staged if key in reducers)

    @property
    def late(self) -> bool:
        """Whether what it writes reaches nobody any more."""
        return self._over or not self._page.open

    def answers(self, answer: Answer) -> None:
        """Take note which request it answers."""
        self._request_id = answer.request.request_id

    def end(self) -> None:
        """Take no more: a task or thread that outlives the invocation comes late."""
        self._over = True

    @property
    def request_id(self) -> str | None:
        """In a response handler, the request that is answered."""
        return self._request_id

    @property
    def leads_on(self) -> bool:
        """Whether an edge leaves this executor."""
        return bool(self._turn.router.edges)

    def forward(self, event: WorkflowEvent) -> None:
        """Hand an event of a sub-workflow to the consumer, with its path."""
        run = self._run
        path: tuple[str, ...] = (self._executor_id,)
        if isinstance(event, SubworkflowEvent):
            path, event = (self._executor_id, *event.path), event.event
        run.note(SubworkflowEvent, run.index, path, event)

    def pass_on(self, requests: Sequence[PendingRequest]) -> None:
        """Make requests of a sub-workflow this run's own, under their ids."""
        known = self._run.instance.requests
        for one in requests:
            if one.request_id not in known:
                self._check_request(one.data, one.response_type)
                self._turn.raised.append(replace(one, executor_id=self._executor_id))

    def _send(self, message: Any, target: str | None) -> None:  # noqa: ANN401
        if self.late:
            self._late(LateKind.SEND)
            return
        turn = self._turn
        if self._kept:
            self._check_kept(message, f"message of {self._executor_id!r}")
        admitted = turn.router.admit(message, target)
        turn.sent.append(Sent(admitted, target, self._sources()))

    def _request(self, data: Any, response_type: Any) -> None:  # noqa: ANN401
        if self.late:
            self._late(LateKind.SEND)
            return
        self._check_request(data, response_type)
        what = f"request of {self._executor_id!r}"
        self._turn.raised.append(
            PendingRequest(
                secrets.token_hex(8),
                self._executor_id,
                isolate(data, what),
                response_type,
            )
        )

    def _check_request(self, data: Any, response_type: Any) -> None:  # noqa: ANN401
        """Refuse what nobody here will take, or the store cannot hold."""
        dispatch = self._turn.dispatch
        answers = dispatch.response_types(data)
        if not any(may_flow(response_type, one) for one in answers):
            takers = tuple(
                f"{self._executor_id!r} takes {describe(one.response)} as answer to "
                f"{describe(one.request)}"
                for one in dispatch.responders
            ) or (f"{self._executor_id!r} has no @response_handler",)
            kind = type(data).__qualname__
            raise MessageTypeError(self._executor_id, kind, takers)
        if not self._kept:
            return
        what = f"request of {self._executor_id!r}"
        name = describe(response_type)
        if type_named(name, answers) is None:
            raise StateTypeError(f"{what}: its response type", name)
        self._check_kept(data, what)

    def _check_kept(self, value: Any, what: str) -> None:  # noqa: ANN401
        keeper = self._run.instance.keeper
        if keeper is not None:
            keeper.store.check(value, what)

    def _output(self, value: Any) -> Awaitable[None]:  # noqa: ANN401
        run = self._run
        if self.late:
            self._late(LateKind.OUTPUT)
            return DONE
        # What cannot be copied changes hands: the consumer is the only receiver.
        with suppress(IsolationError):
            value = isolate(value, f"output of {self._executor_id!r}")
        loop = run.loop
        if loop is not None and loop is not _spawn.running_loop():
            # A worker thread: the consumer is woken in its own loop only.
            _spawn.call_soon(loop, partial(self._yield, value))
            return DONE
        self._yield(value)
        if run.buffer is not None and run.buffer.full:
            return Room(run.buffer)
        return DONE

    def _yield(self, value: Any) -> None:  # noqa: ANN401
        if self.late:
            self._late(LateKind.OUTPUT)
            return
        self._turn.outputs.append(value)
        self._run.note(OutputYielded, self._run.index, self._executor_id, value)

    def _stage_late(self, key: str) -> None:
        self._late(LateKind.STAGE, key)

    def _late(self, kind: LateKind, key: str | None = None) -> None:
        """Record a write that reaches nobody: this run's ledger is closed."""
        run = self._run
        run.voice.late(
            run.instance.owner,
            kind,
            writes=None if key is None else {key: int(run.epoch)},
            ledger=int(run.epoch),
            executor=self._executor_id,
        )

    def _sources(self) -> tuple[SpanContext, ...]:
        if self._span is None or not self._span.is_recording():
            return ()
        return (self._span.get_span_context(),)


class Supersteps:
    """The supersteps of one run, one at a time.

    Args:
        run: The run.
        dispatches: What finds the handlers of its executors.
    """

    __slots__ = ("_dispatches", "_messages", "_run", "_sent", "_told")

    def __init__(self, run: Run, dispatches: Mapping[str, Dispatch]) -> None:
        self._run: Final = run
        self._dispatches: Final = dispatches
        self._told = False
        # Whether messages are told, and how many have been named so far.
        self._messages = False
        self._sent = 0

    async def execute(self, batch: list[tuple[str, list[Delivery]]]) -> None:
        """Deliver `batch`, run its executors and commit what they staged.

        Args:
            batch: Executors in graph order, each with its messages in order.

        Raises:
            RunError: An executor failed, or two of them staged one key. Nothing was
                committed; what was staged is the caller's to discard.
            OwnershipLostError: The run was superseded or abandoned.
        """
        run = self._run
        run.note(SuperstepStarted, run.index)
        self._told = run.voice.telling
        self._messages = run.voice.telling_messages
        base = run.instance.state_values
        routers = run.instance.routers
        turns = [
            Turn(
                run.ledger.page(name, base),
                deliveries,
                self._dispatches[name],
                routers[name],
                run.head,
            )
            for name, deliveries in batch
        ]
        if len(turns) == 1:
            await self._work(turns[0])
        else:
            await _spawn.run_together(self._work(turn) for turn in turns)
        # Conditions are foreign code: if one raises, nothing has been committed yet.
        for turn in turns:
            if turn.sent:
                self._route(turn)
        interruption = await self._commit(turns)
        if interruption is not None:
            raise interruption

    async def _commit(self, turns: list[Turn]) -> BaseException | None:
        """Commit what all executors did, in the store first if there is one.

        Returns:
            A cancellation that came while the store was asked: all is committed.
        """
        run = self._run
        keeper, interruption = run.instance.keeper, None
        if keeper is None:
            run.check()
            change = self._change(turns)
            run.instance.commit(run, change)
        else:
            snapshots = await save_snapshots(self._dispatches, keeper.store, run.index)
            run.check()
            change = self._change(turns)
            try:
                interruption = await save(run, "superstep", change, snapshots)
            except BaseException:
                run.ledger.take_back(change.writes)
                raise
        for turn in turns:
            run.outputs += turn.outputs
        for request in change.raised:
            run.note(RequestRaised, run.index, request.executor_id, shown(request))
        run.note(SuperstepCompleted, run.index, tuple(change.writes))
        return interruption

    def _change(self, turns: list[Turn]) -> Change:
        """Join what all executors did, in graph order."""
        run = self._run
        raised: tuple[PendingRequest, ...] = ()
        settled: tuple[str, ...] = ()
        for turn in turns:
            if turn.raised:
                raised += tuple(turn.raised)
            if turn.settled:
                settled += tuple(turn.settled)
        return Change(run.ledger.merge(run.instance.state_values), raised, settled)

    async def _work(self, turn: Turn) -> None:
        """Let one executor handle its messages, one at a time."""
        for delivery in turn.deliveries:
            turn.at += 1
            handler = turn.handler_of(delivery.message)
            if turn.dispatch.guarded:
                await self._invoke_guarded(turn, handler, delivery)
            else:
                await self._invoke(turn, handler, delivery)
            if type(delivery.message) is Answer:
                turn.settled.append(delivery.message.request.request_id)

    async def _invoke_guarded(
        self, turn: Turn, handler: Handler | ResponseHandler, delivery: Delivery
    ) -> None:
        """Invoke under the executor's retry policy, timeout and concurrency."""
        run, mark = self._run, turn.mark()
        executor = turn.dispatch.executor
        # Each run of a factory has an executor of its own; the limit is for all runs.
        shared = run.instance.graph.executors[turn.page.executor].executor

        async def attempt(number: int) -> None:
            async with place_of(shared):
                turn.begin_again(run.ledger, mark)
                await self._invoke(turn, handler, delivery, number)

        await with_retries(executor.retry, attempt)

    async def _invoke(
        self,
        turn: Turn,
        handler: Handler | ResponseHandler,
        delivery: Delivery,
        attempt: int = 1,
    ) -> None:
        run = self._run
        voice, index, name = run.voice, run.index, turn.page.executor
        span = (
            voice.executor_started(name, index, delivery.sources, attempt)
            if self._told
            else None
        )
        if delivery.id and self._messages:
            voice.received(run.instance.owner, delivery.id, executor=name, index=index)
        context = Invocation(run, turn, span)
        run.note(ExecutorInvoked, index, name)
        error: BaseException | None = None
        try:
            if span is not None:
                voice.make_current(span)
            if turn.dispatch.guarded:
                with time_limit(turn.dispatch.executor):
                    await _call(handler, delivery.message, context)
            elif type(handler) is Handler and handler.is_async:
                await handler.call(delivery.message, context)
            else:
                await _call(handler, delivery.message, context)
        except BaseException as exc:
            error = exc
            if not isinstance(exc, Exception) and not _is_a_failure(exc):
                raise
            raise _failure(name, index, exc) from exc
        finally:
            context.end()
            if span is not None:
                self._tell_end(context, span, error)
        run.note(ExecutorCompleted, index, name)

    def _tell_end(
        self, context: Invocation, span: Span, error: BaseException | None
    ) -> None:
        run = self._run
        run.voice.make_current(None)
        run.voice.executor_ended(
            run.instance.owner,
            span,
            context.executor_id,
            run.index,
            reads=context.reads,
            writes=context.writes,
            reduced=context.reduced,
            isolated=True,  # of siblings: a page reads the state it started from
            error=error,
        )

    def _route(self, turn: Turn) -> None:
        """Put what an executor sent into the mailbox, edge by edge, in order."""
        run, sender = self._run, turn.page.executor
        mailbox, router = run.mailbox, turn.router
        for sent in turn.sent:
            try:
                routes = router.routes(sent)
            except Exception as exc:
                raise _failure(sender, run.index, exc) from exc
            for receiver, message in routes:
                delivery = Delivery(message, sent.sources, self._next_id())
                if isinstance(receiver, FanInEdge):
                    whole = mailbox.collect(receiver, sender, delivery)
                    if whole is not None:
                        self._tell_sent(whole, sender, receiver.target)
                else:
                    mailbox.deliver(receiver, delivery)
                    self._tell_sent(delivery, sender, receiver)

    def _next_id(self) -> str:
        """Name a message, where messages are told."""
        if not self._messages:
            return ""
        self._sent += 1
        return str(self._sent)

    def _tell_sent(self, delivery: Delivery, sender: str, target: str) -> None:
        if delivery.id and self._messages:
            run = self._run
            run.voice.sent(
                run.instance.owner,
                delivery.id,
                executor=sender,
                target=target,
                index=run.index,
            )


async def _call(
    handler: Handler | ResponseHandler,
    message: Any,  # noqa: ANN401 - a message is any value
    context: Invocation,
) -> None:
    """Hand a message, or an answer and what was asked, to a handler."""
    arguments: tuple[Any, ...] = (message, context)
    if isinstance(handler, ResponseHandler):
        context.answers(message)
        # A failed attempt leaves question and answer as they were.
        question = shown(message.request).data
        arguments = (question, isolate(message.response, "answer"), context)
    if handler.is_async:
        await handler.call(*arguments)
        return
    returned = await to_thread.run_sync(
        handler.call, *arguments, abandon_on_cancel=True
    )
    if inspect.isawaitable(returned):
        await returned  # a plain wrapper around an `async def`


def _is_a_failure(error: BaseException) -> bool:
    """Say whether a cancellation came from the executor's own code.

    Awaiting something that was cancelled elsewhere raises it without anybody having
    cancelled the executor's task.
    """
    return isinstance(error, _spawn.CANCELLED) and not _spawn.being_cancelled()


def _failure(executor: str, superstep: int, error: BaseException) -> ExecutorError:
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ExecutorError(executor, superstep, reason)
