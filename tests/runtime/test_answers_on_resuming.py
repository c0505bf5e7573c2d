"""Answers that are given together with what else was left undone, or in the past."""

import pytest

from tenure.runtime import (
    CheckpointError,
    CheckpointInfo,
    Executor,
    ResponseTypeError,
    Store,
    UnknownRequestError,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)


@pytest.fixture
def store(durable: Store) -> Store:
    return durable


@executor
async def split(word: str, ctx: WorkflowContext[str, None]) -> None:
    await ctx.send_message(word)


class Asker(Executor):
    @handler
    async def ask(self, word: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(f"print {word}?", bool)

    @response_handler
    async def answered(
        self, question: str, granted: bool, ctx: WorkflowContext[None, str]
    ) -> None:
        ctx.set_state("granted", granted)
        await ctx.yield_output(f"{question} {granted}")


class Printer(Executor):
    """Waits for its machine, which may break down."""

    def __init__(self, works: bool) -> None:
        super().__init__("printer")
        self.works = works

    @handler
    async def warm_up(self, word: str, ctx: WorkflowContext[bytes, None]) -> None:
        await ctx.send_message(word.encode())

    @handler
    async def use(self, page: bytes, ctx: WorkflowContext[bytes, str]) -> None:
        if not self.works:
            raise RuntimeError("no paper")
        ctx.set_state("printed", page)
        await ctx.yield_output("printed")


def press(store: Store, *, works: bool = True) -> Workflow:
    printer = Printer(works)
    return (
        WorkflowBuilder("press", start=split, store=store)
        .add_fan_out(split, [Asker("asker"), printer])
        .add_edge(printer, printer)
        .build()
    )


async def broken_down(store: Store) -> str:
    """Run until a question waits and the printer has failed; return the question."""
    workflow = press(store, works=False)
    with pytest.raises(Exception, match="no paper"):
        await workflow.run("spring")
    [request] = workflow.pending_requests
    return request.request_id


async def test_who_resumes_with_answers_goes_on_with_all_that_was_left_undone(
    store: Store,
) -> None:
    question = await broken_down(store)
    workflow = press(store)
    result = await workflow.resume(responses={question: "true"})
    assert sorted(result.outputs) == ["print spring? True", "printed"]
    assert dict(workflow.state) == {"granted": True, "printed": b"spring"}
    assert workflow.pending_requests == ()


async def test_who_only_answers_goes_on_with_the_answer_alone(store: Store) -> None:
    question = await broken_down(store)
    workflow = press(store)
    result = await workflow.run(responses={question: True})
    assert result.outputs == ("print spring? True",)
    assert dict(workflow.state) == {"granted": True}


async def test_an_answer_may_be_given_at_an_earlier_checkpoint(store: Store) -> None:
    workflow = press(store)
    [request] = (await workflow.run("spring")).pending_requests
    asked = await at_superstep(workflow, 2)
    await workflow.run(responses={request.request_id: False})
    assert workflow.state["granted"] is False

    result = await workflow.run(
        checkpoint_id=asked.checkpoint_id, responses={request.request_id: True}
    )
    assert sorted(result.outputs) == ["print spring? True", "printed"]
    assert dict(workflow.state) == {"granted": True, "printed": b"spring"}
    [gone_back] = [one for one in await workflow.history() if one.kind == "restore"]
    assert gone_back.parent_id == asked.checkpoint_id


async def at_superstep(workflow: Workflow, number: int) -> CheckpointInfo:
    """Return the checkpoint after a superstep of the first run."""
    [found] = [
        one
        for one in await workflow.history()
        if (one.epoch, one.superstep, one.kind) == (1, number, "superstep")
    ]
    return found


async def test_the_answer_is_kept_before_anybody_handles_it(store: Store) -> None:
    question = await broken_down(store)
    with pytest.raises(Exception, match="no paper"):
        await press(store, works=False).resume(responses={question: True})
    checkpoint, _ = await store.load("press/default")
    # The superstep that would have settled it has failed with the printer's.
    assert [one for *_, one in checkpoint.standing.answers] == [True]
    assert checkpoint.kind == "responses"
    result = await press(store).resume()
    assert sorted(result.outputs) == ["print spring? True", "printed"]


async def test_what_was_answered_at_the_checkpoint_is_not_answered_again(
    store: Store,
) -> None:
    question = await broken_down(store)
    with pytest.raises(Exception, match="no paper"):
        await press(store, works=False).resume(responses={question: True})
    with pytest.raises(UnknownRequestError, match=question):
        await press(store).resume(responses={question: False})
    assert (await press(store).resume()).outcome == "completed"


async def test_wrong_answers_leave_everything_as_it_was(store: Store) -> None:
    question = await broken_down(store)
    workflow = press(store)
    before = await workflow.history()
    with pytest.raises(UnknownRequestError, match="nobody"):
        await workflow.resume(responses={"nobody": True})
    with pytest.raises(ResponseTypeError, match="bool"):
        await workflow.resume(responses={question: "perhaps"})
    assert await workflow.history() == before
    assert (await workflow.resume(responses={question: True})).outcome == "completed"


async def test_streams_and_detached_runs_take_both_too(store: Store) -> None:
    question = await broken_down(store)
    newest = (await press(store).history())[0].checkpoint_id
    with pytest.raises(Exception, match="no paper"):
        async with press(store, works=False).stream(
            checkpoint_id=newest, responses={question: True}
        ) as events:
            async for _ in events:
                pass
    workflow = press(store)
    run_id = workflow.start(checkpoint_id=newest, responses={question: False})
    result = await workflow.attach(run_id).result()
    assert sorted(result.outputs) == ["print spring? False", "printed"]


async def test_a_message_goes_with_neither(store: Store) -> None:
    workflow = press(store)
    for others in ({"responses": {}}, {"checkpoint_id": "1.a"}):
        with pytest.raises(TypeError, match="pass a message, or instead of it"):
            await workflow.run("a", **others)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pass a message, or instead of it"):
        await workflow.run()


async def test_without_a_store_there_is_no_checkpoint_to_answer_at() -> None:
    workflow = WorkflowBuilder("press", start=split).build()
    with pytest.raises(CheckpointError, match="needs a store"):
        await workflow.run(checkpoint_id="1.a", responses={"q": True})
