"""Executors: units of work, their handlers, and functions as executors."""

import inspect
import typing
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast, overload

from tenure.runtime._context import WorkflowContext
from tenure.runtime._types import (
    NOTHING,
    accepts,
    alternatives,
    describe,
    elements_of,
    is_plain,
)
from tenure.runtime.errors import DefinitionError

_MARK: Final = "__tenure_handler__"

M = TypeVar("M")
S = TypeVar("S")
W = TypeVar("W")
H = TypeVar("H", bound=Callable[[Any, Any, WorkflowContext[Any, Any]], Any])

Result = Awaitable[None] | None
"""What a handler returns: `async def` or, in a worker thread, plain `def`."""


@dataclass(frozen=True, slots=True)
class Handler:
    """One way in which an executor takes a message.

    Attributes:
        call: The bound method or the function.
        message: Annotation of the message.
        sends: Annotations that it may send; empty for none; `None` if not declared.
        is_async: Whether it is awaited; else it runs in a worker thread.
    """

    call: Callable[[Any, Any], Any]
    message: Any
    sends: tuple[Any, ...] | None
    is_async: bool


def handler(method: H) -> H:
    """Mark a method as a handler of the message type in its annotation.

    Args:
        method: `async def method(self, message: T, ctx: WorkflowContext[S, W])`, or
            `def`, which runs in a worker thread.

    Returns:
        The method itself.
    """
    setattr(method, _MARK, True)
    return method


class Executor:
    """A unit of work: subclass it and mark methods with `handler`.

    One instance serves all runs of a workflow, so an attribute that a handler changes
    is shared between runs. Keep what belongs to a run in `ctx.set_state`, or hand the
    builder a factory (the class itself, or a function), which gives each run its own.

    Args:
        id: Name in the workflow, unique there; the class's name by default.
    """

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - the public name
        self._id = id

    @property
    def id(self) -> str:
        """Name of the executor in its workflow."""
        return getattr(self, "_id", None) or type(self).__name__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    def written_handlers(
        self,
    ) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
        """Yield each handler as it is called and as it was written, in order.

        The builder asks; there is nothing to override.
        """
        seen: set[str] = set()
        for cls in type(self).__mro__:
            for name, member in vars(cls).items():
                if name not in seen and getattr(member, _MARK, False) is True:
                    yield getattr(self, name), member
                seen.add(name)


class FunctionExecutor(Executor, Generic[M, S, W]):
    """A function as an executor; made by `executor`.

    Args:
        function: `async def function(message: T, ctx: WorkflowContext[S, W])`, or
            `def`, which runs in a worker thread.
        id: Name in the workflow; the function's name by default.
    """

    def __init__(
        self,
        function: Callable[[M, WorkflowContext[S, W]], Result],
        id: str | None = None,  # noqa: A002 - the public name
    ) -> None:
        super().__init__(id or getattr(function, "__name__", type(function).__name__))
        self._function = function

    def __call__(self, message: M, ctx: WorkflowContext[S, W]) -> Result:
        """Call the function, as a plain function: for its own tests."""
        return self._function(message, ctx)

    def written_handlers(
        self,
    ) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
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
) -> Callable[
    [Callable[[M, WorkflowContext[S, W]], Result]], FunctionExecutor[M, S, W]
]: ...


