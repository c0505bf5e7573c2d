"""What handlers take, send and answer, read from their annotations. Pure."""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tenure.runtime._context import WorkflowContext
from tenure.runtime._types import NOTHING, alternatives
from tenure.runtime.errors import DefinitionError


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


@dataclass(frozen=True, slots=True)
class ResponseHandler:
    """One way in which an executor takes the answer to a request of its own.

    Attributes:
        call: The bound method.
        request: Annotation of the request's data.
        response: Annotation of the answer.
        is_async: Whether it is awaited; else it runs in a worker thread.
    """

    call: Callable[[Any, Any, Any], Any]
    request: Any
    response: Any
    is_async: bool


class Written(NamedTuple):
    """A handler as its author wrote it.

    Attributes:
        owner: The executor.
        call: As it is called.
        source: As it was written.
        workflow: Name of the workflow, for errors.
    """

    owner: str
    call: Callable[..., Any]
    source: Callable[..., Any]
    workflow: str

    @property
    def name(self) -> str:
        """Its name, for errors."""
        return str(getattr(self.source, "__qualname__", repr(self.source)))

    def refuse(self, problem: str, form: str) -> DefinitionError:
        """Return the error that says what is wrong and how it should be written."""
        return DefinitionError(
            self.workflow,
            f"executor {self.owner!r}: {problem}",
            f"Write {self.name}({form}) with annotations that exist at module level",
        )


def read_handler(written: Written) -> Handler:
    """Read a handler of messages.

    Raises:
        DefinitionError: It cannot be understood.
    """
    form = "message: T, ctx: WorkflowContext[S, W]"
    annotations, context = _read(written, ("message",), form)
    return Handler(
        written.call, annotations[0], _sent_types(context), _is_async(written.call)
    )


def read_response_handler(written: Written) -> ResponseHandler:
    """Read a handler of answers.

    Raises:
        DefinitionError: It cannot be understood.
    """
    form = "request: Q, response: A, ctx: WorkflowContext[S, W]"
    annotations, _ = _read(written, ("request", "response"), form)
    request, response = annotations
    return ResponseHandler(written.call, request, response, _is_async(written.call))


def _read(
    written: Written, roles: tuple[str, ...], form: str
) -> tuple[list[Any], object]:
    """Return the annotations of what a handler takes, and that of its context."""
    source, name = written.source, written.name
    target = source if inspect.isroutine(source) else type(source).__call__
    try:
        hints = typing.get_type_hints(target)
        parameters = _positional(inspect.signature(written.call))
    except (NameError, TypeError, ValueError) as exc:
        problem = f"the annotations of {name} cannot be read ({exc})"
        raise written.refuse(problem, form) from exc
    wanted = len(roles) + 1
    if len(parameters) != wanted:
        count = {2: "two", 3: "three"}[wanted]
        problem = f"{name} takes {len(parameters)} arguments instead of {count}"
        raise written.refuse(problem, form)
    for role, parameter in zip(roles, parameters, strict=False):
        if parameter not in hints:
            problem = f"the {role} of {name} has no type annotation"
            raise written.refuse(problem, form)
    if inspect.isgeneratorfunction(written.call) or inspect.isasyncgenfunction(
        written.call
    ):
        problem = f"{name} contains a yield, so calling it does nothing"
        raise written.refuse(problem, form)
    context = hints.get(parameters[-1], WorkflowContext)
    if (typing.get_origin(context) or context) is not WorkflowContext:
        place = {2: "second", 3: "third"}[wanted]
        problem = f"the {place} argument of {name} is not a WorkflowContext"
        raise written.refuse(problem, form)
    return [hints[parameter] for parameter in parameters[:-1]], context


def _is_async(call: Callable[..., Any]) -> bool:
    inner = getattr(call, "__call__", None)  # noqa: B004 - an object may be the function
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(inner)


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
