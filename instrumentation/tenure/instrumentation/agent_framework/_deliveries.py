"""Messages and events: which run sends them, and which run gets them."""

from collections.abc import Iterable
from typing import Any

from tenure.instrumentation._harmless import harmless
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import ambient, anybody_fenced
from tenure.instrumentation.agent_framework._calls import (
    Arguments,
    Call,
    Foreign,
    Keywords,
    argument,
)
from tenure.instrumentation.agent_framework._leftovers import buffered
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._staging import tell_safely
from tenure.instrumentation.operations import DeliveryKind, LateKind


class DeliveryWraps:
    """What is wrapped to learn where messages and events come from.

    Args:
        registry: What is known of the engine's objects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def send_message(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell a message that a run sends too late."""
        if anybody_fenced():
            message = argument(args, kwargs, 0, "message")
            self._sent_late(context, message, LateKind.SEND)
        return wrapped(*args, **kwargs)

    def add_event(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell an output that a run emits too late, and note its other events."""
        if anybody_fenced():
            event = argument(args, kwargs, 0, "event")
            output = getattr(event, "type", None) in _engine.OUTPUT_EVENTS
            self._sent_late(context, event, LateKind.OUTPUT if output else None)
        return wrapped(*args, **kwargs)

    def send_to_fan_in(
        self, wrapped: Call, fan_in: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Note a message that a run had sent in time and delivers too late."""
        if anybody_fenced():
            message, state = args[:2] if len(args) > 1 else (None, None)
            self._buffered_late(
                kwargs.get("state", state), kwargs.get("message", message)
            )
        return wrapped(*args, **kwargs)

    def is_ready_to_send(
        self, wrapped: Call, fan_in: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell the messages of other epochs that a full fan-in buffer delivers."""
        ready = wrapped(*args, **kwargs)
        if ready and self._registry.origins:
            self._fanned_in(fan_in)
        return ready

    @harmless
    def _sent_late(
        self, context: Foreign, thing: Foreign, late: LateKind | None
    ) -> None:
        instance = self._registry.by_context.get(context)
        who = None if instance is None else ambient(instance)
        if instance is None or who is None or not who.tenure.fenced:
            return
        tenure, owner = who.tenure, instance.owner
        self._registry.origins.put(thing, tenure)
        if late is None:
            return
        executor = None if who.execution is None else who.execution.executor
        tell_safely(
            tenure,
            lambda: tenure.recorder.late(
                owner, late, ledger=owner.epoch, shared=True, executor=executor
            ),
        )

    @harmless
    def _buffered_late(self, state: Foreign, message: Foreign) -> None:
        instance = self._registry.by_state.get(state)
        who = None if instance is None else ambient(instance)
        if who is not None and who.tenure.fenced:
            self._registry.origins.put(message, who.tenure)

    @harmless
    def _fanned_in(self, fan_in: Foreign) -> None:
        target = next((edge.target_id for edge in _edges(fan_in)), None)
        for message in buffered(fan_in):
            origin = self._registry.origins.get(message)
            who = None if origin is None else ambient(origin.instance)
            if origin is None or who is None or who.tenure is origin:
                continue
            who.tenure.recorder.foreign_delivery(
                who.tenure.instance.owner,
                DeliveryKind.FAN_IN,
                origin.epoch,
                executor=target,
            )


def _edges(fan_in: Foreign) -> Iterable[Any]:
    found: Iterable[Any] = getattr(fan_in, _engine.EDGES, ())
    return found