def executor(
    function: Callable[[M, WorkflowContext[S, W]], Result] | None = None,
    *,
    id: str | None = None,  # noqa: A002 - the public name
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

    Returns:
        The executor, or the decorator where only `id` is given.
    """
    if function is not None:
        return FunctionExecutor(function, id)
    return lambda wrapped: FunctionExecutor(wrapped, id)


class Dispatch:
    """Finds the handler of an executor for a message.

    Args:
        owner: The executor.
        workflow: Name of the workflow, for errors.

    Raises:
        DefinitionError: A handler cannot be understood, or there is none.
    """

    __slots__ = (
        "_elements",
        "_found",
        "_listed",
        "by_class",
        "executor_id",
        "handlers",
        "listed_by_class",
    )

    def __init__(self, owner: Executor, workflow: str) -> None:
        self.executor_id: Final = owner.id
        self.handlers: Final = tuple(
            _read_handler(owner, call, written, workflow)
            for call, written in owner.written_handlers()
        )
        if not self.handlers:
            raise DefinitionError(
                workflow,
                f"executor {owner.id!r} has no handler",
                "Mark a method `async def …(self, message: T, ctx: "
                "WorkflowContext[S, W])` with @handler",
            )
        self.by_class: Final = all(is_plain(one.message) for one in self.handlers)
        self._found: Final[dict[type, Handler | None]] = {}
        self._elements: Final = tuple(
            held for one in self.handlers for held in elements_of(one.message)
        )
        self.listed_by_class: Final = all(map(is_plain, self._elements))
        self._listed: Final[dict[type, bool]] = {}

    def find(self, message: object) -> Handler | None:
        """Return the handler whose type is nearest to the message's; `None` if none."""
        kind = type(message)
        try:
            return self._found[kind]
        except KeyError:
            found = self._search(message)
            if self.by_class:
                self._found[kind] = found
            return found

    def takes_listed(self, message: object) -> bool:
        """Say whether some handler takes a list that holds `message`."""
        kind = type(message)
        try:
            return self._listed[kind]
        except KeyError:
            fits = any(accepts(held, message) for held in self._elements)
            if self.listed_by_class:
                self._listed[kind] = fits
            return fits

    def takes(self) -> str:
        """Return what the executor takes, for errors."""
        return " or ".join(describe(one.message) for one in self.handlers)

    def _search(self, message: object) -> Handler | None:
        fitting = [one for one in self.handlers if accepts(one.message, message)]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        order = type(message).__mro__
        return min(fitting, key=lambda one: _distance(one.message, order))


def _distance(annotation: object, order: tuple[type, ...]) -> int:
    classes = [
        typing.get_origin(member) or member for member in alternatives(annotation)
    ]
    return min(
        (order.index(cast("type", cls)) for cls in classes if cls in order),
        default=len(order),
    )


def _read_handler(
    owner: Executor,
    call: Callable[..., Any],
    written: Callable[..., Any],
    workflow: str,
) -> Handler:
    name = getattr(written, "__qualname__", repr(written))

    def refuse(problem: str) -> DefinitionError:
        return DefinitionError(
            workflow,
            f"executor {owner.id!r}: {problem}",
            f"Write {name}(message: T, ctx: WorkflowContext[S, W]) with annotations "
            f"that exist at module level",
        )

    target = written if inspect.isroutine(written) else type(written).__call__
    try:
        hints = typing.get_type_hints(target)
        parameters = _positional(inspect.signature(call))
    except (NameError, TypeError, ValueError) as exc:
        raise refuse(f"the annotations of {name} cannot be read ({exc})") from exc
    if len(parameters) != 2:
        raise refuse(f"{name} takes {len(parameters)} arguments instead of two")
    if parameters[0] not in hints:
        raise refuse(f"the message of {name} has no type annotation")
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise refuse(f"{name} contains a yield, so calling it does nothing")
    context = hints.get(parameters[1], WorkflowContext)
    if (typing.get_origin(context) or context) is not WorkflowContext:
        raise refuse(f"the second argument of {name} is not a WorkflowContext")
    return Handler(
        call,
        hints[parameters[0]],
        _sent_types(context),
        inspect.iscoroutinefunction(call)
        or inspect.iscoroutinefunction(getattr(call, "__call__", None)),  # noqa: B004
    )


def _positional(signature: inspect.Signature) -> list[str]:
    """Return the arguments that a call by position fills.

    Raises:
        TypeError: Some other argument must be given too.
    """
    every = signature.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for one in every:
        if one.kind is inspect.Parameter.KEYWORD_ONLY and one.default is one.empty:
            raise TypeError(f"{one.name!r} can only be passed by keyword")
    return [one.name for one in every if one.kind in kinds]


def _sent_types(context: object) -> tuple[Any, ...] | None:
    arguments = typing.get_args(context)
    if not arguments or arguments[0] is Any:
        return None
    return tuple(
        member for member in alternatives(arguments[0]) if member not in NOTHING
    )
