"""Playing a run, leaving one, and saying what was left."""

import asyncio
import gc
from collections.abc import Awaitable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from agent_framework import (
    Workflow,
)

DISCARDS = tuple(map(int, version("agent-framework-core").split(".")[:2])) >= (1, 22)
"""Whether the installed engine discards what an uncommitted superstep has staged."""


@dataclass
class Told:
    """What a story leaves.

    Attributes:
        state: Committed user state.
        outputs: What the last run output.
        status: Final status of the last run; empty where it raised.
        events: Types and executors of the last run's events, in order.
        notes: Whatever else the story saw, such as what an executor received.
        checkpoints: The `_executor_state` of each checkpoint of the last run, in order.
    """

    state: dict[str, Any]
    outputs: list[Any] = field(default_factory=list)
    status: str = ""
    events: list[str] = field(default_factory=list)
    notes: list[Any] = field(default_factory=list)
    checkpoints: list[dict[str, Any]] = field(default_factory=list)


async def turns(count: int) -> None:
    """Let the loop turn `count` times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def forever() -> None:
    """Wait for what never comes."""
    await asyncio.Event().wait()


def committed(workflow: Workflow) -> dict[str, Any]:
    """Return the committed user state of a workflow."""
    state = workflow._runner.state.export_state()
    return {key: value for key, value in state.items() if not key.startswith("_")}


async def abandon(
    workflow: Workflow, at: str = "executor_invoked", by: str | None = None, **how: Any
) -> None:
    """Start run `a`, leave its stream at the first event `at`, and drop it."""
    stream = workflow.run("a", stream=True, **how)
    async for event in stream:
        if event.type == at and by in {None, event.executor_id}:
            break
    del stream, event
    gc.collect()


async def play(workflow: Workflow, message: str = "b", **how: Any) -> Told:
    """Play a run to its end and say what it left."""
    result = await workflow.run(message, **how)
    return tell(workflow, result)


def tell(workflow: Workflow, result: Any) -> Told:
    """Say what a run left."""
    return Told(
        committed(workflow),
        result.get_outputs(),
        result.get_final_state().value,
        [f"{event.type}:{event.executor_id or ''}" for event in result],
    )


async def settled(story: Awaitable[Told]) -> Told:
    """Await a story, and the cleanup of whatever it has left behind."""
    told = await story
    await turns(80)
    return told
