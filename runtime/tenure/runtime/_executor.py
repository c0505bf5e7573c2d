"""Executors: units of work, their handlers, and functions as executors."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Generic, TypeVar, overload

from tenure.runtime._context import WorkflowContext
from tenure.runtime._handlers import (
    Handler,
    ResponseHandler,
    Written,
    read_handler,
    read_response_handler,
)
from tenure.runtime._retry import Retry

HANDLER_MARK: Final = "__tenure_handler__"
RESPONSE_MARK: Final = "__tenure_response_handler__"

M = TypeVar("M")
S = TypeVar("S")
W = TypeVar("W")
A = TypeVar("A", bound=Callable[[Any, Any, Any, WorkflowContext[Any, Any]], Any])
H = TypeVar("H", bound=Callable[[Any, Any, WorkflowContext[Any, Any]], Any])

Result = Awaitable[None] | None
"""What a handler returns: `async def` or, in a worker thread, plain `def`."""


def handler(method: H) -> H:
    """Mark a method as a handler of the message type in its annotation.

    Args:
        method: `async def method(self, message: T, ctx: WorkflowContext[S, W])`, or
            `def`, which runs in a worker thread.

    Returns:
        The method itself.
    """
    setattr(method, HANDLER_MARK, True)
    return method


def response_handler(method: A) -> A:
    """Mark a method as the handler of answers to requests of its executor.

    Args:
        method: `async def method(self, request: Q, response: A, ctx:
            WorkflowContext[S, W])`, or `def`. `request` is what `ctx.request_info` was
            given.

    Returns:
        The method itself.
    """
    setattr(method, RESPONSE_MARK, True)
    return method


class Executor:
    """A unit of work: subclass it and mark methods with `handler`.

    One instance serves all runs of a workflow, so an attribute that a handler changes
    is shared between runs. Keep what belongs to a run in `ctx.set_state`, or hand the
    builder a factory (the class itself, or a function), which gives each run its own.

    Args:
        id: Name in the workflow, unique there; the class's name by default.
        retry: How a failed invocation is tried again; not at all by default.
        timeout: Seconds that one attempt may take; no limit by default.
        concurrency: How many invocations may run at once, over all runs in one event
            loop; no limit by default.
    """

    retry: Retry | None = None
    timeout: float | None = None
    concurrency: int | None = None

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - the public name
        *,
        retry: Retry | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        self._id = id
        self.retry = retry
        self.timeout = timeout
        self.concurrency = concurrency

    @property
    def id(self) -> str:
        """Name of the executor in its workflow."""
        return getattr(self, "_id", None) or type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    def on_checkpoint_save(self) -> Any:  # noqa: ANN401 - whatever it wants saved
        """Return what a checkpoint is to hold of this executor; nothing by default.

        Override it, `def` or `async def`, for an executor that keeps something of its
        own; then override `on_checkpoint_restore` too. What it raises fails the run.
        """
        return None

    def on_checkpoint_restore(self, snapshot: Any) -> Any:  # noqa: ANN401 - as saved
        """Take back what `on_checkpoint_save` returned; `def` or `async def`.

        Args:
            snapshot: What was saved.
        """

    def signature_lines(self) -> Iterator[str]:
        """Yield what else the signature of a graph has to see of this executor.

        Its class and its handlers are seen anyway.
        """
        return iter(())

    def read_handlers(self, workflow: str) -> tuple[Handler, ...]:
        """Return its handlers; the builder asks.

        Args:
            workflow: Name of the workflow, for errors.

        Raises:
            DefinitionError: One cannot be understood.
        """
        return tuple(
            read_handler(Written(self.id, call, source, workflow))
            for call, source in self.written(HANDLER_MARK)
        )

    def read_responders(self, workflow: str) -> tuple[ResponseHandler, ...]:
        """Return its handlers of answers; the builder asks.

        Args:
            workflow: Name of the workflow, for errors.

        Raises:
            DefinitionError: One cannot be understood.
        """
        return tuple(
            read_response_handler(Written(self.id, call, source, workflow))
            for call, source in self.written(RESPONSE_MARK)
        )

    @property
    def has_snapshot(self) -> bool:
        """Whether this executor has something of its own to save."""
        return type(self).on_checkpoint_save is not Executor.on_checkpoint_save

    def written(
        self, mark: str
    ) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
        """Yield each marked method as it is called and as it was written, in order.

        The builder asks; there is nothing to override.

        Args:
            mark: `HANDLER_MARK` or `RESPONSE_MARK`.
        """
        seen: set[str] = set()
        for cls in type(self).__mro__:
            for name, member in vars(cls).items():
                if name not in seen and getattr(member, mark, False) is True:
                    yield getattr(self, name), member
                seen.add(name)


class FunctionExecutor(Executor, Generic[M, S, W]):
    """A function as an executor; made by `executor`.

    Args:
        function: `async def function(message: T, ctx: WorkflowContext[S, W])`, or
            `def`, which runs in a worker thread.
        id: Name in the workflow; the function's name by default.
        retry: As in `Executor`.
        timeout: As in `Executor`.
        concurrency: As in `Executor`.
    """

    def __init__(
        self,
        function: Callable[[M, WorkflowContext[S, W]], Result],
        id: str | None = None,  # noqa: A002 - the public name
        *,
        retry: Retry | None = None,
        timeout: float | None = None,
        concurrency: int | None = None,
    ) -> None:
        name = id or getattr(function, "__name__", type(function).__name__)
        super().__init__(name, retry=retry, timeout=timeout, concurrency=concurrency)
        self._function = function

    def __call__(self, message: M, ctx: WorkflowContext[S, W]) -> Result:
        """Call the function, as a plain function: for its own tests."""
        return self._function(message, ctx)

    def written(
        self, mark: str
    ) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
        if mark == HANDLER_MARK:
            yield self._function, self._function


@overload
def executor(
    function: Callable[[M, WorkflowContext[S, W]], Result],
) -> FunctionExecutor[M, S, W]: ...


@overload
def executor(
    function: None = None,
    *,
    id: str | None = None,
    retry: Retry | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
) -> Callable[
    [Callable[[M, WorkflowContext[S, W]], Result]], FunctionExecutor[M, S, W]
]: ...


def executor(
    function: Callable[[M, WorkflowContext[S, W]], Result] | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the public name
    retry: Retry | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
) -> (
    FunctionExecutor[M, S, W]
    | Callable[
        [Callable[[M, WorkflowContext[S, W]], Result]], FunctionExecutor[M, S, W]
    ]
):
    """Turn a function into an executor.

    Args:
        function: `async def function(message: T, ctx: WorkflowContext[S, W])`; a plain
            `def` runs in a worker thread.
        id: Name in the workflow; the function's name by default.
        retry: As in `Executor`.
        timeout: As in `Executor`.
        concurrency: As in `Executor`.

    Returns:
        The executor, or the decorator where the function is not given.
    """

    def make(
        wrapped: Callable[[M, WorkflowContext[S, W]], Result],
    ) -> FunctionExecutor[M, S, W]:
        return FunctionExecutor(
            wrapped, id, retry=retry, timeout=timeout, concurrency=concurrency
        )

    return make if function is None else make(function)
