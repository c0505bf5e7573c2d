"""Requests to the outside: asked, waited for in any process, answered once."""

import asyncio
import dataclasses
import enum
from pathlib import Path
from typing import Any

import pydantic
import pytest

from tenure.runtime import (
    CheckpointMismatchError,
    Executor,
    ExecutorError,
    MessageTypeError,
    Outcome,
    OwnershipLostError,
    PendingRequest,
    RequestRaised,
    ResponseTypeError,
    SqliteStore,
    StateTypeError,
    Store,
    UnknownRequestError,
    Workflow,
    WorkflowBuilder,
    WorkflowBusyError,
    WorkflowContext,
    executor,
    handler,
    register_state_type,
    response_handler,
)


@pytest.fixture
def store(store_if_any: Store | None) -> Store | None:
    return store_if_any


class Colour(enum.Enum):
    RED = "red"


@register_state_type
@dataclasses.dataclass(frozen=True)
class Approval:
    granted: bool
    by: str = "nobody"


register_state_type(Colour, "request colour")


@register_state_type
class Form(pydantic.BaseModel):
    name: str
    age: int = 0


class Asking(Executor):
    """Asks as many questions as it is told to, and notes the answers."""

    def __init__(self, kind: Any = bool, name: str = "asking") -> None:
        super().__init__(name)
        self.kind = kind
        self.fails = False

    @handler
    async def ask(self, questions: list[str], ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("asked", questions)
        for question in questions:
            await ctx.request_info({"question": [question]}, self.kind)

    @response_handler
    async def approved(
        self,
        request: dict[str, Any],
        response: bool | int | Approval | Colour | Form | list[Approval] | None,
        ctx: WorkflowContext[str, str],
    ) -> None:
        [question] = request["question"]
        request["question"].append("changed by the handler")
        ctx.set_state(f"answer {question}", response)
        if self.fails:
            raise RuntimeError("not now")
        await ctx.send_message(question)


@executor
async def finish(question: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(question)


def drawn(store: Store | None, asking: Asking | None = None) -> Workflow:
    asking = asking or Asking()
    builder = WorkflowBuilder("form", start=asking, store=store)
    return builder.add_edge(asking, finish).build()


def ids(requests: tuple[PendingRequest, ...]) -> dict[str, str]:
    return {one.data["question"][0]: one.request_id for one in requests}


async def test_a_run_that_waits_for_answers_says_so_and_commits_its_questions(
    store: Store | None,
) -> None:
    workflow = drawn(store)
    result = await workflow.run(["a", "b"])
    assert result.outcome is Outcome.PENDING_REQUESTS
    assert dict(workflow.state) == {"asked": ["a", "b"]}
    assert workflow.pending_requests == result.pending_requests
    for one in result.pending_requests:
        assert (one.executor_id, one.response_type) == ("asking", bool)
    raised = [one for one in result.events if isinstance(one, RequestRaised)]
    assert [one.request for one in raised] == list(result.pending_requests)
    assert len({one.request_id for one in result.pending_requests}) == 2


async def test_an_answer_goes_to_the_executor_that_asked_with_its_question(
    store: Store | None,
) -> None:
    workflow = drawn(store)
    [request] = (await workflow.run(["a"])).pending_requests
    result = await workflow.run(responses={request.request_id: True})
    assert result.outcome is Outcome.COMPLETED
    assert result.outputs == ("a",)
    assert workflow.state["answer a"] is True
    assert workflow.pending_requests == result.pending_requests == ()


async def test_answers_may_come_in_any_order_and_in_parts(store: Store | None) -> None:
    workflow = drawn(store)
    known = ids((await workflow.run(["a", "b", "c"])).pending_requests)
    result = await workflow.run(responses={known["b"]: False})
    assert result.outcome is Outcome.PENDING_REQUESTS
    assert set(ids(result.pending_requests)) == {"a", "c"}
    result = await workflow.run(responses={known["c"]: True, known["a"]: False})
    assert result.outcome is Outcome.COMPLETED
    assert result.outputs == ("c", "a")
    answers = {key: value for key, value in workflow.state.items() if key != "asked"}
    assert answers == {"answer a": False, "answer b": False, "answer c": True}


async def test_an_id_that_is_unknown_or_answered_is_refused_by_name(
    store: Store | None,
) -> None:
    workflow = drawn(store)
    known = ids((await workflow.run(["a", "b"])).pending_requests)
    await workflow.run(responses={known["a"]: True})
    before = dict(workflow.state)
    for responses in (
        {"nobody": True},
        {known["a"]: True},
        {known["b"]: True, known["a"]: True},
    ):
        with pytest.raises(UnknownRequestError) as caught:
            await workflow.run(responses=responses)
        assert set(caught.value.requests) == set(responses) - {known["b"]}
        assert caught.value.pending == (known["b"],)
    assert dict(workflow.state) == before
    assert ids(workflow.pending_requests) == {"b": known["b"]}


async def test_no_answers_at_all_run_nothing(store: Store | None) -> None:
    workflow = drawn(store)
    await workflow.run(["a"])
    result = await workflow.run(responses={})
    assert (result.outcome, result.supersteps) == (Outcome.PENDING_REQUESTS, 0)


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        (bool, True, True),
        (bool, "true", True),
        (int, "7", 7),
        (Approval, {"granted": "yes", "by": "Ada"}, None),
        (Approval, {"granted": True, "by": "Ada"}, Approval(granted=True, by="Ada")),
        (Approval, Approval(granted=False), Approval(granted=False)),
        (list[Approval], [{"granted": True}], [Approval(granted=True)]),
        (Colour, "red", Colour.RED),
        (Colour, "green", None),
        (Form, {"name": "Ada", "age": "36"}, Form(name="Ada", age=36)),
        (Form, {"age": "x"}, None),
        (bool, "perhaps", None),
        (bool, object(), None),
    ],
)
async def test_plain_data_is_converted_to_what_was_asked_for_or_refused(
    store: Store | None, kind: Any, given: Any, taken: Any
) -> None:
    workflow = drawn(store, Asking(kind))
    [request] = (await workflow.run(["a"])).pending_requests
    if store is not None:
        # Another process finds the type again by its name.
        workflow = drawn(store, Asking(kind))
    if taken is None:
        with pytest.raises(ResponseTypeError) as caught:
            await workflow.run(responses={request.request_id: given})
        assert caught.value.request_id == request.request_id
        assert kind.__name__ in str(caught.value)
        assert len(workflow.pending_requests) == 1
    else:
        await workflow.run(responses={request.request_id: given})
        assert workflow.state["answer a"] == taken
        assert type(workflow.state["answer a"]) is type(taken)


