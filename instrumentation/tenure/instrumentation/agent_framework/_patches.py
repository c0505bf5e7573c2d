"""The wrap points of the engine: put in place together, taken away together."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple

import wrapt

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._calls import Call, Foreign
from tenure.instrumentation.agent_framework._checkpoints import CheckpointWraps
from tenure.instrumentation.agent_framework._deliveries import DeliveryWraps
from tenure.instrumentation.agent_framework._executions import ExecutorWraps
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._runs import RunWraps
from tenure.instrumentation.agent_framework._staging import StateWraps


class WrapPoint(NamedTuple):
    """One method of the engine and what is put around it.

    Attributes:
        place: Module and class.
        method: Name of the method.
        wrapper: What is put around it.
    """

    place: tuple[str, str]
    method: str
    wrapper: Call

    @property
    def name(self) -> str:
        """The name that the engine's users know it by."""
        return f"{self.place[1]}.{self.method}"

    def find(self) -> Foreign:
        """Return the class that defines the method, or `None`."""
        try:
            owner = getattr(import_module(self.place[0]), self.place[1], None)
        except ImportError:
            return None
        return owner if owner is not None and self.method in vars(owner) else None


def wrap_points(registry: Registry) -> tuple[WrapPoint, ...]:
    """Return every wrap point of the engine.

    Args:
        registry: What the wrappers tell.
    """
    runs, state = RunWraps(registry), StateWraps(registry)
    executors, deliveries = ExecutorWraps(registry), DeliveryWraps(registry)
    checkpoints = CheckpointWraps(registry)
    wrapped: dict[tuple[str, str], dict[str, Call]] = {
        _engine.WORKFLOW: {
            "_run_core": runs.run_core,
            "_run_workflow_with_tracing": runs.run_workflow,
            "cancel_pending_requests": runs.cancel_pending_requests,
        },
        _engine.RUNNER: {
            "run_until_convergence": runs.run_until_convergence,
            "_run_iteration": runs.run_iteration,
            "_set_executor_state": checkpoints.set_executor_state,
            "_mark_resumed": checkpoints.mark_resumed,
        },
        _engine.STATE: {
            "set": state.stage,
            "delete": state.stage,
            "get": state.read,
            "has": state.read,
            "commit": state.commit,
            "discard": state.discard,
            "clear": state.clear,
        },
        _engine.EXECUTOR: {
            "execute": executors.execute,
            "_create_context_for_handler": executors.create_context,
        },
        _engine.CONTEXT: {
            "get_state": executors.use_context,
            "set_state": executors.use_context,
            "send_message": executors.use_context_async,
            "yield_output": executors.use_context_async,
        },
        _engine.RUNNER_CONTEXT: {
            "send_message": deliveries.send_message,
            "add_event": deliveries.add_event,
            "create_checkpoint": checkpoints.create_checkpoint,
        },
        _engine.FAN_IN: {
            "send_message": deliveries.send_to_fan_in,
            "_is_ready_to_send": deliveries.is_ready_to_send,
        },
    }
    return tuple(
        WrapPoint(place, method, wrapper)
        for place, methods in wrapped.items()
        for method, wrapper in methods.items()
    )


class Patches:
    """Calls that are in place.

    Not safe to put or take away from two threads at once.
    """

    def __init__(self) -> None:
        self._placed: Final[list[tuple[type, str, Any, Any]]] = []

    def place(self, points: Iterable[WrapPoint]) -> None:
        """Put a wrapper around every method that is there.

        Args:
            points: What to wrap; those that are not found are left out.
        """
        for point in points:
            owner: type | None = point.find()
            if owner is None:
                continue
            methods = vars(owner)
            original = methods[point.method]
            wrapper: Any = wrapt.FunctionWrapper(original, point.wrapper)
            setattr(owner, point.method, wrapper)
            self._placed.append((owner, point.method, original, wrapper))

    def remove(self) -> None:
        """Take every wrapper away, save those that somebody has wrapped in turn."""
        while self._placed:
            owner, method, original, wrapper = self._placed.pop()
            methods = vars(owner)
            # What others put on top of it stays: below it, ours passes calls through.
            if methods.get(method) is wrapper:
                setattr(owner, method, original)
