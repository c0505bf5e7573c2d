"""Files of the SQLite store: when they are opened, closed, lost and foreign."""

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.runtime import SqliteStore, Workflow, WorkflowBuilder, WorkflowContext
from tenure.runtime import executor as as_executor


@as_executor
async def note(name: str, ctx: WorkflowContext[None, None]) -> None:
    ctx.set_state(name, len(name))


def noting(store: SqliteStore) -> Workflow:
    return WorkflowBuilder("press", start=note, store=store).build()


PREAMBLE = """
import asyncio, atexit, os, sys, threading
{first}
from tenure.runtime import SqliteStore, WorkflowBuilder, WorkflowContext, executor

@executor
async def note(name: str, ctx: WorkflowContext[None, None]) -> None:
    ctx.set_state(name, len(name))

store = SqliteStore(sys.argv[1], blocking=sys.argv[2] == "blocking")
workflow = WorkflowBuilder("press", start=note, store=store).build()
"""


def run(code: str, folder: Path, kind: str, first: str = "") -> str:
    """Run a program that has a store; return what it says."""
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE.format(first=first) + code, str(folder), kind],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


kinds = pytest.mark.parametrize("kind", ["thread", "blocking"])


# The end of the process.


@kinds
def test_the_exit_of_the_interpreter_closes_no_file_that_another_thread_uses(
    tmp_path: Path, kind: str
) -> None:
    # What is registered before everything else is called after everything else.
    first = """
resumed, said = threading.Event(), threading.Event()
atexit.register(lambda: (resumed.set(), said.wait(20)))
"""
    code = """
working = threading.Event()

def work(base):
    working.set()
    resumed.wait(20)
    try:
        print(base.execute("SELECT 'still open'").fetchone()[0])
    except Exception as exc:
        print(exc)
    said.set()

async def ask():
    await store._ask("press/a", work)

threading.Thread(target=lambda: asyncio.run(ask()), daemon=True).start()
working.wait(20)
"""
    assert run(code, tmp_path, kind, first) == "still open\n"


@kinds
def test_the_exit_of_the_interpreter_closes_files_that_nobody_uses(
    tmp_path: Path, kind: str
) -> None:
    run("asyncio.run(workflow.run('a'))", tmp_path, kind)
    # SQLite removes its log when the last connection is closed.
    assert [one.suffix for one in tmp_path.glob("press*")] == [".sqlite3"]


@kinds
def test_a_store_can_be_asked_until_the_very_end(tmp_path: Path, kind: str) -> None:
    first = """
atexit.register(lambda: asyncio.run(workflow.run("at the end")))
atexit.register(lambda: print(dict(workflow.state)))
"""
    code = "asyncio.run(workflow.run('a'))"
    assert run(code, tmp_path, kind, first) == "{'a': 1}\n"
    store = SqliteStore(tmp_path)
    later = noting(store)
    asyncio.run(_closed(store, later))
    assert dict(later.state) == {"a": 1, "at the end": 10}


async def _closed(store: SqliteStore, workflow: Workflow) -> None:
    async with store:
        await workflow.refresh()


def test_a_store_that_nobody_holds_closes_its_files(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    workflow = noting(store)
    asyncio.run(workflow.run("a"))
    log = Path(f"{store.path_of('press/default')}-wal")
    assert log.exists()
    worker = store._worker
    del store, workflow
    gc.collect()

    async def all_done() -> None:
        await worker.ask(lambda: None)  # the worker does one thing after the other

    asyncio.run(all_done())
    assert not log.exists()


# Forks.


@kinds
def test_a_fork_may_close_a_store_and_leaves_its_parents_files_alone(
    tmp_path: Path, kind: str
) -> None:
    code = """
async def close():
    async with store:
        pass
    await workflow.instance("b").run("child")
    await store.aclose()

asyncio.run(workflow.run("parent"))
pid = os.fork()
if not pid:
    asyncio.run(close())
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
asyncio.run(workflow.run("parent again"))
print(sorted(workflow.state))
"""
    assert run(code, tmp_path, kind) == "['parent', 'parent again']\n"
