"""What an executor may do: read, stage, send, yield."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from tenure.runtime._answers import Known
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._isolation import IMMUTABLE, isolate
from tenure.runtime._keys import DELETED, MISSING, StateKey
from tenure.runtime._ledger import Page

if TYPE_CHECKING:
    from tenure.runtime._executor import Executor

S = TypeVar("S", contravariant=True)
W = TypeVar("W", contravariant=True)
T = TypeVar("T")
D = TypeVar("D")


class _Done:
    """An awaitable that is done: what it stands for happened in the call."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


DONE: Final[Awaitable[None]] = _Done()
"""Nothing to wait for."""


class WorkflowContext(ABC, Generic[S, W]):
    """What an executor may do in one invocation: it sends `S` and yields `W`.

    A context belongs to its invocation. Once that has ended, or its run no longer owns
    the instance, nothing that it is asked to write reaches anybody: such a write is
    recorded as late, and does not raise, so that clean-up code goes on.

    Methods may be called from the invocation's task, from tasks that it made, and, for
    a plain `def` executor, from its worker thread, where nothing needs to be awaited.
    """

    __slots__ = ("__weakref__", "_kept", "_over", "_page", "_reads", "_staged")

    # Invariant: once `_over` is true it stays so; the page may outlast the invocation,
    # because an executor's next message in the same superstep stages into it too.
    _over: bool
    _kept: bool  # whether a store keeps what is staged
    _page: Page
    _reads: dict[str, None] | None
    _staged: dict[str, None] | None

    @property
    @abstractmethod
    def run_id(self) -> RunId:
        """Identity of the run."""

    @property
    @abstractmethod
    def epoch(self) -> Epoch:
        """Epoch of the run: its rank among the runs of the instance."""

    @property
    @abstractmethod
    def instance_key(self) -> str:
        """Key of the instance that the run owns."""

    @property
    @abstractmethod
    def superstep(self) -> int:
        """Number of the superstep, from 1."""

    @property
    @abstractmethod
    def executor_id(self) -> str:
        """The executor."""

    @property
    @abstractmethod
    def request_id(self) -> str | None:
        """In a response handler, the request that is answered."""

    @property
    @abstractmethod
    def leads_on(self) -> bool:
        """Whether an edge leaves this executor."""

    @property
    @abstractmethod
    def kwargs(self) -> Mapping[str, Any]:
        """The keyword arguments that the run was started with, read-only."""

    @property
    @abstractmethod
    def idempotency_key(self) -> str:
        """What is the same whenever this very work is done again, and only then.

        Hand it to systems that do a thing once for each key. An executor may be invoked
        more than once for one message: another attempt after a failure, another run
        that goes on after a crash. All of them have one key, and nothing else has it.
        """

    @abstractmethod
    def _send(self, message: Any, target: str | None) -> None:  # noqa: ANN401
        """Put a message for the next superstep."""

    @abstractmethod
    def _output(self, value: Any) -> Awaitable[None]:  # noqa: ANN401
        """Hand an output to the consumer."""

    @abstractmethod
    def _request(self, data: Any, response_type: Any) -> str:  # noqa: ANN401
        """Put a question to the outside."""

    @abstractmethod
    def _check_kept(self, value: Any, what: str) -> None:  # noqa: ANN401
        """Refuse a value that the instance's store cannot hold."""

    @abstractmethod
    def _stage_late(self, key: str) -> None:
        """Record that a write came too late."""

    @overload
    def get_state(self, key: StateKey[T]) -> T | None: ...

    @overload
    def get_state(self, key: StateKey[T], default: T) -> T: ...

    @overload
    def get_state(self, key: StateKey[T], default: D) -> T | D: ...

    @overload
    def get_state(self, key: str, default: Any = None) -> Any: ...  # noqa: ANN401

    def get_state(self, key: StateKey[Any] | str, default: Any = None) -> Any:
        """Return what this executor staged, else the state as of the superstep's start.

        A sibling's staged writes are never seen. What is returned is a copy unless it
        is immutable: changing it changes nothing.

        Args:
            key: The state key.
            default: What to return where it has no value.
        """
        name = key if type(key) is str else _name(key)
        if self._reads is not None:
            self._reads[name] = None
        value = self._page.read(name)
        if type(value) in IMMUTABLE:
            return value
        return default if value is MISSING else isolate(value, f"state key {name!r}")

    @overload
    def set_state(self, key: StateKey[T], value: T) -> None: ...

    @overload
    def set_state(self, key: str, value: Any) -> None: ...  # noqa: ANN401

    def set_state(self, key: StateKey[Any] | str, value: Any) -> None:
        """Stage a value: it is committed with the superstep, or not at all.

        The value is copied unless it is immutable: changing it later changes nothing.

        Args:
            key: The state key; a `StateKey` with a reducer joins siblings' writes.
            value: The value.

        Raises:
            IsolationError: The value cannot be copied.
            StateTypeError: The instance's store cannot hold it.
        """
        name = key if type(key) is str else _name(key)
        if self._kept:
            if not name.isascii():
                self._check_kept(name, f"state key {name!r}")
            self._check_kept(value, f"state key {name!r}")
        if type(value) not in IMMUTABLE:
            value = isolate(value, f"state key {name!r}")
        reducer = key.reduce if isinstance(key, StateKey) else None
        page = self._page
        if self._over or not page.open:
            self._stage_late(name)
            return
        if reducer is None and page.reducers is None:
            page.writes[name] = value
        else:
            page.stage(name, value, reducer)
        if self._staged is not None:
            self._staged[name] = None

    def delete_state(self, key: StateKey[Any] | str) -> None:
        """Stage the deletion of a key; one that has no value is left alone.

        Args:
            key: The state key.
        """
        name = _name(key)
        page = self._page
        if self._over or not page.open:
            self._stage_late(name)
        elif page.read(name) is not MISSING:
            page.stage(name, DELETED)
            if self._staged is not None:
                self._staged[name] = None

    def send_message(
        self, message: S, target: "Executor | str | None" = None
    ) -> Awaitable[None]:
        """Send a message along the edges that leave this executor.

        It is sent in the call and delivered in the next superstep, if this one commits.
        There is nothing to wait for: `await` keeps the habit, a plain `def` executor
        does without.

        Args:
            message: The message; receivers get a copy of their own.
            target: Only this one of the executors that edges lead to.

        Raises:
            MessageTypeError: No executor that an edge leads to takes it.
            UnknownTargetError: No edge leads to `target`.
            IsolationError: It goes to several executors and cannot be copied.
        """
        name = target if target is None or isinstance(target, str) else target.id
        self._send(message, name)
        return DONE

    def request_info(
        self,
        data: object,
        response_type: Any,  # noqa: ANN401 - a union is no class for type checkers
    ) -> Awaitable[str]:
        """Ask something of the outside: a person, another system, a later day.

        The question is committed with the superstep. A run that has nothing else to do
        ends with the outcome `pending_requests`; a later `run(responses={id: answer})`
        hands the answer to this executor's `response_handler`.

        Args:
            data: The question; the response handler gets it back.
            response_type: What an answer must be: a class, or an annotation such as
                `list[str]`, `Form | None` or `Literal["yes", "no"]`.

        Returns:
            The request's id, once it is awaited.

        Raises:
            MessageTypeError: No response handler takes such answers to such a question.
            TypeError: The response type is no type.
            IsolationError: The question cannot be copied.
            StateTypeError: The instance's store cannot hold the question; or it cannot
                find the response type again, because no response handler names it.
        """
        return Known(self._request(data, response_type))

    def yield_output(self, value: W) -> Awaitable[None]:
        """Hand an output to the run's consumer, at once.

        Awaiting it waits while a stream's buffer is full; in the worker thread of a
        plain `def` executor the call itself does. An output does not wait for
        the superstep: if that fails, the consumer has had the output all the same.

        Args:
            value: The output; the consumer gets a copy where it can be copied.
        """
        return self._output(value)


def _name(key: StateKey[Any] | str) -> str:
    return key.name if isinstance(key, StateKey) else str(key)
