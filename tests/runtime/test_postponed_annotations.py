"""Annotations that are only strings until somebody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenure.runtime import (
    DefinitionError,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
)

if TYPE_CHECKING:
    from decimal import Decimal


class Draft:
    def __init__(self, text: str) -> None:
        self.text = text


class Writer(Executor):
    @handler
    async def write(self, message: str, ctx: WorkflowContext[Draft, str]) -> None:
        await ctx.send_message(Draft(message))


@executor
async def publish(draft: Draft, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(draft.text)


async def test_postponed_annotations_are_read() -> None:
    workflow = WorkflowBuilder("press", start=Writer).add_edge(Writer, publish).build()
    assert (await workflow.run("a")).outputs == ("a",)


def test_postponed_annotations_are_checked_along_edges() -> None:
    @executor
    async def count(number: int, ctx: WorkflowContext[None, str]) -> None: ...

    writer = Writer("writer")
    builder = WorkflowBuilder("press", start=writer).add_edge(writer, count)
    with pytest.raises(
        DefinitionError, match=r"'writer' sends Draft.*'count' takes int"
    ):
        builder.build()


def test_a_name_that_only_the_type_checker_knows_is_refused_by_name() -> None:
    @executor
    async def pay(amount: Decimal, ctx: WorkflowContext[None, str]) -> None: ...

    with pytest.raises(DefinitionError) as caught:
        WorkflowBuilder("shop", start=pay)
    assert "executor 'pay'" in str(caught.value)
    assert "'Decimal' is not defined" in str(caught.value)
    assert "exist at module level" in str(caught.value)


def test_a_local_class_is_refused_by_name() -> None:
    class Local: ...

    @executor
    async def take(message: Local, ctx: WorkflowContext[None, str]) -> None: ...

    with pytest.raises(DefinitionError, match="'Local' is not defined"):
        WorkflowBuilder("shop", start=take)
