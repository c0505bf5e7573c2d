"""What earlier runs have left in an engine that keeps messages and events between runs.

What a run sends while it owns the instance is its own, and noted nowhere. What is
still there when the next run claims comes from an earlier one, and is marked then.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._calls import Foreign
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._tenures import Instance
from tenure.instrumentation.operations import Outcome


def mark_leftovers(
    registry: Registry, instance: Instance, workflow: Foreign, *, continues: bool
) -> None:
    """Mark what earlier runs of an instance have left, before the next one claims it.

    Args:
        registry: Where the marks go.
        instance: The instance.
        workflow: The engine's object for it.
        continues: Whether the next run goes on with what one left that stopped to wait
            for a human: that one's leftovers are then its own.
    """
    last = instance.newest
    # The end of a run that nobody heard is not known well enough to blame it.
    if last is None or not last.heard:
        return
    origins = registry.origins
    for thing in _left_behind(workflow):
        origin = origins.get(thing) or last
        if continues and origin.terminal is Outcome.PENDING_REQUESTS:
            origins.drop(thing)
        else:
            origins.put(thing, origin)


def waiting_messages(runner: Foreign) -> Iterator[Any]:
    """Yield the messages that wait for the next superstep, or in a fan-in.

    Args:
        runner: What drives the supersteps of an instance.
    """
    context = getattr(runner, _engine.CONTEXT_OF_RUNNER, None)
    waiting: Mapping[str, Iterable[Any]] = getattr(context, _engine.MESSAGES, {})
    for messages in waiting.values():
        yield from messages
    for edge_runner in getattr(runner, _engine.EDGE_RUNNERS, ()):
        yield from buffered(edge_runner)


def buffered(edge_runner: Foreign) -> list[Any]:
    """Return the messages that wait in the buffer of a fan-in; of others, none.

    Args:
        edge_runner: What delivers the messages of an edge.
    """
    buffers: Mapping[str, Iterable[Any]] = getattr(edge_runner, _engine.BUFFER, {})
    return [message for messages in buffers.values() for message in messages]


def _left_behind(workflow: Foreign) -> list[Any]:
    context = getattr(workflow, _engine.CONTEXT_OF_WORKFLOW, None)
    queue = getattr(context, _engine.EVENTS, None)
    events: Iterable[Any] = getattr(queue, _engine.QUEUED, ())
    runner = getattr(workflow, _engine.RUNNER_OF_WORKFLOW)
    return [*waiting_messages(runner), *events]