async def test_a_request_whose_answer_fails_waits_on_unchanged(
    store: Store | None,
) -> None:
    asking = Asking()
    workflow = drawn(store, asking)
    [request] = (await workflow.run(["a"])).pending_requests
    asking.fails = True
    with pytest.raises(ExecutorError):
        await workflow.run(responses={request.request_id: True})
    assert workflow.pending_requests == (request,)
    assert request.data == {"question": ["a"]}
    assert "answer a" not in workflow.state
    asking.fails = False
    assert (await workflow.run(responses={request.request_id: True})).outputs == ("a",)


async def test_nobody_outside_can_change_a_question(store: Store | None) -> None:
    workflow = drawn(store)
    result = await workflow.run(["a"])
    [raised] = [one for one in result.events if isinstance(one, RequestRaised)]
    for one in (
        *result.pending_requests,
        *workflow.pending_requests,
        raised.request,
    ):
        one.data["question"].append("changed outside")
    [request] = workflow.pending_requests
    assert request.data == {"question": ["a"]}
    assert (await workflow.run(responses={request.request_id: True})).outputs == ("a",)


async def test_a_withdrawn_request_is_gone_and_the_rest_wait_on(
    store: Store | None,
) -> None:
    workflow = drawn(store)
    known = ids((await workflow.run(["a", "b"])).pending_requests)
    result = await workflow.cancel_requests([known["a"]])
    assert (result.outcome, result.supersteps) == (Outcome.PENDING_REQUESTS, 0)
    assert ids(result.pending_requests) == {"b": known["b"]}
    with pytest.raises(UnknownRequestError):
        await workflow.cancel_requests([known["a"]])
    with pytest.raises(UnknownRequestError):
        await workflow.run(responses={known["a"]: True})
    result = await workflow.cancel_requests([known["b"]])
    assert (result.outcome, workflow.pending_requests) == (Outcome.COMPLETED, ())


