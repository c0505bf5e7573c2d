"""A graph's signature: it differs wherever a checkpoint would mean another thing."""

import dataclasses
import datetime
import decimal
import enum
import functools
import operator
import pathlib
import re
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any

import msgspec
import pydantic
import pytest

from tenure.runtime import (
    Case,
    Executor,
    FunctionExecutor,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)
from tenure.runtime._signature import signature_of


def passing(name: str) -> FunctionExecutor[str, str, str]:
    @executor(id=name)
    async def work(message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(message)

    return work


class Asking(Executor):
    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(message)


class AskingMore(Executor):
    @handler
    async def work(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(message, bool)

    @response_handler
    async def answered(
        self, request: str, response: bool, ctx: WorkflowContext[str, str]
    ) -> None: ...


def conditioned(condition: Callable[[Any], bool] | None) -> str:
    a, b = passing("a"), passing("b")
    return signature_of(
        WorkflowBuilder("w", start=a).add_edge(a, b, condition).build().graph
    )


def closing_over(value: object) -> Callable[[Any], bool]:
    return lambda message: message == value


def with_default(default: int) -> Callable[..., bool]:
    def condition(message: Any, limit: int = default) -> bool:
        return len(message) > limit

    return condition


def with_keyword(default: int) -> Callable[..., bool]:
    def condition(message: Any, *, limit: int = default) -> bool:
        return len(message) > limit

    return condition


def recursive() -> Callable[[Any], bool]:
    def condition(message: Any) -> bool:
        return not message or condition(message[1:])

    return condition


def unset() -> Callable[[Any], bool]:
    def condition(message: Any) -> bool:
        return later(message)

    if condition is None:
        later = bool
    return condition


class Checker:
    def __init__(self, n: int) -> None:
        self.n = n

    def fits(self, message: Any) -> bool:
        return len(message) > self.n

    def misfits(self, message: Any) -> bool:
        return len(message) < self.n


class Kind(enum.Enum):
    A = "a"
    B = "b"


@dataclasses.dataclass(frozen=True)
class Above:
    limit: int

    def __call__(self, message: Any) -> bool:
        return len(message) > self.limit

    def below(self, message: Any) -> bool:
        return len(message) < self.limit


class Bounds(msgspec.Struct):
    limit: int


class Form(pydantic.BaseModel):
    limit: int


def calling(code: Callable[[Any, Any], bool]) -> Callable[[Any], bool]:
    class Caller:
        __call__ = code

    return Caller()


CONDITIONS: dict[str, Callable[[Any], bool] | None] = {
    "none": None,
    "greater": lambda message: len(message) > 1,
    "less": lambda message: len(message) < 1,
    "constant": lambda message: len(message) > 2,
    "attribute": lambda message: message.isupper(),
    "another attribute": lambda message: message.islower(),
    "closure 1": closing_over(1),
    "closure 2": closing_over(2),
    "closure of a list": closing_over([1, 2]),
    "closure of another list": closing_over([1, 3]),
    "closure of a dict": closing_over({"a": [1]}),
    "closure of another dict": closing_over({"a": [2]}),
    "closure of a function": closing_over(len),
    "closure of a class": closing_over(Checker),
    "default 1": with_default(1),
    "default 2": with_default(2),
    "keyword 1": with_keyword(1),
    "keyword 2": with_keyword(2),
    "partial 1": functools.partial(operator.eq, 1),
    "partial 2": functools.partial(operator.eq, 2),
    "method": Checker(1).fits,
    "another method": Checker(1).misfits,
    "nested": lambda message: any(letter > "a" for letter in message),
    "nested, otherwise": lambda message: any(letter > "b" for letter in message),
    "set": lambda message: message in {"a", "b"},
    "another set": lambda message: message in {"a", "c"},
    "closure of a member": closing_over(Kind.A),
    "closure of another member": closing_over(Kind.B),
    "closure of a decimal": closing_over(decimal.Decimal(1)),
    "closure of another decimal": closing_over(decimal.Decimal(2)),
    "closure of a date": closing_over(datetime.date(2026, 1, 1)),
    "closure of another date": closing_over(datetime.date(2026, 1, 2)),
    "closure of an id": closing_over(uuid.UUID(int=1)),
    "closure of another id": closing_over(uuid.UUID(int=2)),
    "closure of a path": closing_over(pathlib.PurePosixPath("a")),
    "closure of another path": closing_over(pathlib.PurePosixPath("b")),
    "closure of a dataclass": closing_over(Above(1)),
    "closure of another dataclass": closing_over(Above(2)),
    "closure of a struct": closing_over(Bounds(1)),
    "closure of another struct": closing_over(Bounds(2)),
    "closure of a model": closing_over(Form(limit=1)),
    "closure of another model": closing_over(Form(limit=2)),
    "dataclass": Above(1),
    "another dataclass": Above(2),
    "method of a dataclass": Above(1).below,
    "method of another dataclass": Above(2).below,
    "object": calling(lambda self, message: len(message) > 1),
    "object that does otherwise": calling(lambda self, message: len(message) < 1),
    "method of a text": "abc".startswith,
    "method of another text": "abd".startswith,
    "method of a set": {"a", "b"}.__contains__,
    "method of another set": {"a", "c"}.__contains__,
    "pattern": re.compile("a").match,
    "another pattern": re.compile("b").match,
    "pattern with flags": re.compile("a", re.IGNORECASE).match,
    "wrapped": functools.cache(lambda message: len(message) > 1),
    "wrapped otherwise": functools.cache(lambda message: len(message) < 1),
    "recursive": recursive(),
    "unset": unset(),
}


def test_conditions_that_differ_give_signatures_that_differ() -> None:
    found = {name: conditioned(condition) for name, condition in CONDITIONS.items()}
    assert len(set(found.values())) == len(CONDITIONS)


def test_the_same_condition_drawn_twice_gives_one_signature() -> None:
    for make in (
        lambda: closing_over({"a", "b", "c"}),
        lambda: with_default(3),
        recursive,
        lambda: functools.partial(operator.eq, {"x": {1, 2, 3}}),
        lambda: Checker(1).fits,
        lambda: closing_over(object()),
        lambda: closing_over({Kind.B, Kind.A}),
        lambda: closing_over(threading.Lock()),
        lambda: Above(3),
        lambda: Above(3).below,
        lambda: calling(len),
        lambda: {"a", "b", "c"}.__contains__,
        lambda: re.compile("a|b").search,
    ):
        assert conditioned(make()) == conditioned(make())


def drawn() -> dict[str, WorkflowBuilder]:
    a, b, c = passing("a"), passing("b"), passing("c")

    @executor(id="b")
    async def counting(message: int, ctx: WorkflowContext[str, str]) -> None: ...

    @executor(id="a")
    async def sending(message: str, ctx: WorkflowContext[int | str, str]) -> None: ...

    @executor(id="c")
    async def joining(message: list[str], ctx: WorkflowContext[str, str]) -> None: ...

    def begin(start: Any = a) -> WorkflowBuilder:
        return WorkflowBuilder("w", start=start)

    when = [Case(str.isupper, b)]
    return {
        "one": begin(),
        "edge": begin().add_edge(a, b),
        "edge to another": begin().add_edge(a, c),
        "both": begin().add_edge(a, b).add_edge(a, c),
        "the other way": begin().add_edge(a, c).add_edge(a, b),
        "chain": begin().add_chain([a, b, c]),
        "fan-out": begin().add_fan_out(a, [b, c]),
        "selected": begin().add_fan_out(a, [b, c], lambda _, ids: ids[:1]),
        "selected otherwise": begin().add_fan_out(a, [b, c], lambda _, ids: ids[1:]),
        "fan-in": begin().add_fan_out(a, [b, "d"]).add_fan_in(["d", b], joining)
        .add_edge(a, passing("d")),
        "fan-in, turned": begin().add_fan_out(a, [b, "d"]).add_fan_in([b, "d"], joining)
        .add_edge(a, passing("d")),
        "switch": begin().add_switch(a, when, default=c),
        "switch, otherwise": begin().add_switch(
            a, [Case(str.islower, b)], default=c
        ),
        "class": begin(Asking("a")).add_edge("a", b),
        "asking": begin(AskingMore("a")).add_edge("a", b),
        "takes": begin(sending).add_edge(sending, counting),
    }  # fmt: skip


def test_graphs_that_differ_give_signatures_that_differ() -> None:
    found = {
        name: signature_of(builder.build().graph) for name, builder in drawn().items()
    }
    assert len(set(found.values())) == len(found)


def test_a_graph_drawn_twice_gives_one_signature() -> None:
    for first, second in zip(drawn().values(), drawn().values(), strict=True):
        one, other = first.build().graph, second.build().graph
        assert signature_of(one) == signature_of(other)


def test_what_an_executor_adds_is_seen() -> None:
    class Prompting(Asking):
        prompt = "one"

        def signature_lines(self) -> Any:
            yield f"prompt {self.prompt}"

    def signature(prompt: str) -> str:
        asking = Prompting("a")
        asking.prompt = prompt
        return signature_of(WorkflowBuilder("w", start=asking).build().graph)

    assert signature("one") == signature("one") != signature("two")


def test_code_of_executors_and_limits_are_not_seen() -> None:
    def signature(times: int, limit: int) -> str:
        @executor(id="a")
        async def work(message: str, ctx: WorkflowContext[None, str]) -> None:
            await ctx.yield_output(message * times)

        builder = WorkflowBuilder("w", start=work, max_supersteps=limit)
        return signature_of(builder.build().graph)

    assert signature(1, 10) == signature(2, 20)


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_another_process_gives_the_same_signature(seed: str) -> None:
    code = (
        "import importlib.util, sys;"
        f"spec = importlib.util.spec_from_file_location({__name__!r}, {__file__!r});"
        "it = sys.modules[spec.name] = importlib.util.module_from_spec(spec);"
        "spec.loader.exec_module(it);"
        "print([it.conditioned(one) for one in it.CONDITIONS.values()])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
    )
    here = [conditioned(one) for one in CONDITIONS.values()]
    there = done.stdout.strip()[2:-2].split("', '")
    differing = {
        name
        for name, one, other in zip(CONDITIONS, here, there, strict=True)
        if one != other
    }
    assert differing == set()
