"""Checkpoints: what they hold, all of it or nothing, and nobody else's.

Workflows of one test share nothing but the store, as if each were another process's.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from tenure.runtime import (
    Checkpoint,
    Executor,
    ExecutorError,
    MemoryStore,
    RunStarted,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from tenure.runtime.testing import turns

NAME = "press/default"


class Diary(Executor):
    """Keeps a diary in the state and one of its own, and changes both in place."""

    def __init__(self) -> None:
        super().__init__("diary")
        self.pages: list[list[str]] = []

    @handler
    async def write(
        self, day: str, ctx: WorkflowContext[dict[str, list[str]], str]
    ) -> None:
        history = ctx.get_state("history", [])
        history.append([day])
        ctx.set_state("history", history)
        history[0].append("scribbled afterwards")
        self.pages.append([day])
        await ctx.send_message({"day": [day]})

    def on_checkpoint_save(self) -> list[list[str]]:
        return self.pages

    def on_checkpoint_restore(self, snapshot: list[list[str]]) -> None:
        self.pages = snapshot


@executor
async def read(page: dict[str, list[str]], ctx: WorkflowContext[None, str]) -> None:
    page["day"].append("read")


def diary(store: Store) -> Workflow:
    writer = Diary()
    builder = WorkflowBuilder("press", start=writer, store=store)
    return builder.add_edge(writer, read).build()


def scribble(value: Any) -> None:
    """Change everything in there that can be changed."""
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, list | dict | tuple):
            scribble(item)
    if isinstance(value, list):
        value.append("scribbled")
    elif isinstance(value, dict):
        value["scribbled"] = True


async def test_a_checkpoint_shares_nothing_with_the_live_state_or_with_its_readers(
    store: Store,
) -> None:
    """microsoft/agent-framework#7683: checkpoints changed after they had been taken.

    A resumed run that read a list, appended to it and wrote it back changed the
    checkpoint that it had come from; so did whoever changed what a storage had returned
    (microsoft/agent-framework#7847).

    Right: what is kept shares nothing with anybody.
    """
    workflow = diary(store)
    await workflow.run("monday")
    [_, middle, _] = await workflow.history()

    async def kept() -> tuple[Any, ...]:
        checkpoint, state = await store.load(NAME, middle.checkpoint_id)
        standing = checkpoint.standing
        return state, checkpoint.writes, list(standing.messages), standing.snapshots

    before = await kept()
    assert before[0] == before[1] == {"history": [["monday"]]}
    [(reader, message, _)] = before[2]
    assert (reader, message) == ("read", {"day": ["monday"]})
    assert before[3] == {"diary": [["monday"]]}
    live = dict(workflow.state)
    for found in await kept():
        scribble(found)
    scribble(dict(workflow.state))
    assert await kept() == before
    assert dict(workflow.state) == live == {"history": [["monday"]]}

    other = diary(store)
    await other.run(checkpoint_id=middle.checkpoint_id)
    await other.run("tuesday")
    assert dict(other.state) == {"history": [["monday"], ["tuesday"]]}
    assert await kept() == before


class Prepared(Executor):
    """Gives a snapshot of its run; the second one's preparation may go wrong."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.run = ""
        self.mood = ""
        self.preparing = asyncio.Event()

    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state(self.id, message)
        self.run = message

    async def on_checkpoint_save(self) -> dict[str, str]:
        if self.run == "a" and self.mood:
            self.preparing.set()
            if self.mood == "raises":
                raise RuntimeError("no snapshot")
            await asyncio.Event().wait()
        return {"run": self.run}


@pytest.mark.parametrize("ending", ["raises", "is cancelled", "is abandoned"])
async def test_a_checkpoint_whose_preparation_fails_leaves_no_half_of_it(
    store: Store, ending: str
) -> None:
    """microsoft/agent-framework#8306: half a checkpoint was committed by the next run.

    One executor had given its snapshot, the next one raised or never came back. The run
    ended as if nothing had been, and what was prepared stayed staged.

    Right: snapshots, checkpoint and superstep are there together, or not at all.
    """
    first, second = Prepared("first"), Prepared("second")

    @executor
    async def start(message: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(message)

    workflow = (
        WorkflowBuilder("press", start=start, store=store)
        .add_fan_out(start, [first, second])
        .build()
    )
    await workflow.run("z")
    before = await workflow.history()
    second.mood = ending
    if ending == "raises":
        with pytest.raises(ExecutorError, match=r"'second'.*no snapshot"):
            await workflow.run("a")
    elif ending == "is cancelled":
        running = asyncio.create_task(workflow.run("a"))
        await second.preparing.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    else:
        stream = workflow.stream("a")
        await anext(stream)
        await second.preparing.wait()
        await stream.aclose()
    assert dict(workflow.state) == {"first": "z", "second": "z"}
    # The entry and the first superstep were committed; the second was not.
    new = (await workflow.history())[: -len(before)]
    assert [one.kind for one in new] == ["superstep", "entry"]

    second.mood = ""
    await workflow.run("b")
    assert dict(workflow.state) == {"first": "b", "second": "b"}
    checkpoint, state = await store.load(NAME)
    assert checkpoint.standing.snapshots == {
        "first": {"run": "b"},
        "second": {"run": "b"},
    }
    assert state == {"first": "b", "second": "b"}


class SlowEntry(MemoryStore):
    """Keeps the first checkpoint of a run only when it is let.

    Attributes:
        asked: Set when it has been asked to keep one.
        gate: Lets it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = asyncio.Event(), asyncio.Event()

    def commit(
        self, instance: str, checkpoint: Checkpoint, *rest: Any, **how: Any
    ) -> Awaitable[None]:
        async def keep() -> None:
            if checkpoint.kind == "entry":
                self.asked.set()
                await self.gate.wait()
            await commit(instance, checkpoint, *rest, **how)

        commit = super().commit
        return keep()


async def test_a_run_says_that_it_has_started_once_its_input_is_kept() -> None:
    """langchain-ai/langgraph#8764: a run that had been accepted left no trace at all.

    Its process died before the first checkpoint, after its caller had been told that it
    was running.

    Right: there is a moment from which the run cannot get lost, and it is told:
    `RunStarted` comes when the input is in the store.
    """
    store = SlowEntry()
    workflow = diary(store)
    run_id = workflow.start("monday")
    accepted = asyncio.create_task(anext(workflow.attach(run_id)))
    await store.asked.wait()
    await turns(20)
    assert not accepted.done()
    store.gate.set()
    assert isinstance(await accepted, RunStarted)
    # Whatever becomes of this process now, another one can go on.
    [*_, entry] = await diary(store).history()
    assert (entry.kind, entry.run_id) == ("entry", run_id)
    await workflow.attach(run_id).result()
