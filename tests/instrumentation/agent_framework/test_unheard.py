"""Runs that nobody could hear when they claimed: left alone, and not forgotten."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
from agent_framework import Workflow, WorkflowBuilder, WorkflowContext
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider

from tenure.detectors import Detector
from tenure.instrumentation.agent_framework import _acting
from tenure.instrumentation.operations import Commit, Discard, Operation, Release

from . import stories
from .conftest import instrumentation
from .stories import Does, Gates, abandon, one_executor, play, turns
from .test_operations import needs_discards, only, owners


async def acts_in_an_executor() -> bool:
    """Say whether a run acts in the context of an executor."""
    found: list[bool] = []

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        found.append(not _acting.nobody())

    await play(WorkflowBuilder(start_executor=Does("one", act)).build())
    return found[0]


@pytest.mark.usefixtures("instrumented")
async def test_a_run_that_nobody_hears_is_not_watched() -> None:
    assert not await acts_in_an_executor()


@pytest.mark.usefixtures("instrumented", "heard")
async def test_a_run_that_a_listener_hears_is_watched() -> None:
    assert await acts_in_an_executor()


@pytest.mark.parametrize(
    ("provider", "watched"), [(NoOpMeterProvider(), False), (SdkMeterProvider(), True)]
)
async def test_a_run_that_is_measured_is_watched(
    provider: MeterProvider, watched: bool
) -> None:
    with instrumentation(meter_provider=provider):
        assert await acts_in_an_executor() is watched


async def test_a_run_that_is_traced_is_watched(traces) -> None:
    with instrumentation(tracer_provider=traces.provider):
        assert await acts_in_an_executor()


@needs_discards
@pytest.mark.usefixtures("instrumented")
async def test_what_an_unheard_run_does_to_one_that_is_heard_is_found() -> None:
    gates = Gates()
    workflow = one_executor(gates)
    await abandon(workflow)
    with Detector(announce=()).listen() as detector:
        successor = asyncio.create_task(play(workflow))
        await gates["b staged"].wait()
        await turns(20)
        gates["b go"].set()
        assert (await successor).state == {"a_key": "a"}
    found = {(one.anomaly, one.culprit_epoch, one.keys) for one in detector.findings}
    assert found == {
        ("leaked-write", 2, ("a_key",)),
        ("stale-discard", 1, ("b_key",)),
    }


@pytest.mark.usefixtures("instrumented")
async def test_keys_of_earlier_heard_runs_are_not_blamed_on_them_later() -> None:
    workflow = one_executor(gates := Gates())
    for message in ("a", "b"):
        gates[f"{message} go"].set()
    with Detector(announce=()).listen():
        await play(workflow)
    # The same key, unheard until its superstep is under way.
    gates["b go"].clear()
    gates["b staged"].clear()
    run = asyncio.create_task(play(workflow))
    await gates["b staged"].wait()
    with Detector(announce=()).listen() as detector:
        gates["b go"].set()
        await run
        await play(workflow)
    assert detector.findings == ()
    assert detector.verdict.value == "inconclusive"


@pytest.mark.usefixtures("instrumented")
async def test_clean_runs_after_an_unheard_one_give_no_finding() -> None:
    workflow = one_executor(gates := Gates())
    gates["a go"].set()
    gates["b go"].set()
    await play(workflow, "a")
    with Detector(announce=()).listen() as detector:
        await play(workflow)
        await play(workflow, "a")
    assert detector.findings == ()


async def end(workflow: Workflow, gates: Gates, ending: str) -> None:
    """Play a run whose executor begins to listen, and end it."""
    if ending == "raises":
        gates["fails"].set()
        with pytest.raises(LookupError):
            await workflow.run("a")
        return
    if ending == "completes":
        gates["go"].set()
        await workflow.run("a")
        return
    if ending == "cancelled":
        run = asyncio.ensure_future(workflow.run("a"))
        await gates["staged"].wait()
        run.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await run
        return
    async with workflow.run("a", stream=True) as stream:
        async for event in stream:
            if event.type == "executor_invoked":
                break
        await gates["staged"].wait()


@pytest.mark.usefixtures("instrumented")
@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        ("completes", "completed"),
        ("raises", "failed"),
        ("cancelled", "cancelled"),
        ("closed", "cancelled"),
    ],
)
async def test_a_listener_that_comes_late_hears_how_the_run_goes_on(
    ending: str, outcome: str, listen: Callable[[Callable[[Operation], object]], None]
) -> None:
    gates, heard = Gates(), list[Operation]()

    async def act(message: str, context: WorkflowContext[str, str]) -> None:
        context.set_state("before", message)
        listen(heard.append)
        context.set_state("after", message)
        gates["staged"].set()
        if gates["fails"].is_set():
            raise LookupError(message)
        await gates["go"].wait()

    workflow = WorkflowBuilder(start_executor=Does("one", act)).build()
    await end(workflow, gates, ending)
    (release,) = only(Release, heard)
    assert (release.outcome.value, owners(release)) == (outcome, (1, 1))
    kind = Commit if ending == "completes" else Discard
    if kind is Commit or stories.DISCARDS:
        (ended,) = only(kind, heard)
        assert ended.writes is not None
        assert ended.writes.pairs == (("before", 1), ("after", 1))
