"""Random graphs, failures and abandonments: every run is all or nothing.

After every run the committed state is the one that some whole number of its supersteps
produced, on top of the state that it began with; and the detector finds no violation.
"""

import asyncio
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.detectors import Detector, Severity, Verdict
from tenure.runtime import (
    Executor,
    OwnershipLostError,
    RunError,
    RunStream,
    StateKey,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    append,
    handler,
)
from tenure.runtime.testing import turns

LOG = StateKey("log", reduce=append)
LAYERS = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@dataclass(frozen=True)
class Plan:
    """What one run does, and how its consumer leaves."""

    name: str
    failing: tuple[int, int] | None
    waits: int
    cleanup: int
    stubborn: bool
    ending: str
    leave_after: int
    policy: str


@dataclass
class Trail:
    """What a run stages, superstep by superstep: the truth that commits are held to."""

    steps: dict[int, set[str]] = field(default_factory=dict)


def plans() -> st.SearchStrategy[Plan]:
    return st.builds(
        Plan,
        name=st.uuids().map(lambda one: one.hex[:8]),
        failing=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 2)),
        waits=st.integers(0, 4),
        cleanup=st.integers(0, 12),
        stubborn=st.booleans(),
        ending=st.sampled_from(["await", "cancel", "drop", "close", "keep"]),
        leave_after=st.integers(1, 25),
        policy=st.sampled_from(["supersede", "wait"]),
    )


class Worker(Executor):
    """Stages one key of its own and one that its siblings stage too."""

    def __init__(self, layer: int, place: int, trails: dict[str, Trail]) -> None:
        super().__init__(f"w{layer}.{place}")
        self.layer = layer
        self.place = place
        self.trails = trails

    @handler
    async def work(self, plan: Plan, ctx: WorkflowContext[Plan, str]) -> None:
        key = f"{plan.name}/{ctx.superstep}/{self.id}"
        self.trails[plan.name].steps.setdefault(ctx.superstep, set()).add(key)
        ctx.set_state(key, plan.name)
        ctx.set_state(LOG, [key])
        try:
            await turns(plan.waits)
        except asyncio.CancelledError:
            if not plan.stubborn:
                raise
        finally:
            if plan.cleanup:
                await turns(plan.cleanup)
            ctx.set_state(key, plan.name)
        if plan.failing == (self.layer, self.place):
            raise RuntimeError("planned")
        if not self.last:
            await ctx.send_message(plan)

    last = False


def draw(layers: list[int], trails: dict[str, Trail]) -> Workflow:
    """Draw layers of workers, each fully connected to the next."""
    rows = [
        [Worker(layer, place, trails) for place in range(width)]
        for layer, width in enumerate([1, *layers])
    ]
    for worker in rows[-1]:
        worker.last = True
    builder = WorkflowBuilder("random", start=rows[0][0], max_supersteps=10)
    for row, below in pairwise(rows):
        for worker in row:
            builder.add_fan_out(worker, below)
    return builder.build()


async def perform(workflow: Workflow, plan: Plan, kept: list[RunStream]) -> None:
    """Start a run and end it, or leave it, as planned."""
    policy: Any = plan.policy
    if plan.ending in {"await", "cancel"}:
        task = asyncio.create_task(workflow.run(plan, on_conflict=policy))
        if plan.ending == "cancel":
            await turns(plan.leave_after)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return
    stream = workflow.stream(plan, on_conflict=policy, buffer=200)
    try:
        for _ in range(plan.leave_after):
            await anext(stream)
    except (StopAsyncIteration, RunError, OwnershipLostError):
        pass
    if plan.ending == "close":
        await stream.aclose()
    elif plan.ending == "keep":
        kept.append(stream)
    del stream


def whole_supersteps(state: dict[str, Any], plan: Plan, trail: Trail) -> None:
    """Assert that what is left of a run is a prefix of its supersteps, each whole."""
    written = {key for key in state if key.startswith(f"{plan.name}/")}
    expected: set[str] = set()
    for index in sorted(trail.steps):
        if written == expected:
            break
        expected |= trail.steps[index]
    assert written == expected, f"half a superstep: {sorted(written)}"
    logged = {key for key in state.get("log", []) if key.startswith(f"{plan.name}/")}
    assert logged == written


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(layers=LAYERS, run_plans=st.lists(plans(), min_size=1, max_size=5))
def test_committed_state_is_always_that_of_a_whole_number_of_supersteps(
    layers: list[int], run_plans: list[Plan]
) -> None:
    detector = Detector()
    asyncio.run(_run_all(layers, run_plans, detector))
    assert [
        one for one in detector.findings if one.severity is Severity.VIOLATION
    ] == []
    assert [one for one in detector.findings if one.severity is Severity.WARNING] == []
    assert detector.verdict is Verdict.CLEAN


async def _run_all(
    layers: list[int], run_plans: list[Plan], detector: Detector
) -> None:
    trails = {plan.name: Trail() for plan in run_plans}
    workflow = draw(layers, trails)
    kept: list[RunStream] = []
    with detector.listen():
        for plan in run_plans:
            if plan.policy == "wait":
                kept.clear()
            await perform(workflow, plan, kept)
            state = dict(workflow.state)
            for known in run_plans:
                whole_supersteps(state, known, trails[known.name])
        kept.clear()
        await turns(200)  # of a stubborn run with long clean-up
        settled = dict(workflow.state)
        for known in run_plans:
            whole_supersteps(settled, known, trails[known.name])
        assert not workflow.instance("default").busy
