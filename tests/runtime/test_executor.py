"""Executors: handlers, functions as executors, and which handler takes a message."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tenure.runtime import (
    DefinitionError,
    Executor,
    FunctionExecutor,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)
from tenure.runtime._dispatch import Dispatch

Silent = WorkflowContext[None, Any]


class Animal: ...


class Dog(Animal): ...


class Puppy(Dog): ...


class Several(Executor):
    """Says which of its handlers took the message."""

    @handler
    async def animal(self, message: Animal, ctx: Silent) -> None:
        await ctx.yield_output("animal")

    @handler
    async def dog(self, message: Dog, ctx: Silent) -> None:
        await ctx.yield_output("dog")

    @handler
    async def numbers(self, message: list[int], ctx: Silent) -> None:
        await ctx.yield_output("numbers")

    @handler
    async def words(self, message: list[str] | str, ctx: Silent) -> None:
        await ctx.yield_output("words")

    @handler
    async def nothing(self, message: None, ctx: Silent) -> None:
        await ctx.yield_output("nothing")

    @handler
    async def real(self, message: float, ctx: Silent) -> None:
        await ctx.yield_output("real")

    @handler
    async def whole(self, message: int, ctx: Silent) -> None:
        await ctx.yield_output("whole")


@pytest.mark.parametrize(
    ("message", "taker"),
    [
        (Animal(), "animal"),
        (Dog(), "dog"),
        (Puppy(), "dog"),
        ([1, 2], "numbers"),
        (["a"], "words"),
        ("a", "words"),
        (None, "nothing"),
        (1.5, "real"),
        (1, "whole"),
        (True, "whole"),
    ],
    ids=repr,
)
async def test_the_handler_nearest_to_the_type_of_a_message_takes_it(
    message: object, taker: str
) -> None:
    workflow = WorkflowBuilder("w", start=Several("several")).build()
    assert (await workflow.run(message)).outputs == (taker,)


def test_what_nobody_takes_is_not_found_also_when_asked_again() -> None:
    dispatch = Dispatch(Several("several"), "w")
    for _ in range(2):
        assert dispatch.find(b"bytes") is None
        assert dispatch.find([b"bytes"]) is None
        found = dispatch.find([1])
        assert found is not None
        assert found.message == list[int]
    assert dispatch.takes() == (
        "Animal or Dog or list[int] or list[str] | str or None or float or int"
    )


def test_an_executor_is_named_after_its_class_or_its_function() -> None:
    @executor
    async def publish(message: str, ctx: Silent) -> None: ...

    @executor(id="other")
    async def named(message: str, ctx: Silent) -> None: ...

    class Forgetful(Executor):
        def __init__(self) -> None:  # forgets super().__init__()
            self.count = 0

    assert Several().id == "Several"
    assert Several("mine").id == "mine"
    assert Forgetful().id == "Forgetful"
    assert publish.id == "publish"
    assert named.id == "other"
    assert repr(publish) == "<FunctionExecutor 'publish'>"


async def test_a_function_that_is_an_executor_can_still_be_called() -> None:
    @executor
    def double(message: int, ctx: Silent) -> None:
        called.append(message * 2)

    called: list[int] = []
    assert isinstance(double, FunctionExecutor)
    assert double(21, None) is None  # type: ignore[arg-type]
    assert called == [42]


async def test_a_subclass_inherits_handlers_and_may_replace_or_hide_them() -> None:
    class Base(Executor):
        @handler
        async def first(self, message: str, ctx: Silent) -> None:
            await ctx.yield_output("base")

        @handler
        async def second(self, message: int, ctx: Silent) -> None: ...

    class Derived(Base):
        @handler
        async def first(self, message: str, ctx: Silent) -> None:
            await ctx.yield_output("derived")

        second = None  # type: ignore[assignment]

    workflow = WorkflowBuilder("w", start=Derived()).build()
    assert (await workflow.run("a")).outputs == ("derived",)
    assert Dispatch(Derived(), "w").find(1) is None


class CallableObject:
    async def __call__(self, message: str, ctx: Silent) -> None:
        await ctx.yield_output(message)


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as people write them: a plain function around an async one."""

    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args)

    return inner


