"""Executor invocations: what they read and stage, and whose context object they use."""

from collections.abc import Mapping
from contextvars import Token

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext
from opentelemetry.trace.propagation.tracecontext import (
    TraceContextTextMapPropagator,
)

from tenure.instrumentation._harmless import harmless, report_failure
from tenure.instrumentation.agent_framework._acting import (
    Acting,
    Stack,
    ambient,
    enter,
    leave,
    nobody,
)
from tenure.instrumentation.agent_framework._calls import (
    Arguments,
    Call,
    Foreign,
    Keywords,
    argument,
    being_closed,
)
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._tenures import Execution, Tenure
from tenure.instrumentation.operations import DeliveryKind, Owner

_STATE_ARGUMENT = 2
_TRACES_ARGUMENT = 4
_propagator = TraceContextTextMapPropagator()
_NOWHERE = Context()


class ExecutorWraps:
    """What is wrapped to learn what executors do.

    Args:
        registry: What is known of the engine's objects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def execute(
        self, wrapped: Call, executor: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell one executor invocation, with the keys that it reads and stages."""
        if nobody():
            return wrapped(*args, **kwargs)
        return self._execute(wrapped, executor, args, kwargs)

    async def _execute(
        self, wrapped: Call, executor: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        try:
            begun = self._begin(executor, args, kwargs)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()
            begun = None
        if begun is None:
            return await wrapped(*args, **kwargs)
        token = enter(begun.acting)
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            leave(token)
            begun.end(error)
            raise
        leave(token)
        begun.end(None)
        return result

    def create_context(
        self, wrapped: Call, executor: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Bind the context object that an executor gets to the run that acts."""
        context = wrapped(*args, **kwargs)
        if not nobody():
            self._hand(context, kwargs.get("state"))
        return context

    def use_context(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Act for the run that a context object was handed to."""
        token = self._lend(context)
        if token is None:
            return wrapped(*args, **kwargs)
        try:
            return wrapped(*args, **kwargs)
        finally:
            leave(token)

    def use_context_async(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Do the same for a method that is awaited."""
        token = self._lend(context)
        if token is None:
            return wrapped(*args, **kwargs)
        leave(token)
        return self._lent(wrapped, context, args, kwargs)

    async def _lent(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        token = self._lend(context)
        try:
            return await wrapped(*args, **kwargs)
        finally:
            if token is not None:
                leave(token)

    def _begin(
        self, executor: Foreign, args: Arguments, kwargs: Keywords
    ) -> "_Invocation | None":
        instance = self._registry.by_state.get(
            argument(args, kwargs, _STATE_ARGUMENT, "state")
        )
        acting = None if instance is None else ambient(instance)
        if acting is None:
            return None
        tenure = acting.tenure
        if self._registry.origins:
            self._delivered(tenure, executor, argument(args, kwargs, 0, "message"))
        sources: list[SpanContext | None] = []
        if tenure.recorder.recording:
            traces = argument(args, kwargs, _TRACES_ARGUMENT, "trace_contexts")
            sources = [_source(carrier) for carrier in traces or ()]
        name = str(executor.id)
        span = tenure.recorder.executor_started(name, tenure.superstep, sources)
        return _Invocation(Acting(tenure, Execution(name)), span)

    def _delivered(self, tenure: Tenure, executor: Foreign, message: Foreign) -> None:
        """Tell a message of another epoch that reaches an executor."""
        origin = self._registry.origins.get(message)
        if origin is None or origin is tenure:
            return
        if origin.instance is tenure.instance:
            tenure.recorder.foreign_delivery(
                tenure.instance.owner,
                DeliveryKind.MESSAGE,
                origin.epoch,
                executor=str(executor.id),
            )

    def _hand(self, context: Foreign, state: Foreign) -> None:
        try:
            instance = self._registry.by_state.get(state)
            acting = None if instance is None else ambient(instance)
            if acting is not None:
                self._registry.handed.put(context, acting)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            report_failure()

    @harmless
    def _lend(self, context: Foreign) -> Token[Stack] | None:
        handed = self._registry.handed.get(context)
        if handed is None:
            return None
        around = ambient(handed.tenure.instance)
        # A worker task that an earlier run started may serve this one, and a context
        # object may be kept for later: the newer of the two is never an accusation.
        # But a coroutine that is being closed runs in the context of whoever closes it.
        newer = around is not None and around.tenure.epoch >= handed.tenure.epoch
        if newer and not being_closed():
            return None
        return enter(handed)


class _Invocation:
    """An executor invocation that is running.

    Args:
        acting: The run that acts, and what it reads and stages.
        span: Its span, where executors are told.
    """

    __slots__ = ("acting", "index", "span")

    def __init__(self, acting: Acting, span: Span | None) -> None:
        self.acting = acting
        self.index = acting.tenure.superstep
        self.span = span

    @harmless
    def end(self, error: BaseException | None) -> None:
        """Tell the invocation; later, where the collector is what ends it."""
        tenure = self.acting.tenure
        if isinstance(error, GeneratorExit):
            owner = tenure.instance.owner
            tenure.defer(lambda: self._tell(owner, error))
        else:
            self._tell(tenure.instance.owner, error)

    def _tell(self, owner: Owner, error: BaseException | None) -> None:
        tenure, execution = self.acting
        if execution is not None:
            tenure.recorder.executor_ended(
                owner,
                self.span,
                execution.executor,
                self.index,
                reads=tuple(execution.reads),
                writes=execution.writes,
                error=error,
            )


def _source(carrier: Mapping[str, str]) -> SpanContext | None:
    """Return the span that sent a message, from what the engine sent along with it."""
    context = _propagator.extract(carrier, _NOWHERE)
    found = trace.get_current_span(context).get_span_context()
    return found if found.is_valid else None
