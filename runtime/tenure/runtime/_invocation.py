"""The engine's side of a context: one executor handling one message."""

import hashlib
import secrets
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from opentelemetry.trace import Span, SpanContext

from tenure.instrumentation.operations import LateKind
from tenure.runtime import _spawn
from tenure.runtime._checkpoint import PendingRequest, Store
from tenure.runtime._context import DONE, WorkflowContext
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import (
    OutputYielded,
    SubworkflowEvent,
    WorkflowEvent,
)
from tenure.runtime._isolation import isolate
from tenure.runtime._mailbox import Sent
from tenure.runtime._requests import Answer, type_named
from tenure.runtime._run import Buffer, Run
from tenure.runtime._stream_buffer import Room
from tenure.runtime._turn import Turn
from tenure.runtime._types import describe, is_annotation, may_flow
from tenure.runtime.errors import (
    IsolationError,
    MessageTypeError,
    StateTypeError,
)


class Invocation(WorkflowContext[Any, Any]):
    """The engine's side of a context: one executor handling one message."""

    __slots__ = (
        "_at",
        "_executor_id",
        "_request_id",
        "_run",
        "_span",
        "_threaded",
        "_turn",
    )

    def __init__(self, run: Run, turn: Turn, span: Span | None) -> None:
        page = turn.page
        self._over = False
        self._kept = run.instance.values is not None
        self._request_id: str | None = None
        # Whether a thread of ours runs the handler: then it may wait, as a task awaits.
        self._threaded = False
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

    def use_thread(self) -> None:
        """Take note that the handler runs in a worker thread."""
        self._threaded = True

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

    # What a sub-workflow that runs inside this invocation needs of it.

    @property
    def values(self) -> Store | None:
        """The store that keeps what is staged here, if one does."""
        return self._run.instance.values

    @property
    def waiting(self) -> frozenset[str]:
        """Ids of this executor's requests that wait, those of this superstep too."""
        turn = self._turn
        asked = {one.request_id for one in turn.raised}
        for one in self._run.requests.values():
            if one.executor_id == self._executor_id:
                asked.add(one.request_id)
        return frozenset(asked.difference(turn.settled))

    @property
    def buffer(self) -> Buffer | None:
        """Where the run's consumer reads events, if there is one."""
        return self._run.buffer

    def forward(self, event: WorkflowEvent) -> None:
        """Hand an event of a sub-workflow to the consumer, with its path."""
        run = self._run
        path: tuple[str, ...] = (self._executor_id,)
        if isinstance(event, SubworkflowEvent):
            path, event = (self._executor_id, *event.path), event.event
        run.note(SubworkflowEvent, run.index, path, event)

    def pass_on(self, requests: Sequence[PendingRequest]) -> None:
        """Make requests of a sub-workflow this run's own, under their ids."""
        waiting = self.waiting
        for one in requests:
            if one.request_id not in waiting:
                self._check_request(one.data, one.response_type)
                self._turn.raised.append(
                    replace(
                        one,
                        executor_id=self._executor_id,
                        begun_by=self._turn.begun_by,
                    )
                )

    def _send(self, message: Any, target: str | None) -> None:  # noqa: ANN401
        turn = self._turn
        # This attempt's, looked up before it is asked whether that is over: in a thread
        # the next attempt may begin while the message is copied.
        sent = turn.sent
        if self.late:
            self._late(LateKind.SEND)
            return
        keeper = self._run.instance.keeper
        # A message of a sub-workflow is handled before anything is saved.
        if keeper is not None:
            keeper.store.check(message, f"message of {self._executor_id!r}")
        admitted = turn.router.admit(message, target)
        sent.append(Sent(admitted, target, self._sources(), turn.begun_by))

    def _request(self, data: Any, response_type: Any) -> str:  # noqa: ANN401
        raised = self._turn.raised  # as in `_send`
        request_id = secrets.token_hex(8)
        if self.late:
            self._late(LateKind.SEND)
            return request_id
        self._check_request(data, response_type)
        what = f"request of {self._executor_id!r}"
        raised.append(
            PendingRequest(
                request_id,
                self._executor_id,
                isolate(data, what),
                response_type,
                self._turn.begun_by,
            )
        )
        return request_id

    def _check_request(self, data: Any, response_type: Any) -> None:  # noqa: ANN401
        """Refuse what nobody here will take, or the store cannot hold."""
        if not is_annotation(response_type):
            raise TypeError(
                f"response_type={response_type!r}: pass a type, such as bool or "
                f"list[str]"
            )
        dispatch = self._turn.dispatch
        answers = dispatch.response_types(data)
        if not any(may_flow(response_type, one) for one in answers):
            takers = tuple(
                f"{self._executor_id!r} takes {describe(one.response)} as answer to "
                f"{describe(one.request)}"
                for one in dispatch.responders
            ) or (f"{self._executor_id!r} has no @response_handler",)
            kind = type(data).__qualname__
            asked = f"{kind}, to be answered with {describe(response_type)}"
            raise MessageTypeError(self._executor_id, asked, takers)
        if not self._kept:
            return
        what = f"request of {self._executor_id!r}"
        name = describe(response_type)
        if type_named(name, answers) is None:
            takes = " or ".join(map(describe, answers))
            remedy = (
                f"Checkpoints find a type by its name: annotate the response handler's "
                f"answer with {name}, not {takes}"
            )
            raise StateTypeError(f"{what}: its response type", name, remedy)
        self._check_kept(data, what)

    def _check_kept(self, value: Any, what: str) -> None:  # noqa: ANN401
        if self.values is not None:
            self.values.check(value, what)

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
            if self._threaded and run.buffer is not None:
                _spawn.wait_for(loop, run.buffer.room)
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
