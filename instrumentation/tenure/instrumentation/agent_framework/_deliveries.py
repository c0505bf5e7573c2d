"""Messages and events: which run sends them, and which run gets them."""

from collections.abc import Iterable, Mapping
from typing import Any

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import ambient
from tenure.instrumentation.agent_framework._calls import (
    Arguments,
    Call,
    Foreign,
    Keywords,
    argument,
)
from tenure.instrumentation.agent_framework._harmless import harmless
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
        """Note which run sends a message."""
        message = argument(args, kwargs, 0, "message")
        self._sent(context, message, LateKind.SEND)
        return wrapped(*args, **kwargs)

    def add_event(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Note which run emits an event."""
        event = argument(args, kwargs, 0, "event")
        output = getattr(event, "type", None) in _engine.OUTPUT_EVENTS
        self._sent(context, event, LateKind.OUTPUT if output else None)
        return wrapped(*args, **kwargs)

    def is_ready_to_send(
        self, wrapped: Call, fan_in: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell the messages of other epochs that a full fan-in buffer delivers."""
        ready = wrapped(*args, **kwargs)
        if ready:
            self._fanned_in(fan_in)
        return ready

    @harmless
    def _sent(self, context: Foreign, thing: Foreign, late: LateKind | None) -> None:
        instance = self._registry.by_context.get(context)
        who = None if instance is None else ambient(instance)
        if instance is None or who is None:
            return
        tenure = who.tenure
        self._registry.origins.put(thing, tenure)
        if late is None or not tenure.fenced:
            return
        owner = instance.owner
        executor = None if who.execution is None else who.execution.executor
        tell_safely(
            tenure,
            lambda: tenure.recorder.late(
                owner, late, ledger=owner.epoch, executor=executor
            ),
        )

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


def buffered(edge_runner: Foreign) -> list[Any]:
    """Return the messages that wait in the buffer of a fan-in; of others, none."""
    buffers: Mapping[str, Iterable[Any]] = getattr(edge_runner, _engine.BUFFER, {})
    return [message for messages in buffers.values() for message in messages]