@decorated
async def written_below_a_decorator(message: str, ctx: Silent) -> None:
    await ctx.yield_output(message)
    ctx.set_state("done", True)


class WithStaticHandler(Executor):
    @handler
    @staticmethod
    async def take(message: str, ctx: Silent) -> None:
        await ctx.yield_output(message)


def plain(message: str, ctx: Silent) -> None:
    assert threading.current_thread() is not threading.main_thread()
    ctx.yield_output(message)


@pytest.mark.parametrize(
    "start",
    [
        executor(CallableObject()),
        executor(written_below_a_decorator),
        executor(plain),
        WithStaticHandler("static"),
    ],
    ids=["callable object", "decorated", "plain def", "static method"],
)
async def test_everything_that_python_calls_a_function_will_do(start: Executor) -> None:
    workflow = WorkflowBuilder("w", start=start).build()
    assert (await workflow.run("a")).outputs == ("a",)


async def test_what_a_decorated_async_function_does_after_an_await_counts() -> None:
    workflow = WorkflowBuilder("w", start=executor(written_below_a_decorator)).build()
    await workflow.run("a")
    assert workflow.state["done"] is True


# What cannot be understood.


def without_annotation(message, ctx: Silent) -> None: ...


def with_one_argument(message: str) -> None: ...


def with_three_arguments(message: str, ctx: Silent, more: int) -> None: ...


def with_a_keyword_argument(message: str, *, ctx: Silent) -> None: ...


def with_another_second_argument(message: str, ctx: int) -> None: ...


def with_an_unknown_type(
    message: "Unheard",  # type: ignore[name-defined]  # noqa: F821
    ctx: Silent,
) -> None: ...


def with_a_yield(message: str, ctx: Silent):
    yield message


async def with_an_async_yield(message: str, ctx: Silent):
    yield message


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (without_annotation, "has no type annotation"),
        (with_one_argument, "takes 1 arguments instead of two"),
        (with_three_arguments, "takes 3 arguments instead of two"),
        (with_a_keyword_argument, "'ctx' can only be passed by keyword"),
        (with_another_second_argument, "is not a WorkflowContext"),
        (with_an_unknown_type, "cannot be read"),
        (with_a_yield, "contains a yield"),
        (with_an_async_yield, "contains a yield"),
        (functools.partial(plain), "has no type annotation"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_handler_that_cannot_be_understood_is_refused_with_the_way_to_write_it(
    function: Callable[..., Any], problem: str
) -> None:
    with pytest.raises(DefinitionError) as caught:
        WorkflowBuilder("press", start=executor(function, id="broken"))  # type: ignore[call-overload]
    message = str(caught.value)
    assert "'press'" in message
    assert "executor 'broken'" in message
    assert problem in message
    assert "(message: T, ctx: WorkflowContext[S, W])" in message


def test_a_class_without_handlers_is_refused() -> None:
    class Idle(Executor):
        async def forgotten(self, message: str, ctx: Silent) -> None: ...

    with pytest.raises(DefinitionError, match=r"'Idle' has no handler.*@handler"):
        WorkflowBuilder("press", start=Idle())


def test_an_attribute_that_claims_to_have_every_attribute_is_no_handler() -> None:
    class Yes:
        def __getattr__(self, name: str) -> object:
            return self

    class Client(Executor):
        client = Yes()

        @handler
        async def take(self, message: str, ctx: Silent) -> None: ...

    assert len(Dispatch(Client(), "w").handlers) == 1


def test_a_context_without_arguments_says_nothing_about_what_is_sent() -> None:
    async def quiet(message: str, ctx: WorkflowContext[None, str]) -> None: ...

    async def open_minded(message: str, ctx: WorkflowContext) -> None: ...  # type: ignore[type-arg]

    async def talkative(message: str, ctx: WorkflowContext[int | str, str]) -> None: ...

    def sends(function: Callable[..., Any]) -> tuple[Any, ...] | None:
        [only] = Dispatch(FunctionExecutor(function), "w").handlers
        return only.sends

    assert sends(quiet) == ()
    assert sends(open_minded) is None
    assert sends(talkative) == (int, str)
