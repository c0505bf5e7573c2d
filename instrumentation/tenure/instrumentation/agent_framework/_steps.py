"""The engine's generators, each step of them taken on behalf of their run.

Proxies, not generators: an asynchronous generator around another would be closed by
the event loop separately, at another time. Dropping a proxy drops the generator in it,
whose own hook then closes it exactly as without a proxy.

A run has an outer generator, which its stream iterates, and in it an inner one, which
drives the supersteps. A step of the outer is a step of the inner, so that only one of
them is watched: the outer, or the inner where a driver has no outer.
"""

import sys
import weakref
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from typing import Any, Final

from tenure.instrumentation._harmless import harmless, report_failure
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import Acting, enter, leave
from tenure.instrumentation.agent_framework._calls import Foreign
from tenure.instrumentation.agent_framework._loops import Cancelled
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._tenures import Tenure
from tenure.instrumentation.operations import DeliveryKind, Outcome, Trigger

_TERMINAL: Final = {
    _engine.IDLE: Outcome.COMPLETED,
    _engine.IDLE_WITH_PENDING_REQUESTS: Outcome.PENDING_REQUESTS,
    _engine.FAILED: Outcome.FAILED,
}


class Steps(AsyncGenerator[Any, Any]):
    """A generator of the engine, whose end is watched.

    Args:
        generator: The engine's generator.
        tenure: The run that it belongs to.
    """

    __slots__ = ("__weakref__", "_generator", "_tenure")

    def __init__(self, generator: Foreign, tenure: Tenure) -> None:
        self._generator: Final = generator
        self._tenure: Final = tenure

    def __getattr__(self, name: str) -> Foreign:
        return getattr(self._generator, name)

    def __anext__(self) -> Coroutine[Any, Any, Any]:
        return self._take(self._generator.__anext__())

    def asend(self, value: Foreign) -> Coroutine[Any, Any, Any]:
        """Send `value` into the generator."""
        return self._take(self._generator.asend(value))

    def athrow(self, *args: Foreign) -> Coroutine[Any, Any, Any]:
        """Raise an error inside the generator."""
        return self._take(self._generator.athrow(*args))

    @abstractmethod
    async def aclose(self) -> None:
        """Close the generator."""

    def _take(self, step: Coroutine[Any, Any, Any]) -> Coroutine[Any, Any, Any]:
        """Return what takes one step: the step itself, where nobody watches it."""
        return step

    @property
    def _exhausted(self) -> bool:
        """Whether the generator has run to its end, cleanup included."""
        return getattr(self._generator, "ag_frame", None) is None


class Stream(Steps):
    """What a stream of the engine iterates: when it goes, its consumer has left.

    Args:
        generator: The engine's generator.
        tenure: The run.
    """

    __slots__ = ()

    def __init__(self, generator: Foreign, tenure: Tenure) -> None:
        super().__init__(generator, tenure)
        weakref.finalize(self, _consumer_left, tenure).atexit = False

    def __del__(self) -> None:
        # CPython runs this before the weak references are cleared when the last
        # reference goes, and after that when the collector found a cycle.
        self._tenure.refcounted = True

    async def aclose(self) -> None:
        """Close the generator for the consumer."""
        tenure = self._tenure
        tenure.driving = tenure.closing = True
        try:
            await self._generator.aclose()
        finally:
            tenure.driving = tenure.closing = False
            self._closed()

    @harmless
    def _closed(self) -> None:
        if self._exhausted:
            self._tenure.finish(Outcome.CANCELLED)


class WatchedStream(Stream):
    """The same, of a run that is heard: its steps act for it, and its last ends it.

    Args:
        generator: The engine's generator.
        tenure: The run.
        registry: Where events come from.
    """

    __slots__ = ("_acting", "_registry")

    def __init__(self, generator: Foreign, tenure: Tenure, registry: Registry) -> None:
        super().__init__(generator, tenure)
        self._registry: Final = registry
        self._acting: Final = Acting(tenure, None)

    async def _take(self, step: Awaitable[Any]) -> Foreign:
        tenure = self._tenure
        if not tenure.started:
            tenure.started = True
            tenure.loop.find()
        tenure.driving = True
        # The context variable is set around this one step and never across a `yield`.
        token = enter(self._acting)
        try:
            event = await step
        except BaseException as error:
            leave(token)
            self._stopped(error)
            tenure.driving = False
            raise
        leave(token)
        tenure.driving = False
        surfaced(tenure, self._registry, event)
        return event

    @harmless
    def _stopped(self, error: BaseException) -> None:
        if self._exhausted and not isinstance(error, GeneratorExit):
            finish_with(self._tenure, error)


