"""The engine's generators, each step of them taken on behalf of their run.

Proxies, not generators: an asynchronous generator around another would be closed by
the event loop separately, at another time. Dropping a proxy drops the generator in it,
whose own hook then closes it exactly as without a proxy.
"""

import weakref
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from typing import Any, Final

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import enter, leave
from tenure.instrumentation.agent_framework._calls import (
    Foreign,
)
from tenure.instrumentation.agent_framework._harmless import harmless
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
    """A generator of the engine, whose steps are watched.

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

    @abstractmethod
    async def _take(self, step: Awaitable[Any]) -> Foreign:
        """Take one step."""

    @property
    def _exhausted(self) -> bool:
        """Whether the generator has run to its end, cleanup included."""
        return getattr(self._generator, "ag_frame", None) is None


class RunSteps(Steps):
    """What a stream of the engine iterates: its end is the end of the run.

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

    async def _take(self, step: Awaitable[Any]) -> Foreign:
        tenure = self._tenure
        if not tenure.started:
            tenure.started = True
            tenure.loop.find()
        tenure.driving = True
        try:
            return await step
        except BaseException as error:
            self._stopped(error)
            raise
        finally:
            tenure.driving = False

    @harmless
    def _stopped(self, error: BaseException) -> None:
        if self._exhausted and not isinstance(error, GeneratorExit):
            finish_with(self._tenure, error)

    @harmless
    def _closed(self) -> None:
        if self._exhausted:
            self._tenure.finish(Outcome.CANCELLED)


class LoopSteps(Steps):
    """What drives the supersteps, for either kind of driver: its steps act for the run.

    Args:
        generator: The engine's generator.
        tenure: The run.
        registry: Where events come from.
    """

    __slots__ = ("_registry",)

    def __init__(self, generator: Foreign, tenure: Tenure, registry: Registry) -> None:
        super().__init__(generator, tenure)
        self._registry: Final = registry

    async def aclose(self) -> None:
        """Close the generator on behalf of its run."""
        token = enter(self._tenure)
        try:
            await self._generator.aclose()
        finally:
            leave(token)
            self._closed()

    async def _take(self, step: Awaitable[Any]) -> Foreign:
        # The context variable is set around this one step and never across a `yield`.
        token = enter(self._tenure)
        try:
            event = await step
        finally:
            leave(token)
        self._surfaced(event)
        return event

    @harmless
    def _surfaced(self, event: Foreign) -> None:
        tenure = self._tenure
        if event.type == _engine.STATUS_EVENT:
            tenure.terminal = _TERMINAL.get(str(getattr(event.state, "value", "")))
            return
        origin = self._registry.origins.get(event)
        if origin is None or origin is tenure or origin.instance is not tenure.instance:
            return
        output = event.type in _engine.OUTPUT_EVENTS
        tenure.recorder.foreign_delivery(
            tenure.instance.owner,
            DeliveryKind.OUTPUT if output else DeliveryKind.EVENT,
            origin.epoch,
            executor=getattr(event, "executor_id", None),
        )

    @harmless
    def _closed(self) -> None:
        tenure = self._tenure
        if tenure.driving or tenure.ended:
            return
        # Nobody drives the run: the loop closes what its consumer has left.
        if self._exhausted:
            tenure.finish(Outcome.ABANDONED)
        else:
            # The collector had the loop close the inner generators too, and one of them
            # is still at it: its discard will be the end of the run.
            tenure.orphaned = True


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
