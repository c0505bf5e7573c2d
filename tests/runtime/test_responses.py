"""Answers to requests: of which type they must be, and what is said if they are not."""

import dataclasses
import enum
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import pydantic
import pytest

from tenure.runtime import (
    CheckpointError,
    Executor,
    ExecutorError,
    MemoryStore,
    ResponseTypeError,
    SqliteStore,
    Store,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    register_state_type,
    response_handler,
)

Context = WorkflowContext[None, Any]


@pytest.fixture
def store(store_if_any: Store | None) -> Store | None:
    return store_if_any


@register_state_type
@dataclasses.dataclass(frozen=True)
class Approved:
    by: str
    at: int = 0


@register_state_type
@dataclasses.dataclass(frozen=True)
class Refused:
    reason: str


@register_state_type
class Sheet(pydantic.BaseModel):
    name: str
    age: int = 0


@register_state_type
class Folder(msgspec.Struct):
    sheet: Sheet


class Colours(enum.Enum):
    RED = "red"


class Address(TypedDict):
    street: str
    number: int


def asking_for(kind: Any, taken: Any = ...) -> Executor:
    """An executor that asks for this type, and yields what it was answered."""

    class Asker(Executor):
        @handler
        async def ask(self, question: str, ctx: Context) -> None:
            await ctx.request_info(question, kind)

        async def answered(self, request: str, response: Any, ctx: Context) -> None:
            await ctx.yield_output(response)

        answered.__annotations__["response"] = kind if taken is ... else taken
        response_handler(answered)

    return Asker("asker")


def drawn(store: Store | None, start: Executor) -> Workflow:
    return WorkflowBuilder("w", start=start, store=store).build()


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        (Approved | Refused, {"by": "Ada"}, Approved("Ada")),
        (Approved | Refused, {"reason": "no"}, Refused("no")),
        (Approved | Refused, Refused("no"), Refused("no")),
        (Approved | Refused | None, None, None),
        (Sheet | None, {"name": "Ada"}, Sheet(name="Ada")),
        (Sheet | Refused, {"reason": "no"}, Refused("no")),
        (list[Sheet], [{"name": "Ada", "age": "36"}], [Sheet(name="Ada", age=36)]),
        (Folder, {"sheet": {"name": "Ada"}}, Folder(Sheet(name="Ada"))),
        (dict[str, list[Sheet]], {"a": [{"name": "A"}]}, {"a": [Sheet(name="A")]}),
        (Address, {"street": "Lane", "number": 4}, {"street": "Lane", "number": 4}),
        (Address, {"street": "Lane", "number": "4"}, {"street": "Lane", "number": 4}),
    ],
)
async def test_plain_data_is_converted_deep_inside_and_in_unions(
    store: Store | None, kind: Any, given: Any, taken: Any
) -> None:
    workflow = drawn(store, asking_for(kind))
    [request] = (await workflow.run("a")).pending_requests
    if store is not None:
        # Another process finds the type again by its name.
        workflow = drawn(store, asking_for(kind))
    [answer] = (await workflow.run(responses={request.request_id: given})).outputs
    assert answer == taken
    assert type(answer) is type(taken)


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        (bool, "perhaps", "Expected `bool`"),
        (Approved, {"at": 3}, "missing required field `by`"),
        (Approved, {"by": 3}, r"at `\$\.by`"),
        (Sheet, {"name": "Ada", "age": "x"}, "age: Input should be a valid integer"),
        (list[Sheet], [{"name": "Ada"}, {}], r"name: Field required.*\$\[1\]"),
        (Colours, "green", "'green'"),
        (Approved | Refused, {"by": "Ada", "reason": "no"}, "Approved and Refused"),
        (Approved | Refused, {"at": 3}, "Approved: .*`by`; Refused: .*`reason`"),
        (Address, {"number": 4}, "`street`"),
    ],
)
async def test_a_refused_answer_says_what_is_wrong_with_it(
    store: Store | None, kind: Any, given: Any, says: str
) -> None:
    workflow = drawn(store, asking_for(kind))
    [request] = (await workflow.run("a")).pending_requests
    with pytest.raises(ResponseTypeError, match=says) as caught:
        await workflow.run(responses={request.request_id: given})
    assert "\n" not in str(caught.value)
    assert workflow.pending_requests == (request,)


