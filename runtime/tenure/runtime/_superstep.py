"""One superstep: deliver, execute side by side, wait for all, commit or discard."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

from anyio import to_thread
from opentelemetry.trace import Span

from tenure.runtime import _spawn
from tenure.runtime._change import Change
from tenure.runtime._checkpoint import EMPTY, PendingRequest
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._events import (
    ExecutorCompleted,
    ExecutorInvoked,
    RequestRaised,
    SuperstepCompleted,
    SuperstepStarted,
)
from tenure.runtime._graph import FanInEdge
from tenure.runtime._guarded import place_of, time_limit, with_retries
from tenure.runtime._handlers import Handler, ResponseHandler
from tenure.runtime._invocation import Invocation
from tenure.runtime._isolation import isolate
from tenure.runtime._keeper import save_snapshots, savers
from tenure.runtime._mailbox import Delivery, Sent
from tenure.runtime._requests import Answer, shown
from tenure.runtime._run import Run
from tenure.runtime._saving import save
from tenure.runtime._turn import Turn
from tenure.runtime.errors import (
    ExecutorError,
)


class Supersteps:
    """The supersteps of one run, one at a time.

    Args:
        run: The run.
        dispatches: What finds the handlers of its executors.
    """

    __slots__ = ("_dispatches", "_messages", "_run", "_savers", "_sent", "_told")

    def __init__(self, run: Run, dispatches: Mapping[str, Dispatch]) -> None:
        self._run: Final = run
        self._dispatches: Final = dispatches
        # Those that have something of their own to save.
        self._savers: Mapping[str, Dispatch] = EMPTY
        if run.instance.keeper is not None:
            self._savers = savers(dispatches)
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
            snapshots: Mapping[str, Any] = EMPTY
            if self._savers:
                snapshots = await save_snapshots(self._savers, keeper.store, run.index)
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
            turn.begun_by = delivery.begun_by
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
        sender, router = turn.page.executor, turn.router
        for sent in turn.sent:
            if router.single is not None:
                self._put(router.single, sent.message, sent, sender)
                continue
            try:
                routes = router.routes(sent)
            except Exception as exc:
                raise _failure(sender, self._run.index, exc) from exc
            for receiver, message in routes:
                self._put(receiver, message, sent, sender)

    def _put(
        self,
        receiver: FanInEdge | str,
        message: Any,  # noqa: ANN401 - a message is any value
        sent: Sent,
        sender: str,
    ) -> None:
        mailbox, name = self._run.mailbox, ""
        if self._messages:
            self._sent += 1
            name = str(self._sent)
        delivery = Delivery(message, sent.sources, name, sent.begun_by)
        if isinstance(receiver, FanInEdge):
            whole = mailbox.collect(receiver, sender, delivery)
            if whole is None:
                return
            delivery, receiver = whole, receiver.target
        else:
            mailbox.deliver(receiver, delivery)
        if self._messages and delivery.id:
            self._run.voice.sent(
                self._run.instance.owner,
                delivery.id,
                executor=sender,
                target=receiver,
                index=self._run.index,
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
    context.use_thread()
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
