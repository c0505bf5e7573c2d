"""Finds the handler of an executor for a message or an answer."""

import typing
from typing import Any, Final, cast

from tenure.runtime._executor import Executor
from tenure.runtime._guarded import is_guarded
from tenure.runtime._handlers import Handler, ResponseHandler
from tenure.runtime._types import (
    accepts,
    alternatives,
    describe,
    elements_of,
    is_plain,
)
from tenure.runtime.errors import DefinitionError


class Dispatch:
    """Finds the handlers of an executor.

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
        "executor",
        "executor_id",
        "guarded",
        "handlers",
        "listed_by_class",
        "responders",
    )

    def __init__(self, owner: Executor, workflow: str) -> None:
        self.executor: Final = owner
        self.guarded: Final = is_guarded(owner)
        self.executor_id: Final = owner.id
        self.handlers: Final = owner.read_handlers(workflow)
        if not self.handlers:
            raise DefinitionError(
                workflow,
                f"executor {owner.id!r} has no handler",
                "Mark a method `async def …(self, message: T, ctx: "
                "WorkflowContext[S, W])` with @handler",
            )
        self.responders: Final = owner.read_responders(workflow)
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

    def find_responder(self, data: object, response: object) -> ResponseHandler | None:
        """Return the handler of an answer whose types are nearest; `None` if none.

        Of two it is the one whose type is nearer to the question, then to the answer.

        Args:
            data: What was asked.
            response: The answer.
        """
        fitting = [
            one for one in self.responders_to(data) if accepts(one.response, response)
        ]
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        asked, answered = type(data).__mro__, type(response).__mro__
        return min(
            fitting,
            key=lambda one: (
                _distance(one.request, asked),
                _distance(one.response, answered),
            ),
        )

    def responders_to(self, data: object) -> tuple[ResponseHandler, ...]:
        """Return the handlers of answers to `data`."""
        return tuple(one for one in self.responders if accepts(one.request, data))

    def response_types(self, data: object) -> tuple[Any, ...]:
        """Return what answers to `data` its handlers take."""
        return tuple(one.response for one in self.responders_to(data))

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
