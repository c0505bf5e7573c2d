"""Requests that outlive real processes, which are killed wherever it hurts most."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import (
    Executor,
    RunResult,
    SqliteStore,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
)

Word = dict[str, str]


def die() -> None:
    """End this process at once, without any clean-up."""
    os.kill(os.getpid(), signal.SIGKILL)


class Asker(Executor):
    """Asks, counts how often it was invoked, and dies when it is told to."""

    def __init__(self, name: str, dies: str) -> None:
        super().__init__(name)
        self.invoked = 0
        self.dies = dies

    @handler
    async def ask(self, word: str, ctx: WorkflowContext[Word, None]) -> None:
        self.invoked += 1
        ctx.set_state(f"{self.id} asked", word)
        await ctx.request_info(f"{self.id} {word}", str)
        if self.dies == f"{self.id} asks":
            die()

    @response_handler
    async def answered(
        self, request: str, response: str, ctx: WorkflowContext[Word, None]
    ) -> None:
        self.invoked += 1
        await ctx.send_message({request: response})
        if self.dies == f"{self.id} is answered":
            die()

    def on_checkpoint_save(self) -> int:
        return self.invoked

    def on_checkpoint_restore(self, snapshot: int) -> None:
        self.invoked = snapshot


def drawn(store: SqliteStore, dies: str) -> Any:
    """A fan-in of two askers in a sub-workflow of a sub-workflow, and one beside it."""

    @executor(id="split")
    async def split(word: str, ctx: WorkflowContext[str, None]) -> None:
        await ctx.send_message(word)

    @executor(id="join")
    async def join(words: list[Word], ctx: WorkflowContext[None, Word]) -> None:
        if dies == "they join":
            die()
        await ctx.yield_output(words[0] | words[1])

    def joining(left: Executor, right: Executor, name: str, **how: Any) -> Any:
        builder = WorkflowBuilder(name, start=split, **how)
        return (
            builder
            .add_fan_out(split, [left, right])
            .add_fan_in([left, right], join)
            .build()
        )

    child = joining(Asker("a", dies), Asker("b", dies), "child")
    middle = WorkflowBuilder("middle", start=WorkflowExecutor(child, "deep")).build()
    inner = WorkflowExecutor(middle, "inner")
    return joining(inner, Asker("c", dies), "outer", store=store)


def tell(result: RunResult) -> None:
    sys.stdout.write(" ".join(map(str, result.outputs)))


async def act(directory: str, doing: str, dies: str) -> None:
    async with SqliteStore(directory) as store:
        workflow = drawn(store, dies)
        if doing == "ask":
            await workflow.run("x")
        elif doing == "resume":
            tell(await workflow.resume())
        else:
            await workflow.refresh()
            answers = {
                one.request_id: doing
                for one in workflow.pending_requests
                if one.data.split()[0] in doing
            }
            tell(await workflow.run(responses=answers))


def process(directory: Path, doing: str, dies: str = "never") -> str:
    done = subprocess.run(
        [sys.executable, __file__, str(directory), doing, dies],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    expected = 0 if dies == "never" else -signal.SIGKILL
    assert done.returncode == expected, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("order", ["abc", "cba"])
def test_answers_that_come_one_by_one_in_new_processes_are_joined(
    order: str, tmp_path: Path
) -> None:
    process(tmp_path, "ask")
    first, second, last = order
    assert process(tmp_path, first) == ""
    assert process(tmp_path, second) == ""
    assert process(tmp_path, last) == "{'a x': 'a', 'b x': 'b', 'c x': 'c'}"


def test_processes_that_are_killed_lose_nothing_and_repeat_nothing_that_is_saved(
    tmp_path: Path,
) -> None:
    process(tmp_path, "ask", dies="b asks")
    assert process(tmp_path, "resume") == ""
    process(tmp_path, "b", dies="b is answered")
    # The answer was saved before anybody was asked to handle it.
    assert process(tmp_path, "resume") == ""
    process(tmp_path, "ca", dies="they join")
    result = "{'a x': 'ca', 'b x': 'b', 'c x': 'ca'}"
    assert process(tmp_path, "resume") == result
    assert process(tmp_path, "resume") == ""
    assert process(tmp_path, "abc") == ""


if __name__ == "__main__":
    asyncio.run(act(*sys.argv[1:]))
