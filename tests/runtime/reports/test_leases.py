"""Leases: they say whom to be polite to. They never end a run, nor outlive one."""

import asyncio
import sqlite3
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from tenure.instrumentation.operations import Operation, Outcome, Release
from tenure.runtime import (
    CheckpointError,
    MemoryStore,
    OwnershipLostError,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
)
from tenure.runtime.testing import HeldExecutor


def holding(store: Store, held: HeldExecutor) -> Workflow:
    return WorkflowBuilder("press", start=held, store=store).build()


class OutOfReach(MemoryStore):
    """Answers no heartbeat.

    Attributes:
        missed: Set when it has left three of them without an answer.
    """

    def __init__(self, *, lease: float) -> None:
        super().__init__(lease=lease)
        self.asked = 0
        self.missed = asyncio.Event()

    def extend(self, *who: Any, final: bool = False) -> Awaitable[bool]:
        if final:
            return super().extend(*who, final=final)
        self.asked += 1
        if self.asked == 3:
            self.missed.set()
        raise CheckpointError("the store", "out of reach")


async def test_a_renewal_that_fails_again_and_again_ends_no_run() -> None:
    """PrefectHQ/prefect#18893: healthy runs were ended because a renewal had failed.

    The server was out of reach for a moment. The runs were marked as crashed, and their
    processes went on.

    Right: what the store cannot say proves nothing; the run goes on and commits.
    """
    store, held = OutOfReach(lease=0.03), HeldExecutor()
    workflow = holding(store, held)
    running = asyncio.create_task(workflow.run("a"))
    await store.missed.wait()
    assert not held.ended["a"].is_set()
    held.released["a"].set()
    result = await running
    assert (result.outputs, result.outcome) == (("a",), Outcome.COMPLETED)
    assert dict(await holding(store, held).refresh()) == {"a_key": "a"}


async def test_a_lease_that_ran_out_ends_no_run_that_nobody_has_replaced(
    tmp_path: Path,
) -> None:
    """PrefectHQ/prefect#18839: a run was marked as crashed when its lease ran out.

    Nobody had taken its place. It was alive, and its work was thrown away.

    Right: a lease permits others to take over; until one does, the run is the owner.
    """
    async with SqliteStore(tmp_path) as store:
        held = HeldExecutor()
        workflow = holding(store, held)
        running = asyncio.create_task(workflow.run("a"))
        await held.staged["a"].wait()
        # As after a jump of the clock, or a loop that was blocked for long.
        with sqlite3.connect(store.path_of("press/default")) as base:
            base.execute("UPDATE tenure_instance SET until = 0")
        base.close()
        held.released["a"].set()
        result = await running
        assert (result.outputs, result.outcome) == (("a",), Outcome.COMPLETED)
        assert dict(await holding(store, held).refresh()) == {"a_key": "a"}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_run_that_has_lost_its_instance_does_not_go_on_in_the_background(
    kind: str, tmp_path: Path, operations: list[Operation]
) -> None:
    """PrefectHQ/prefect#18839: what had been given up went on running, for ever.

    Right: its heartbeat learns of the successor; its executors are cancelled, and its
    caller is told once they have ended.
    """
    store: Store = (
        MemoryStore(lease=0.15)
        if kind == "memory"
        else SqliteStore(tmp_path, lease=0.15)
    )
    held = HeldExecutor()
    one, other = holding(store, held), holding(store, held)
    first = asyncio.create_task(one.run("a"))
    await held.staged["a"].wait()
    held.released["b"].set()
    await other.run("b", on_conflict="supersede")
    # Nobody releases it: it would wait for ever.
    with pytest.raises(OwnershipLostError, match="another run owns"):
        await first
    assert held.ended["a"].is_set()
    outcomes = {
        one.run.epoch: one.outcome for one in operations if isinstance(one, Release)
    }
    assert outcomes == {1: Outcome.LOST, 2: Outcome.COMPLETED}
    if isinstance(store, SqliteStore):
        await store.aclose()


class SlowAnswers(MemoryStore):
    """Keeps a run's last checkpoint, and answers only when it is let.

    Attributes:
        gate: Lets it.
        beaten: Set when a heartbeat has come after that checkpoint.
    """

    def __init__(self, *, lease: float) -> None:
        super().__init__(lease=lease)
        self.given_back = False
        self.gate, self.beaten = asyncio.Event(), asyncio.Event()

    def commit(self, *what: Any, final: bool = False) -> Awaitable[None]:
        answer = super().commit(*what, final=final)
        self.given_back = final

        async def answered() -> None:
            if final:
                await self.gate.wait()
            await answer

        return answered()

    def extend(self, *who: Any, final: bool = False) -> Awaitable[bool]:
        answer = super().extend(*who, final=final)
        if self.given_back and not final:
            self.beaten.set()
        return answer


async def test_a_heartbeat_that_comes_after_the_last_commit_is_harmless() -> None:
    """PrefectHQ/prefect#18942: completed runs were marked as crashed.

    A renewal was on its way when the run completed and its lease was cleared up
    (PrefectHQ/prefect#19177).

    Right: the run has completed, and the instance is free for others at once.
    """
    store, held = SlowAnswers(lease=0.3), HeldExecutor()
    one, other = holding(store, held), holding(store, HeldExecutor())
    held.released["a"].set()
    running = asyncio.create_task(one.run("a"))
    await store.beaten.wait()
    store.gate.set()
    assert (await running).outcome is Outcome.COMPLETED
    # Another process is polite, and finds nobody to be polite to.
    assert (await other.resume()).epoch == 2