async def test_a_fresh_message_leaves_pending_requests_alone(
    store: Store | None,
) -> None:
    workflow = drawn(store)
    first = ids((await workflow.run(["a"])).pending_requests)
    result = await workflow.run(["b"])
    assert set(ids(result.pending_requests)) == {"a", "b"}
    await workflow.run(responses={first["a"]: True})
    assert workflow.state["answer a"] is True


async def test_every_driver_claims(store: Store | None) -> None:
    workflow = drawn(store)
    known = ids((await workflow.run(["a", "b", "c"])).pending_requests)
    assert (await workflow.run(responses={known["a"]: True})).epoch == 2
    assert (await workflow.cancel_requests([known["b"]])).epoch == 3
    first = workflow.run(responses={known["c"]: True})
    for second in (
        lambda: workflow.run(responses={known["c"]: True}),
        lambda: workflow.cancel_requests([known["c"]]),
        lambda: workflow.run(["x"]),
    ):
        with pytest.raises(WorkflowBusyError):
            second()
    assert (await first).outcome is Outcome.COMPLETED


async def test_two_processes_that_answer_at_once_have_one_answer_taken(
    durable: Store,
) -> None:
    [request] = (await drawn(durable).run(["a"])).pending_requests

    async def answer(given: bool) -> Any:
        return await drawn(durable).run(
            responses={request.request_id: given}, on_conflict="supersede"
        )

    both = await asyncio.gather(
        *(answer(given) for given in (True, False) * 5), return_exceptions=True
    )
    taken = [one for one in both if not isinstance(one, Exception)]
    assert len(taken) == 1
    assert {type(one) for one in both if isinstance(one, Exception)} <= {
        UnknownRequestError,
        OwnershipLostError,
    }
    other = drawn(durable)
    await other.refresh()
    assert other.state["answer a"] is (both.index(taken[0]) % 2 == 0)


async def test_requests_wait_in_every_process(durable: Store) -> None:
    asked = (await drawn(durable).run(["a", "b"])).pending_requests
    operator = drawn(durable)
    assert operator.pending_requests == ()
    await operator.refresh()
    assert operator.pending_requests == asked
    known = ids(asked)
    result = await operator.run(responses={known["a"]: True})
    assert set(ids(result.pending_requests)) == {"b"}
    third = drawn(durable)
    with pytest.raises(UnknownRequestError):
        await third.run(responses={known["a"]: True})
    assert (await third.cancel_requests([known["b"]])).outcome is Outcome.COMPLETED


async def test_what_a_crash_left_of_an_answer_is_gone_on_with(durable: Store) -> None:
    asking = Asking()
    workflow = drawn(durable, asking)
    [request] = (await workflow.run(["a"])).pending_requests
    asking.fails = True
    with pytest.raises(ExecutorError):
        await workflow.run(responses={request.request_id: True})
    assert (await workflow.history())[0].kind == "responses"
    other = drawn(durable)
    assert (await other.resume()).outputs == ("a",)
    assert other.pending_requests == ()


