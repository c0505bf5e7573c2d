"""Restores: what comes back, once and whole, and what it follows.

Workflows of one test share nothing but the store, as if each were another process's.
"""

from collections.abc import Awaitable
from typing import Any

import pytest

from tenure.runtime import (
    CheckpointError,
    Claimed,
    Executor,
    ExecutorError,
    Held,
    MemoryStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)


class DiedError(Exception):
    """Stands for the end of a process in the middle of a superstep."""


class Relay(Executor):
    """Sends on what it is given, with its name; dies at its first message if told to.

    Attributes:
        given: What it was given, in order.
    """

    def __init__(self, name: str, *, dies: bool = False) -> None:
        super().__init__(name)
        self.dies = dies
        self.given: list[str] = []

    @handler
    async def relay(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        self.given.append(message)
        if self.dies:
            self.dies = False
            raise DiedError
        if ctx.leads_on:
            await ctx.send_message(f"{message}.{self.id}")
        else:
            await ctx.yield_output(f"{message}.{self.id}")


@executor
async def join(messages: list[str], ctx: WorkflowContext[None, list[str]]) -> None:
    await ctx.yield_output(messages)


def relays(dying: str | None, *names: str) -> list[Relay]:
    return [Relay(name, dies=name == dying) for name in names]


def forked(store: Store, dying: str | None = None) -> tuple[Workflow, list[Relay]]:
    """Draw start → {left, right}, joined."""
    made = start, left, right = relays(dying, "start", "left", "right")
    workflow = (
        WorkflowBuilder("press", start=start, store=store)
        .add_fan_out(start, [left, right])
        .add_fan_in([left, right], join)
        .build()
    )
    return workflow, list(made)


def uneven(store: Store, dying: str | None = None) -> tuple[Workflow, list[Relay]]:
    """Draw start → {early, late → later}; early and later are joined."""
    made = start, early, late, later = relays(dying, "start", "early", "late", "later")
    workflow = (
        WorkflowBuilder("press", start=start, store=store)
        .add_fan_out(start, [early, late])
        .add_edge(late, later)
        .add_fan_in([early, later], join)
        .build()
    )
    return workflow, list(made)


def chained(store: Store, dying: str | None = None) -> tuple[Workflow, list[Relay]]:
    """Draw one → two → three."""
    made = relays(dying, "one", "two", "three")
    builder = WorkflowBuilder("press", start=made[0], store=store)
    return builder.add_chain(made).build(), made


async def dies(workflow: Workflow) -> None:
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("a")
    assert isinstance(caught.value.__cause__, DiedError)


@pytest.mark.parametrize("from_where", ["newest", "entry"])
@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another"])
async def test_a_fan_in_gets_each_message_once_when_its_sources_run_again(
    store: Store, anew: bool, from_where: str
) -> None:
    """microsoft/agent-framework#7371: a fan-in was complete too early after a restore.

    The process died in the middle of a superstep, when one source had sent already. The
    restore left that message in the buffer, and all sources ran again.

    Right: what a superstep sent that did not commit is gone, wherever it waited.
    """
    workflow, [_, left, _] = forked(store, dying="right")
    await dies(workflow)
    assert left.given == ["a.start"]
    history = await workflow.history()
    if anew:
        workflow, [_, left, _] = forked(store)
    handle = (
        workflow.resume()
        if from_where == "newest"
        else workflow.run(checkpoint_id=history[-1].checkpoint_id)
    )
    expected = ["a.start.left", "a.start.right"]
    assert (await handle).outputs == (expected,)
    assert left.given[-1] == "a.start"
    # Nothing is left over for the next run either.
    assert (await workflow.run("b")).outputs == (["b.start.left", "b.start.right"],)


@pytest.mark.parametrize("anew", [False, True], ids=["same process", "another"])
async def test_a_message_that_waits_in_a_fan_in_is_in_the_checkpoint(
    store: Store, anew: bool
) -> None:
    """microsoft/agent-framework#7948: a restored fan-in waited for ever.

    Its sources sent in different supersteps. The message of the first was in no
    checkpoint between the two, since it had been delivered: to the fan-in's buffer.

    Right: what waits in a fan-in is saved, and the source need not run again.
    """
    workflow, [_, early, *_] = uneven(store, dying="later")
    await dies(workflow)
    assert early.given == ["a.start"]
    if anew:
        workflow, [_, early, *_] = uneven(store)
    result = await workflow.resume()
    assert result.outputs == (["a.start.early", "a.start.late.later"],)
    assert early.given == ([] if anew else ["a.start"])


async def test_the_first_checkpoint_after_a_resume_follows_the_one_resumed_from(
    store: Store,
) -> None:
    """microsoft/agent-framework#4588: a resume broke the line of checkpoints.

    The first new checkpoint had no parent, so nobody could tell what it went on from.

    Right: it follows the restored one, however often that is gone back to.
    """
    workflow, _ = chained(store, dying="two")
    await dies(workflow)
    restored = (await workflow.history())[0].checkpoint_id

    other, _ = chained(store)
    assert (await other.resume()).outputs == ("a.one.two.three",)
    line = list(reversed(await other.history()))
    assert [one.parent_id for one in line] == [
        None,
        *(one.checkpoint_id for one in line[:-1]),
    ]
    for _ in range(2):
        again, _ = chained(store)
        result = await again.run(checkpoint_id=restored)
        assert result.outputs == ("a.one.two.three",)
        [first, *_] = [
            one
            for one in reversed(await again.history())
            if one.run_id == result.run_id
        ]
        assert first.parent_id == restored


async def test_the_entry_checkpoint_brings_the_raw_input_back(store: Store) -> None:
    """microsoft/agent-framework#7374: no checkpoint could bring the first input back.

    The earliest one was taken after the start executor, and held what that had sent.

    Right: the input is saved as it came, before any executor runs, and goes to the
    start executor again.
    """
    workflow, [start, *_] = chained(store, dying="one")
    await dies(workflow)
    [entry] = await workflow.history()
    assert (entry.kind, entry.superstep, start.given) == ("entry", 0, ["a"])
    for _ in range(2):
        other, [start, *_] = chained(store)
        result = await other.run(checkpoint_id=entry.checkpoint_id)
        assert start.given == ["a"]
        assert result.outputs == ("a.one.two.three",)


class Asking(Executor):
    """Asks, and dies when it is answered, if it is told to."""

    def __init__(self, *, dies: bool = False) -> None:
        super().__init__("asking")
        self.dies = dies

    @handler
    async def ask(self, question: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(question, str)

    @response_handler
    async def answered(
        self, question: str, answer: str, ctx: WorkflowContext[None, str]
    ) -> None:
        if self.dies:
            raise DiedError
        await ctx.yield_output(f"{question} {answer}")


async def test_an_answer_is_in_a_checkpoint_before_anybody_handles_it(
    store: Store,
) -> None:
    """microsoft/agent-framework#7374: an answer was handled without being recorded.

    So the superstep that took it in could not be played again.

    Right: answers are saved like an input; resuming hands them over again.
    """
    workflow = WorkflowBuilder("press", start=Asking(dies=True), store=store).build()
    [request] = (await workflow.run("who?")).pending_requests
    with pytest.raises(ExecutorError):
        await workflow.run(responses={request.request_id: "me"})
    [newest, *_] = await workflow.history()
    assert newest.kind == "responses"
    other = WorkflowBuilder("press", start=Asking(), store=store).build()
    assert (await other.resume()).outputs == ("who? me",)


class Shaky(MemoryStore):
    """Is out of reach the next time that it is asked a question of that kind."""

    fails_at = ""

    def _shake(self, kind: str) -> None:
        if kind == self.fails_at:
            self.fails_at = ""
            raise CheckpointError("the store", "out of reach")

    def claim(self, *arguments: Any, **how: Any) -> Awaitable[Claimed | Held]:
        self._shake("claim")
        return super().claim(*arguments, **how)

    def load(self, *arguments: Any, **how: Any) -> Any:
        self._shake("load")
        return super().load(*arguments, **how)

    def commit(self, *arguments: Any, **how: Any) -> Awaitable[None]:
        self._shake("commit")
        return super().commit(*arguments, **how)


@pytest.mark.parametrize("fails_at", ["claim", "load", "commit"])
async def test_a_recovery_that_the_store_fails_in_can_be_tried_again(
    fails_at: str,
) -> None:
    """dbos-inc/dbos-transact-py#716: a recovery that failed once was never made up for.

    The database was away for a moment, just when another process took over what a dead
    one had left. The error was swallowed, and the work was never picked up again.

    Right: the error reaches the caller, and what was left undone can be gone on with.
    """
    store = Shaky()
    workflow, _ = chained(store, dying="two")
    await dies(workflow)
    other, _ = chained(store)
    store.fails_at = fails_at
    with pytest.raises(CheckpointError, match="out of reach"):
        await other.resume()
    assert not other.instance("default").busy
    for process in (other, chained(store)[0]):
        result = await process.resume()
        assert result.outputs == (("a.one.two.three",) if process is other else ())
