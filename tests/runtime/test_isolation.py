"""Isolation: what crosses a border is nobody else's."""

import dataclasses
import datetime
import enum
import threading
import uuid
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import (
    ExecutorError,
    IsolationError,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)
from tenure.runtime._isolation import IMMUTABLE, isolate

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()
)
containers = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=12,
).filter(lambda value: isinstance(value, list | dict))


def spoil(value: Any) -> None:
    """Change everything in `value` that can be changed, all the way down."""
    inner = list(value.values() if isinstance(value, dict) else value)
    for item in inner:
        if isinstance(item, list | dict | tuple):
            spoil(item)
    if isinstance(value, list):
        value.append("spoilt")
    elif isinstance(value, dict):
        value["spoilt"] = True


class Colour(enum.Enum):
    RED = 1


class Cart:
    def __init__(self) -> None:
        self.items: list[str] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cart) and self.items == other.items

    __hash__ = None  # type: ignore[assignment]


class Label:
    """A key of a dict that can be changed all the same."""

    def __init__(self, text: str) -> None:
        self.text = text


class Stubborn:
    def __deepcopy__(self, memo: object) -> "Stubborn":
        raise ValueError


@dataclasses.dataclass(frozen=True)
class Frozen:
    names: list[str]


@given(containers)
def test_a_copy_is_equal_and_shares_nothing_that_can_be_changed(value: Any) -> None:
    twin = isolate(value, "it")
    assert twin == value
    spoil(value)
    assert twin != value


@given(containers)
def test_changing_the_copy_leaves_the_original_alone(value: Any) -> None:
    reference = isolate(value, "it")
    spoil(isolate(value, "it"))
    assert value == reference


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        10**30,
        1.5,
        1j,
        "text",
        b"bytes",
        range(3),
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        datetime.timedelta(1),
        Fraction(1, 3),
        uuid.UUID(int=1),
        Path("a/b"),
        Colour.RED,
        len,
        isolate,
        Cart,
        (1, "a", (2, None)),
    ],
    ids=repr,
)
def test_immutable_values_pass_without_a_copy(value: object) -> None:
    assert isolate(value, "it") is value


@pytest.mark.parametrize(
    "value",
    [[1, 2], {"a": 1}, {1, 2}, bytearray(b"a"), Cart(), Frozen(["a"]), ([],), [[1]]],
    ids=repr,
)
def test_mutable_values_never_pass_as_they_are(value: object) -> None:
    twin = isolate(value, "it")
    assert twin is not value
    assert twin == value


def test_a_subclass_of_an_immutable_type_may_be_mutable_and_is_copied() -> None:
    class Tagged(str):
        tags: list[str]

    value = Tagged("a")
    value.tags = []
    twin = isolate(value, "it")
    value.tags.append("changed")
    assert twin == "a"
    assert twin.tags == []
    assert Tagged not in IMMUTABLE


def test_the_keys_of_a_dict_are_isolated_too() -> None:
    label = Label("before")
    twin = isolate({label: 1}, "it")
    label.text = "after"
    assert [one.text for one in twin] == ["before"]


def test_references_inside_a_value_stay_what_they_are() -> None:
    row: list[int] = [0]
    loop: list[Any] = [row, row]
    loop.append(loop)
    twin = isolate(loop, "it")
    assert twin[0] is twin[1]
    assert twin[2] is twin
    assert twin[0] is not row


@pytest.mark.parametrize(
    ("make", "type_name"),
    [
        (threading.Lock, "lock"),
        (lambda: [threading.Lock()], "list"),
        (Stubborn, "Stubborn"),
        (lambda: (number for number in range(3)), "generator"),
    ],
)
def test_a_value_that_cannot_be_copied_is_refused_by_type_and_purpose(
    make: Callable[[], object], type_name: str
) -> None:
    with pytest.raises(IsolationError) as caught:
        isolate(make(), "state key 'cart'")
    assert caught.value.what == "state key 'cart'"
    assert caught.value.value_type == type_name
    assert caught.value.reason
    assert "__deepcopy__" in str(caught.value)
    assert caught.value.__cause__ is not None


@given(containers)
async def test_changing_a_value_after_it_was_staged_or_read_changes_nothing(
    value: Any,
) -> None:
    reference = isolate(value, "it")
    seen: list[Any] = []

    @executor
    async def writer(message: int, ctx: WorkflowContext[None, None]) -> None:
        mine = isolate(value, "it")
        ctx.set_state("cart", mine)
        spoil(mine)
        seen.append(ctx.get_state("cart"))
        spoil(ctx.get_state("cart"))
        seen.append(ctx.get_state("cart"))

    workflow = WorkflowBuilder("shop", start=writer).build()
    await workflow.run(1)
    spoil(workflow.state["cart"])
    seen.append(workflow.state["cart"])
    assert seen == [reference] * 3


async def test_an_uncopyable_value_is_refused_where_it_is_staged() -> None:
    @executor
    async def writer(message: int, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state("connection", threading.Lock())

    workflow = WorkflowBuilder("shop", start=writer).build()
    with pytest.raises(ExecutorError) as caught:
        await workflow.run(1)
    cause = caught.value.__cause__
    assert isinstance(cause, IsolationError)
    assert cause.what == "state key 'connection'"
    assert cause.value_type == "lock"
    assert dict(workflow.state) == {}


async def test_the_input_of_a_run_is_shared_neither_with_its_caller_nor_with_others():
    @executor
    async def marker(message: dict[str, int], ctx: WorkflowContext[None, Any]) -> None:
        message["seen"] = message.get("seen", 0) + 1
        await ctx.yield_output(message)

    workflow = WorkflowBuilder("shop", start=marker).build()
    given_to_both: dict[str, int] = {}
    first = await workflow.run(given_to_both)
    second = await workflow.instance("other").run(given_to_both)
    assert given_to_both == {}
    assert first.outputs == second.outputs == ({"seen": 1},)


async def test_an_input_that_cannot_be_copied_changes_hands() -> None:
    @executor
    async def keeper(message: object, ctx: WorkflowContext[None, Any]) -> None:
        await ctx.yield_output(message)

    lock = threading.Lock()
    result = await WorkflowBuilder("shop", start=keeper).build().run(lock)
    assert result.outputs[0] is lock