async def test_an_answer_that_the_handler_does_not_take_is_refused_at_the_entry() -> (
    None
):
    workflow = drawn(None, asking_for(object, taken=int | str))
    [request] = (await workflow.run("a")).pending_requests
    with pytest.raises(ResponseTypeError, match=r"takes int \| str as answer to str"):
        await workflow.run(responses={request.request_id: b"bytes"})
    result = await workflow.run(responses={request.request_id: 7})
    assert result.outputs == (7,)


async def test_an_answer_goes_to_the_response_handler_whose_types_are_nearest(
    store: Store | None,
) -> None:
    class Choosing(Executor):
        @handler
        async def ask(self, question: str, ctx: Context) -> None:
            await ctx.request_info(question, int)
            await ctx.request_info([question], bool)
            await ctx.request_info(b"", int)

        @response_handler
        async def any(self, request: object, response: object, ctx: Context) -> None:
            await ctx.yield_output("any")

        @response_handler
        async def number(self, request: str, response: int, ctx: Context) -> None:
            await ctx.yield_output("number")

        @response_handler
        async def some(self, request: object, response: int, ctx: Context) -> None:
            await ctx.yield_output("some")

        @response_handler
        async def flag(self, request: object, response: bool, ctx: Context) -> None:
            await ctx.yield_output("flag")

    workflow = drawn(store, Choosing())
    first, second, third = (await workflow.run("a")).pending_requests
    answers = {first.request_id: 7, second.request_id: True, third.request_id: 7}
    result = await workflow.run(responses=answers)
    assert result.outputs == ("number", "flag", "some")


@pytest.mark.parametrize("kind", ["bool", True, 3, [int]])
async def test_what_is_no_type_cannot_be_asked_for(
    store: Store | None, kind: Any
) -> None:
    workflow = drawn(store, asking_for(kind, taken=object))
    with pytest.raises(ExecutorError, match=r"such as bool or list\[str\]"):
        await workflow.run("a")


async def test_a_request_says_which_answer_nobody_takes(store: Store | None) -> None:
    workflow = drawn(store, asking_for(int, taken=list[str]))
    with pytest.raises(ExecutorError, match=r"answered with int.*takes list\[str\] as"):
        await workflow.run("a")


async def test_where_it_is_kept_a_response_type_has_to_be_named_by_the_handler(
    tmp_path: Path,
) -> None:
    asker = asking_for(dict[str, int], taken=object)
    assert (await drawn(None, asker).run("a")).pending_requests
    async with SqliteStore(tmp_path) as store:
        says = r"annotate .* with dict\[str, int\]"
        with pytest.raises(ExecutorError, match=says) as caught:
            await drawn(store, asker).run("a")
        assert "register_state_type" not in str(caught.value)


@pytest.mark.parametrize("durable", ["memory", "sqlite"])
async def test_a_request_whose_asker_is_gone_is_not_answered_but_withdrawn(
    durable: str, tmp_path: Path
) -> None:
    @executor(id="another")
    async def stranger(message: str, ctx: Context) -> None: ...

    @executor(id="asker")
    async def namesake(message: str, ctx: Context) -> None: ...

    store: Store = MemoryStore() if durable == "memory" else SqliteStore(tmp_path)
    [request] = (await drawn(store, asking_for(bool)).run("a")).pending_requests
    for start, says in ((stranger, "not in this graph"), (namesake, "takes no answer")):
        other = drawn(store, start)
        await other.run("hello")
        with pytest.raises(CheckpointError, match=f"'asker'.*{says}.*cancel_requests"):
            await other.run(responses={request.request_id: True})
        assert len(other.pending_requests) == 1
    await other.cancel_requests(request.request_id)
    assert other.pending_requests == ()
