"""What a run is given, checked in the call that starts it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from tenure.runtime._beginning import (
    Beginning,
    FreshMessage,
    Responses,
    Resumption,
)
from tenure.runtime._holding import Holding
from tenure.runtime._isolation import isolate
from tenure.runtime._keeper import Keeper
from tenure.runtime._requests import answers_to
from tenure.runtime.errors import CheckpointError, IsolationError, MessageTypeError


class _Nothing:
    """What stands for a message that was not passed."""


NOTHING: Final = _Nothing()


def keeper_of(holding: Holding, what: str) -> Keeper:
    """Return who keeps an instance in a store.

    Args:
        holding: The instance.
        what: What needs a store, for the error.

    Raises:
        CheckpointError: The workflow has no store.
    """
    if holding.keeper is None:
        raise CheckpointError(
            f"{what} needs a store",
            "pass WorkflowBuilder(store=SqliteStore(directory)) or MemoryStore()",
        )
    return holding.keeper


def beginning_of(
    holding: Holding,
    message: Any,  # noqa: ANN401 - a message is any value
    responses: Mapping[str, Any] | None,
    checkpoint_id: str | None,
) -> Beginning:
    """Return what a run begins with: a message, or answers, a checkpoint or both.

    Args:
        holding: The instance.
        message: A message, or `NOTHING`.
        responses: Answers by request id.
        checkpoint_id: A checkpoint.

    Raises:
        TypeError: None was given, or a message with another one.
        WorkflowError: It cannot be taken.
    """
    others = responses is not None or checkpoint_id is not None
    if others is (message is not NOTHING):
        raise TypeError(
            "pass a message, or instead of it responses, checkpoint_id or both of them"
        )
    if checkpoint_id is not None:
        keeper_of(holding, "checkpoint_id")
        return Resumption(checkpoint_id, None if responses is None else dict(responses))
    if responses is not None:
        if holding.keeper is None:
            answers_to(responses, holding.requests, holding.graph.shared)
        return Responses(dict(responses))
    return FreshMessage(_input(holding, message))


def _input(holding: Holding, message: Any) -> Any:  # noqa: ANN401 - any value
    """Check that the start executor takes a run's input; isolate it from others."""
    graph = holding.graph
    dispatch = graph.executors[graph.start].dispatch
    if dispatch.find(message) is None:
        takes = f"{graph.start!r} takes {dispatch.takes()}"
        raise MessageTypeError("", type(message).__qualname__, (takes,))
    if holding.keeper is not None:
        holding.keeper.store.check(message, "input of a run")
    # What cannot be copied changes hands, as between two executors.
    with suppress(IsolationError):
        return isolate(message, "input")
    return message
