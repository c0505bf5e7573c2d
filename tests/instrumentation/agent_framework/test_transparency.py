"""The instrumentor changes nothing: results, order, turns of the loop, lifetimes."""

import asyncio
import gc
import io
import logging
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from agent_framework import WorkflowBuilder, WorkflowContext
from agent_framework.exceptions import WorkflowException

from tenure.detectors import Detector
from tenure.instrumentation.agent_framework import _frames
from tenure.instrumentation.operations import Operation

from . import stories
from .stories import STORIES, Does, Gates, abandon, one_executor, play, settled, turns

Instrumenting = Callable[..., AbstractContextManager[None]]


@pytest.mark.parametrize("name", STORIES)
async def test_a_story_ends_the_same_with_and_without_the_instrumentor(
    name: str, instrumenting: Instrumenting
) -> None:
    bare = await settled(STORIES[name].play())
    with instrumenting():
        unheard = await settled(STORIES[name].play())
        with Detector(announce=()).listen():
            heard = await settled(STORIES[name].play())
    assert unheard == bare
    assert heard == bare


async def streamed(ticks: list[int]) -> list[tuple[int, str]]:
    """Return each event of a run and the turn of the loop in which it came."""

    async def forward(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("key", message)
        await turns(3)
        await context.yield_output("half")
        await context.send_message(message)

    first, second = Does("x", forward), Does("y", forward)
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, second).build()
    begun = ticks[0]
    return [
        (ticks[0] - begun, f"{event.type}:{event.executor_id}")
        async for event in workflow.run("a", stream=True)
    ]


async def test_every_event_comes_in_the_same_turn_of_the_loop(
    instrumenting: Instrumenting,
) -> None:
    ticks = [0]

    async def tick() -> None:
        while True:
            ticks[0] += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    bare = await streamed(ticks)
    with instrumenting():
        unheard = await streamed(ticks)
        with Detector(announce=()).listen():
            heard = await streamed(ticks)
    ticking.cancel()
    assert unheard == bare
    assert heard == bare
    assert bare[-1][0] > 10


@pytest.fixture(params=["heard", "unheard"])
def anyone(request: pytest.FixtureRequest) -> Iterator[None]:
    """Somebody who listens, or nobody."""
    if request.param == "unheard":
        yield
        return
    with Detector(announce=()).listen():
        yield


@pytest.mark.usefixtures("instrumented", "anyone")
async def test_a_dropped_stream_dies_at_once() -> None:
    gates = Gates()
    workflow = one_executor(gates)
    gc.disable()
    try:
        stream = workflow.run("a", stream=True)
        async for event in stream:
            if event.type == "executor_invoked":
                break
        seen = weakref.ref(stream)
        generator = weakref.ref(stream._iterator._generator)
        del stream, event
        assert seen() is None
        assert generator() is None
    finally:
        gc.enable()
    await turns(40)


@pytest.mark.usefixtures("instrumented", "anyone")
async def test_a_workflow_dies_with_its_last_reference() -> None:
    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        await context.yield_output(message)

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await play(workflow)
    state = weakref.ref(workflow._runner.state)
    context = weakref.ref(workflow._runner_context)
    del workflow
    gc.collect()
    assert (state(), context()) == (None, None)


@pytest.mark.usefixtures("instrumented", "anyone")
async def test_no_frame_stays_bound_when_runs_are_over() -> None:
    before = dict(_frames.bound)
    for story in (stories.lost_write, stories.cycle, stories.chain):
        await settled(story())
    gc.collect()
    await turns(2)
    assert _frames.bound == before


@pytest.mark.usefixtures("instrumented", "anyone")
async def test_the_engine_still_refuses_a_second_run() -> None:
    gates = Gates()
    workflow = one_executor(gates)
    run = asyncio.ensure_future(workflow.run("a"))
    await gates["a staged"].wait()
    with pytest.raises(WorkflowException):
        workflow.run("b")
    gates["a go"].set()
    assert (await run).get_outputs() == ["a"]


@pytest.mark.usefixtures("instrumented")
async def test_a_value_that_cannot_be_copied_is_refused_as_before(
    heard: list[Operation],
) -> None:
    class Uncopyable:
        def __deepcopy__(self, memo: dict[int, object]) -> "Uncopyable":
            raise LookupError("no copies")

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("key", message)
        context.set_state("key", Uncopyable())

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    with pytest.raises(LookupError, match="no copies"):
        await workflow.run("a")
    assert heard


async def test_a_tracer_that_raises_does_not_reach_the_run(
    instrumenting: Instrumenting, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.trace import NoOpTracer, Span, TracerProvider

    class Raises(NoOpTracer):
        def start_span(self, *args: object, **kwargs: object) -> Span:
            raise LookupError("no spans today")

    class Provider(TracerProvider):
        def get_tracer(self, *args: object, **kwargs: object) -> Raises:
            return Raises()

    # pytest keeps log records, they keep tracebacks, these keep the frame that holds
    # the stream, and the engine would not let the second run in.
    monkeypatch.setattr(logging.getLogger("tenure"), "propagate", False)
    logged = io.StringIO()
    handler = logging.StreamHandler(logged)
    logging.getLogger("tenure").addHandler(handler)
    try:
        with instrumenting(tracer_provider=Provider()):
            told = await settled(stories.lost_write())
    finally:
        logging.getLogger("tenure").removeHandler(handler)
    assert (told.outputs, "a_key" in told.state) == (["b"], True)
    assert "no spans today" in logged.getvalue()


@pytest.mark.usefixtures("instrumented")
async def test_runs_that_are_under_way_when_the_instrumentor_leaves_go_on(
    instrumenting: Instrumenting, heard: list[Operation]
) -> None:
    from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

    gates = Gates()
    workflow = one_executor(gates)
    await abandon(workflow)
    AgentFrameworkInstrumentor().uninstrument()
    told = len(heard)
    try:
        successor = asyncio.create_task(play(workflow))
        await gates["b staged"].wait()
        await turns(20)
        gates["b go"].set()
        assert "a_key" in (await successor).state
        late = [operation.run.epoch for operation in heard[told:]]
        assert set(late) <= {1}
    finally:
        AgentFrameworkInstrumentor().instrument()
