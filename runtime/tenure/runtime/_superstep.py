"""One superstep: deliver, execute side by side, wait for all, commit or discard."""

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from anyio import to_thread
from opentelemetry.trace import Span, SpanContext

from tenure.instrumentation.operations import LateKind
from tenure.runtime import _spawn
from tenure.runtime._context import DONE, WorkflowContext
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import (
    ExecutorCompleted,
    ExecutorInvoked,
    OutputYielded,
    SuperstepCompleted,
    SuperstepStarted,
)
from tenure.runtime._executor import Dispatch, Handler
from tenure.runtime._graph import FanInEdge
from tenure.runtime._isolation import isolate
from tenure.runtime._ledger import Page
from tenure.runtime._mailbox import Delivery, Router, Sent
from tenure.runtime._run import Run
from tenure.runtime._stream_buffer import Room
from tenure.runtime.errors import ExecutorError, IsolationError, MessageTypeError


class Invocation(WorkflowContext[Any, Any]):
    """The engine's side of a context: one executor handling one message."""

    __slots__ = ("_executor_id", "_router", "_run", "_span", "_threaded", "outbox")

    def __init__(
        self,
        run: Run,
        page: Page,
        router: Router,
        threaded: bool,  # noqa: FBT001 - made at one place, in the hot path
        span: Span | None,
    ) -> None:
        self._over = False
        self._run: Final = run
        self._page = page
        self._router: Final = router
        self._executor_id: Final = page.executor
        self._threaded: Final = threaded
        self._span: Final = span
        self._reads: dict[str, None] | None = None if span is None else {}
        self._staged: dict[str, None] | None = None if span is None else {}
        self.outbox: list[Sent] = []

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
    def reads(self) -> tuple[str, ...]:
        """State keys that it read, in order."""
        return tuple(self._reads or ())

    @property
    def writes(self) -> dict[str, int]:
        """State keys that it staged, each with the run's epoch."""
        return dict.fromkeys(self._staged or (), int(self._run.epoch))

    @property
    def late(self) -> bool:
        """Whether what it writes reaches nobody any more."""
        return self._over or not self._page.open

    def end(self) -> None:
        """Take no more: a task or thread that outlives the invocation comes late."""
        self._over = True

    def _send(self, message: Any, target: str | None) -> None:  # noqa: ANN401
        if self.late:
            self._late(LateKind.SEND)
            return
        admitted = self._router.admit(message, target)
        self.outbox.append(Sent(admitted, target, self._sources()))

    def _output(self, value: Any) -> Awaitable[None]:  # noqa: ANN401
        run = self._run
        if self.late:
            self._late(LateKind.OUTPUT)
            return DONE
        # What cannot be copied changes hands: the consumer is the only receiver.
        with suppress(IsolationError):
            value = isolate(value, f"output of {self._executor_id!r}")
        if self._threaded and run.loop is not None:
            _spawn.call_soon(run.loop, partial(self._yield, value))
            return DONE
        self._yield(value)
        if run.buffer is not None and run.buffer.full:
            return Room(run.buffer)
        return DONE

    def _yield(self, value: Any) -> None:  # noqa: ANN401
        if self.late:
            self._late(LateKind.OUTPUT)
            return
        self._run.outputs.append(value)
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


class Superstep:
    """One superstep of one run.

    Args:
        run: The run; its `index` is this superstep's number.
        dispatches: What finds the handlers of the run's executors.
    """

    __slots__ = ("_dispatches", "_run", "_sent")

    def __init__(self, run: Run, dispatches: Mapping[str, Dispatch]) -> None:
        self._run: Final = run
        self._dispatches: Final = dispatches
        # Invariant: in graph order once all executors have ended.
        self._sent: list[tuple[str, list[Sent]]] = []

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
        base = run.instance.state_values
        pages = [run.ledger.page(name, base) for name, _ in batch]
        outboxes: list[list[Sent]] = [[] for _ in batch]
        if len(batch) == 1:
            await self._work(pages[0], batch[0][1], outboxes[0])
        else:
            await _spawn.run_together(
                self._work(page, deliveries, outbox)
                for page, (_, deliveries), outbox in zip(
                    pages, batch, outboxes, strict=True
                )
            )
        for (name, _), outbox in zip(batch, outboxes, strict=True):
            if outbox:
                self._route(name, outbox)
        committed = run.instance.commit(run)
        run.note(SuperstepCompleted, run.index, tuple(committed))

    async def _work(
        self, page: Page, deliveries: list[Delivery], outbox: list[Sent]
    ) -> None:
        """Let one executor handle its messages, one at a time."""
        dispatch = self._dispatches[page.executor]
        for delivery in deliveries:
            handler = dispatch.find(delivery.message)
            if handler is None:
                kind = type(delivery.message).__qualname__
                takes = f"{page.executor!r} takes {dispatch.takes()}"
                raise MessageTypeError("", kind, (takes,))
            outbox.extend(await self._invoke(page, handler, delivery))

    async def _invoke(
        self, page: Page, handler: Handler, delivery: Delivery
    ) -> list[Sent]:
        run = self._run
        voice = run.voice
        name = page.executor
        span = (
            voice.executor_started(name, run.index, delivery.sources)
            if voice.telling
            else None
        )
        context = Invocation(
            run, page, run.instance.routers[name], not handler.is_async, span
        )
        run.note(ExecutorInvoked, run.index, name)
        if span is not None:
            voice.make_current(span)
        error: BaseException | None = None
        try:
            if handler.is_async:
                await handler.call(delivery.message, context)
            else:
                await to_thread.run_sync(
                    handler.call, delivery.message, context, abandon_on_cancel=True
                )
        except _spawn.CANCELLED as exc:
            error = exc
            if _spawn.being_cancelled():
                raise
            raise _failure(name, run.index, exc) from exc
        except Exception as exc:
            error = exc
            raise _failure(name, run.index, exc) from exc
        finally:
            context.end()
            if span is not None:
                voice.make_current(None)
                voice.executor_ended(
                    run.instance.owner,
                    span,
                    name,
                    run.index,
                    reads=context.reads,
                    writes=context.writes,
                    error=error,
                )
        run.note(ExecutorCompleted, run.index, name)
        return context.outbox

    def _route(self, sender: str, outbox: list[Sent]) -> None:
        """Put what an executor sent into the mailbox, edge by edge, in order."""
        run = self._run
        router = run.instance.routers[sender]
        mailbox = run.mailbox
        for sent in outbox:
            try:
                routes = router.routes(sent)
            except Exception as exc:
                raise _failure(sender, run.index, exc) from exc
            for receiver, message in routes:
                delivery = Delivery(message, sent.sources)
                if isinstance(receiver, FanInEdge):
                    mailbox.collect(receiver, sender, delivery)
                else:
                    mailbox.deliver(receiver, delivery)


def _failure(executor: str, superstep: int, error: BaseException) -> ExecutorError:
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ExecutorError(executor, superstep, reason)
