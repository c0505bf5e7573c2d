"""Sub-workflows in checkpoints: they are a part of their parent's, all of it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import (
    CheckpointError,
    Executor,
    ExecutorError,
    Outcome,
    ResponseTypeError,
    SqliteStore,
    StateTypeError,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    register_state_type,
    response_handler,
)


@pytest.fixture
def store(durable: Store) -> Store:
    return durable


@register_state_type
@dataclasses.dataclass(frozen=True)
class Verdict:
    good: bool


class Reviewer(Executor):
    """Asks about each draft, and counts the drafts it has seen."""

    def __init__(self, keys: list[str], fails: bool = False) -> None:
        super().__init__("reviewer")
        self.seen = 0
        self.keys = keys
        self.fails = fails

    @handler
    async def review(self, draft: str, ctx: WorkflowContext[None, str]) -> None:
        self.keys.append(ctx.idempotency_key)
        self.seen += 1
        ctx.set_state("draft", draft)
        await ctx.request_info({"draft": draft}, Verdict)

    @response_handler
    async def decide(
        self,
        request: dict[str, Any],
        response: Verdict,
        ctx: WorkflowContext[None, str],
    ) -> None:
        self.keys.append(ctx.idempotency_key)
        if self.fails:
            raise RuntimeError("not now")
        ctx.set_state("verdict", response)
        await ctx.yield_output(f"{request['draft']} {response.good} {self.seen}")

    def on_checkpoint_save(self) -> Any:
        return self.seen

    def on_checkpoint_restore(self, snapshot: Any) -> None:
        self.seen = snapshot


def drawn(
    store: Store, keys: list[str] | None = None, fails: bool = False, depth: int = 1
) -> Workflow:
    keys = [] if keys is None else keys
    inner = WorkflowBuilder("inner", start=Reviewer(keys, fails)).build()
    for level in range(1, depth):
        inner = WorkflowBuilder(
            f"middle {level}", start=WorkflowExecutor(inner)
        ).build()

    @executor
    async def publish(text: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("published", text)
        await ctx.yield_output(text)

    review = WorkflowExecutor(inner, id="review")
    builder = WorkflowBuilder("outer", start=review, store=store)
    return builder.add_edge(review, publish).build()


@pytest.mark.parametrize("depth", [1, 3])
async def test_a_request_of_a_subworkflow_is_answered_in_another_process(
    store: Store, depth: int
) -> None:
    result = await drawn(store, depth=depth).run("spring")
    assert result.outcome is Outcome.PENDING_REQUESTS
    [request] = result.pending_requests
    assert request.response_type is Verdict
    other = drawn(store, depth=depth)
    await other.refresh()
    assert other.pending_requests == (request,)
    with pytest.raises(ResponseTypeError):
        await other.run(responses={request.request_id: "perhaps"})
    result = await other.run(responses={request.request_id: {"good": True}})
    assert result.outputs == ("spring True 1",)
    assert result.outcome is Outcome.COMPLETED
    assert dict(await drawn(store, depth=depth).refresh()) == dict(other.state)


@pytest.mark.parametrize("depth", [1, 2])
async def test_work_in_a_subworkflow_has_one_key_wherever_it_is_done_again(
    store: Store, depth: int
) -> None:
    keys: list[str] = []
    [request] = (await drawn(store, keys, depth=depth).run("spring")).pending_requests
    with pytest.raises(ExecutorError):
        await drawn(store, keys, fails=True, depth=depth).run(
            responses={request.request_id: Verdict(good=True)}
        )
    await drawn(store, keys, depth=depth).resume()
    first, second, third = keys
    assert second == third != first


async def test_what_executors_of_a_subworkflow_keep_is_saved_with_their_parent(
    store: Store,
) -> None:
    await drawn(store).run("one")
    await drawn(store).run("two")
    requests = (await drawn(store).run("three")).pending_requests
    answers = {one.request_id: Verdict(good=False) for one in requests}
    result = await drawn(store).run(responses=answers)
    assert set(result.outputs) == {
        f"{name} False 3" for name in ("one", "two", "three")
    }


class Odd:
    """Of a type that no checkpoint can hold."""


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_value_that_cannot_be_kept_fails_the_executor_deep_inside_that_made_it(
    tmp_path: Path, depth: int
) -> None:
    @executor
    async def maker(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("odd", Odd())

    inner = WorkflowBuilder("inner", start=maker).build()
    for level in range(1, depth):
        inner = WorkflowBuilder(f"level {level}", start=WorkflowExecutor(inner)).build()
    async with SqliteStore(tmp_path) as store:
        sub = WorkflowExecutor(inner)
        workflow = WorkflowBuilder("outer", start=sub, store=store).build()
        with pytest.raises(ExecutorError, match="state key 'odd'") as caught:
            await workflow.run("x")
        assert dict(workflow.state) == {}
    innermost: BaseException | None = caught.value
    for _ in range(depth):
        assert innermost is not None
        innermost = innermost.__cause__
    assert isinstance(innermost, ExecutorError)
    assert innermost.executor == "maker"
    assert isinstance(innermost.__cause__, StateTypeError)


async def test_messages_inside_a_subworkflow_may_be_of_any_type(tmp_path: Path) -> None:
    @executor
    async def first(message: str, ctx: WorkflowContext[Odd, None]) -> None:
        await ctx.send_message(Odd())

    @executor
    async def second(message: Odd, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output("done")

    child = WorkflowBuilder("child", start=first).add_edge(first, second).build()
    async with SqliteStore(tmp_path) as store:
        outer = WorkflowBuilder("o", start=WorkflowExecutor(child), store=store).build()
        assert (await outer.run("x")).outputs == ("done",)


async def test_a_subworkflow_without_the_one_who_asked_still_runs(store: Store) -> None:
    [request] = (await drawn(store).run("spring")).pending_requests

    @executor
    async def another(draft: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(draft)

    inner = WorkflowBuilder("inner", start=another).build()
    review = WorkflowExecutor(inner, id="review")
    changed = WorkflowBuilder("outer", start=review, store=store).build()
    result = await changed.run("summer")
    assert result.outputs == ("summer",)
    assert [one.request_id for one in result.pending_requests] == [request.request_id]
    with pytest.raises(CheckpointError, match="cancel_requests"):
        await changed.run(responses={request.request_id: Verdict(good=True)})
    await changed.cancel_requests([request.request_id])
    assert (await changed.run("autumn")).outcome is Outcome.COMPLETED
