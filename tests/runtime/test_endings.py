"""How the end of an object came about."""

import subprocess
import sys

import pytest

from tenure.instrumentation.operations import Trigger
from tenure.runtime._endings import current_trigger


def test_a_reference_that_goes_is_no_collection() -> None:
    assert current_trigger() is Trigger.REFCOUNT


@pytest.mark.parametrize("before", ["", "loop.run_until_complete(workflow.run('x'))"])
def test_a_stream_that_the_exit_of_the_interpreter_ends_is_told(before: str) -> None:
    code = f"""
import asyncio
from tenure.instrumentation import add_listener
from tenure.instrumentation.operations import Release
from tenure.runtime import WorkflowBuilder
from tenure.runtime.testing import HeldExecutor

held = HeldExecutor()
held.released["x"].set()
workflow = WorkflowBuilder("press", start=held).build()
loop = asyncio.new_event_loop()
{before}

async def read():
    global stream
    stream = workflow.instance("left").stream("a")
    await anext(stream)
    await held.staged["a"].wait()

loop.run_until_complete(read())
add_listener(lambda one: print(one.outcome) if isinstance(one, Release) else None)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout == "lost\n", done.stderr
