"""Claims and releases: the two drivers of the engine, and the loop that both run."""

from collections.abc import Callable

from opentelemetry import trace

from tenure.instrumentation._harmless import harmless
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import (
    Acting,
    acting,
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
)
from tenure.instrumentation.agent_framework._leftovers import mark_leftovers
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._steps import (
    Loop,
    Stream,
    WatchedLoop,
    WatchedStream,
    finish_with,
)
from tenure.instrumentation.agent_framework._tenures import Instance, Tenure


class RunWraps:
    """What is wrapped to learn who owns an instance.

    Args:
        registry: What is known of the engine's objects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def run_core(
        self, wrapped: Call, workflow: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Claim in the call that creates the run, before anything is awaited."""
        generator = wrapped(*args, **kwargs)
        continues = argument(args, kwargs, 0, "message") is None
        return self._claimed(workflow, generator, continues=continues) or generator

    async def cancel_pending_requests(
        self, wrapped: Call, workflow: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Claim for the second driver, which the engine does not guard."""
        tenure = self._claim_unguarded(workflow)
        if tenure is None:
            return await wrapped(*args, **kwargs)
        token = enter(Acting(tenure, None))
        try:
            result = await wrapped(*args, **kwargs)
        except BaseException as error:
            leave(token)
            self._cancelling_stopped(tenure, error)
            raise
        leave(token)
        self._cancelling_stopped(tenure, StopAsyncIteration())
        return result

    def run_workflow(
        self, wrapped: Call, workflow: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Bind the generator that both drivers drive to the run that drives it."""
        generator = wrapped(*args, **kwargs)
        return self._bound(workflow, generator) or generator

    def run_until_convergence(
        self, wrapped: Call, runner: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Bind the superstep loop to its run: it may be closed on its own."""
        generator = wrapped(*args, **kwargs)
        self._bind_loop(runner, generator)
        return generator

    def run_iteration(
        self, wrapped: Call, runner: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell that a superstep starts."""
        if not nobody():
            self._superstep_starts(runner)
        return wrapped(*args, **kwargs)

    @harmless
    def _claimed(
        self, workflow: Foreign, generator: Foreign, *, continues: bool
    ) -> Stream | None:
        if not self._registry.active:
            return None
        instance = self._registry.instance_of(workflow)
        self._look_back(instance, workflow, continues=continues)
        tenure = instance.claim(guarded=True, free=True)
        tenure.bind_frame(generator)
        if tenure.heard:
            return WatchedStream(generator, tenure, self._registry)
        return Stream(generator, tenure)

    @harmless
    def _claim_unguarded(self, workflow: Foreign) -> Tenure | None:
        if not self._registry.active:
            return None
        guard: Callable[[], bool] = getattr(workflow, _engine.GUARD, lambda: True)
        free = not guard()
        instance = self._registry.instance_of(workflow)
        self._look_back(instance, workflow, continues=True)
        tenure = instance.claim(guarded=False, free=free)
        tenure.started = tenure.driving = True
        return tenure

    def _look_back(
        self, instance: Instance, workflow: Foreign, *, continues: bool
    ) -> None:
        """Note what is there of earlier runs, before the next one claims."""
        instance.catch_up(getattr(workflow, _engine.RUNNER_OF_WORKFLOW).state)
        mark_leftovers(self._registry, instance, workflow, continues=continues)

    @harmless
    def _cancelling_stopped(self, tenure: Tenure, error: BaseException) -> None:
        tenure.driving = False
        # The collector may be the one who closes this coroutine: nothing is told there.
        if isinstance(error, GeneratorExit):
            tenure.defer(lambda: finish_with(tenure, error))
        else:
            finish_with(tenure, error)

    @harmless
    def _bound(self, workflow: Foreign, generator: Foreign) -> Loop | None:
        state = getattr(workflow, _engine.RUNNER_OF_WORKFLOW).state
        instance = self._registry.by_state.get(state)
        who = None if instance is None else acting(instance)
        if who is None:
            return None
        tenure = who.tenure
        tenure.started = True
        tenure.bind_frame(generator)
        if tenure.guarded:
            return Loop(generator, tenure)
        return WatchedLoop(generator, tenure, self._registry)

    @harmless
    def _bind_loop(self, runner: Foreign, generator: Foreign) -> None:
        instance = self._registry.by_state.get(runner.state)
        who = None if instance is None else acting(instance)
        if who is not None:
            who.tenure.bind_frame(generator)

    @harmless
    def _superstep_starts(self, runner: Foreign) -> None:
        instance = self._registry.by_state.get(runner.state)
        who = None if instance is None else ambient(instance)
        if instance is None or who is None:
            return
        tenure = who.tenure
        _link_to_engine(tenure)
        tenure.end_superstep()
        index: int = getattr(runner, _engine.ITERATION, 0) + 1
        tenure.superstep = index
        tenure.recorder.superstep_started(instance.owner, index)


def _link_to_engine(tenure: Tenure) -> None:
    """Link the `run` span to the engine's own, which is the current one by now."""
    if tenure.linked or not tenure.recorder.recording:
        return
    tenure.linked = True
    engine_span = trace.get_current_span().get_span_context()
    run_span = trace.get_current_span(tenure.recorder.context)
    if engine_span.is_valid and engine_span != run_span.get_span_context():
        run_span.add_link(engine_span)