class Loop(Steps):
    """What drives the supersteps inside a stream.

    Args:
        generator: The engine's generator.
        tenure: The run.
    """

    __slots__ = ()

    async def aclose(self) -> None:
        """Close the generator on behalf of its run; the engine does at every end."""
        over = self._exhausted
        token = enter(Acting(self._tenure, None))
        try:
            await self._generator.aclose()
        finally:
            leave(token)
            self._closed(over=over)

    @harmless
    def _closed(self, *, over: bool) -> None:
        tenure = self._tenure
        if tenure.driving or tenure.ended:
            return
        if over and not tenure.heard:
            # It has run to its end, and nobody has watched the steps.
            finish_with(tenure, sys.exc_info()[1] or StopAsyncIteration())
        elif self._exhausted:
            # Nobody drives the run: the event loop closes what its consumer has left.
            tenure.finish(Outcome.ABANDONED)
        else:
            # The collector had the loop close the inner generators too, and one of them
            # is still at it: its discard will be the end of the run.
            tenure.orphaned = True


class WatchedLoop(Loop):
    """What drives the supersteps for a driver that has no stream: its steps are told.

    Args:
        generator: The engine's generator.
        tenure: The run.
        registry: Where events come from.
    """

    __slots__ = ("_acting", "_registry")

    def __init__(self, generator: Foreign, tenure: Tenure, registry: Registry) -> None:
        super().__init__(generator, tenure)
        self._registry: Final = registry
        self._acting: Final = Acting(tenure, None)

    async def _take(self, step: Awaitable[Any]) -> Foreign:
        token = enter(self._acting)
        try:
            event = await step
        finally:
            leave(token)
        surfaced(self._tenure, self._registry, event)
        return event


def surfaced(tenure: Tenure, registry: Registry, event: Foreign) -> None:
    """Look at an event of the engine before its consumer does.

    Args:
        tenure: The run whose consumer gets it.
        registry: Where events come from.
        event: The event.
    """
    try:
        if event.type == _engine.STATUS_EVENT:
            state = str(getattr(event.state, "value", ""))
            tenure.terminal = _TERMINAL.get(state)
        elif registry.origins:
            _tell_foreign(tenure, registry, event)
    except Exception:  # noqa: BLE001 - telemetry must never raise into a run
        report_failure()


def _tell_foreign(tenure: Tenure, registry: Registry, event: Foreign) -> None:
    origin = registry.origins.get(event)
    if origin is None or origin is tenure or origin.instance is not tenure.instance:
        return
    output = event.type in _engine.OUTPUT_EVENTS
    tenure.recorder.foreign_delivery(
        tenure.instance.owner,
        DeliveryKind.OUTPUT if output else DeliveryKind.EVENT,
        origin.epoch,
        executor=getattr(event, "executor_id", None),
    )


def finish_with(tenure: Tenure, error: BaseException) -> None:
    """Tell the end of a run from what ended its last step.

    Args:
        tenure: The run.
        error: What was raised.
    """
    if isinstance(error, StopAsyncIteration):
        tenure.finish(tenure.terminal or Outcome.COMPLETED)
    elif isinstance(error, Cancelled):
        tenure.finish(Outcome.CANCELLED)
    else:
        tenure.finish(Outcome.FAILED, error)


def _consumer_left(tenure: Tenure) -> None:
    """Note that nobody can drive the run any more.

    This runs inside a finalizer, of any thread: nothing may be told here.
    """
    if tenure.ended:
        return
    tenure.dropped = Trigger.REFCOUNT if tenure.refcounted else Trigger.GC
    if not tenure.started:
        tenure.loop.call_soon(tenure.abandoned)