async def test_answers_that_a_store_cannot_hold_are_refused_by_name(
    tmp_path: Path,
) -> None:
    @dataclasses.dataclass
    class Odd:
        n: int

    class Wide(Asking):
        @response_handler
        async def odd(
            self, request: dict[str, Any], response: Odd, ctx: WorkflowContext[str, str]
        ) -> None: ...

    async with SqliteStore(tmp_path) as store:
        workflow = drawn(store, Wide(Odd))
        [request] = (await workflow.run(["a"])).pending_requests
        with pytest.raises(StateTypeError, match=r"answer to 'asking'.*Odd"):
            await workflow.run(responses={request.request_id: {"n": 1}})
        assert len(workflow.pending_requests) == 1


@pytest.mark.parametrize("kind", [str, Approval])
async def test_a_question_that_nobody_would_take_the_answer_of_is_refused(
    store: Store | None, kind: type
) -> None:
    class Narrow(Executor):
        @handler
        async def ask(self, question: str, ctx: WorkflowContext[None, str]) -> None:
            await ctx.request_info(question, kind)

        @response_handler
        async def answered(
            self, request: str, response: int, ctx: WorkflowContext[None, str]
        ) -> None: ...

    workflow = WorkflowBuilder("w", start=Narrow(), store=store).build()
    with pytest.raises(ExecutorError) as caught:
        await workflow.run("a")
    assert isinstance(caught.value.__cause__, MessageTypeError)
    assert "takes int as answer to str" in str(caught.value)
    assert workflow.pending_requests == ()


async def test_who_has_no_response_handler_cannot_ask(store: Store | None) -> None:
    @executor
    async def ask(question: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.request_info(question, bool)

    workflow = WorkflowBuilder("w", start=ask, store=store).build()
    with pytest.raises(ExecutorError, match="no @response_handler"):
        await workflow.run("a")


async def test_a_changed_graph_is_refused_an_answer_and_its_request_can_be_withdrawn(
    durable: Store,
) -> None:
    [request] = (await drawn(durable).run(["a"])).pending_requests

    class Changed(Asking):
        @response_handler
        async def more(
            self, request: str, response: str, ctx: WorkflowContext[str, str]
        ) -> None: ...

    changed = drawn(durable, Changed())
    with pytest.raises(CheckpointMismatchError):
        await changed.run(responses={request.request_id: True})
    result = await changed.cancel_requests([request.request_id])
    assert result.outcome is Outcome.COMPLETED


async def test_a_graph_without_the_one_who_asked_still_runs(durable: Store) -> None:
    [request] = (await drawn(durable).run(["a"])).pending_requests

    @executor(id="another")
    async def start(message: str, ctx: WorkflowContext[None, str]) -> None:
        ctx.set_state("message", message)

    other = WorkflowBuilder("form", start=start, store=durable).build()
    result = await other.run("hello")
    assert result.outcome is Outcome.PENDING_REQUESTS
    assert [one.request_id for one in other.pending_requests] == [request.request_id]
    await other.cancel_requests([request.request_id])
    assert other.pending_requests == ()


async def test_a_fork_has_its_own_answer(durable: Store) -> None:
    workflow = drawn(durable)
    [request] = (await workflow.run(["a"])).pending_requests
    twin = await workflow.fork(None, "twin")
    assert twin.pending_requests == (request,)
    await twin.run(responses={request.request_id: False})
    await workflow.run(responses={request.request_id: True})
    assert twin.state["answer a"] is False
    assert workflow.state["answer a"] is True


async def test_who_asks_learns_the_id_of_the_request(store: Store | None) -> None:
    class Noting(Executor):
        @handler
        async def ask(self, word: str, ctx: WorkflowContext[None, str]) -> None:
            for each in ("a", "b"):
                ctx.set_state(each, await ctx.request_info(f"{word} {each}?", bool))

        @response_handler
        async def answered(
            self, question: str, granted: bool, ctx: WorkflowContext[None, str]
        ) -> None:
            await ctx.yield_output(question)

    workflow = WorkflowBuilder("press", start=Noting("noting"), store=store).build()
    pending = (await workflow.run("print")).pending_requests
    assert [one.request_id for one in pending] == list(workflow.state.values())
    chosen = workflow.state["b"]
    result = await workflow.run(responses={chosen: True})
    assert result.outputs == ("print b?",)
