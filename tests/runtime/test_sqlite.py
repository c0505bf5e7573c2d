"""Files of the SQLite store: when they are opened, closed, lost and foreign."""

import asyncio
import gc
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tenure.runtime import (
    CheckpointError,
    CheckpointNotFoundError,
    MemoryStore,
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
)
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
        [
            # Later Pythons warn of forks in processes that have threads.
            *(sys.executable, "-W", "ignore::DeprecationWarning"),
            *("-c", PREAMBLE.format(first=first) + code, str(folder), kind),
        ],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr, done.stderr
    return done.stdout


def folders_in(folder: Path) -> set[Path]:
    return {one.parent for one in folder.rglob("*")}


def names_in(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


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


async def test_few_files_are_open_however_many_instances_there_are(
    tmp_path: Path,
) -> None:
    with pytest.raises(ValueError, match="open_files=0"):
        SqliteStore(tmp_path, open_files=0)
    async with SqliteStore(tmp_path, open_files=3) as store:
        workflow = noting(store)
        for name in ("a", "b"):
            await asyncio.gather(
                *(workflow.instance(str(key)).run(name) for key in range(10))
            )
        # SQLite removes a file's log when its last connection is closed.
        logs = [name for name in names_in(tmp_path) if name.endswith("-wal")]
        assert len(logs) == 3
        assert all(
            dict(workflow.instance(str(key)).state) == {"a": 1, "b": 1}
            for key in range(10)
        )


@kinds
def test_a_process_that_has_no_file_descriptors_left_closes_files(
    tmp_path: Path, kind: str
) -> None:
    code = """
import resource

async def main():
    await workflow.run("first")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, hard))
    for name in ("a", "b"):
        for key in range(40):
            await workflow.instance(str(key)).run(name)
    states = [dict(workflow.instance(str(key)).state) for key in range(40)]
    print(states == [{"a": 1, "b": 1}] * 40)

asyncio.run(main())
"""
    assert run(code, tmp_path, kind) == "True\n"


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


# Files that are not what they were, or never were.


@pytest.mark.parametrize("replaced", [False, True], ids=["removed", "replaced"])
async def test_nothing_is_said_to_be_kept_in_a_file_that_is_gone(
    tmp_path: Path, replaced: bool
) -> None:
    @as_executor
    async def lose(name: str, ctx: WorkflowContext[None, None]) -> None:
        ctx.set_state(name, 1)
        if name == "b":
            file = store.path_of("press/default")
            backup = file.read_bytes()
            file.unlink()
            if replaced:
                file.write_bytes(backup)

    async with SqliteStore(tmp_path) as store:
        workflow = WorkflowBuilder("press", start=lose, store=store).build()
        await workflow.run("a")
        with pytest.raises(CheckpointError, match="removed or replaced while it was"):
            await workflow.run("b")
        assert dict(workflow.state) == {"a": 1}
        await workflow.run("c")
        await workflow.run("d")
        async with SqliteStore(tmp_path) as other:
            assert dict(await noting(other).refresh()) == dict(workflow.state)


@kinds
async def test_what_is_read_is_in_the_file_that_is_there(
    tmp_path: Path, kind: str
) -> None:
    async with SqliteStore(tmp_path, blocking=kind == "blocking") as store:
        workflow = noting(store)
        await workflow.run("a")
        assert len(await workflow.history()) == 2
        store.path_of("press/default").unlink()
        assert await workflow.history() == []
        with pytest.raises(CheckpointNotFoundError):
            await store.load("press/default")


async def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path) as store:
        file = store.path_of("press/default")
        with closing(sqlite3.connect(file)) as base, base:
            base.execute("CREATE TABLE customers (name TEXT)")
        before = file.read_bytes()
        with pytest.raises(CheckpointError, match="a database of something else"):
            await noting(store).run("a")
    assert file.read_bytes() == before


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path) as store:
        await noting(store).run("a")
        await store.aclose()
        file = store.path_of("press/default")
        with closing(sqlite3.connect(file)) as base, base:
            base.execute("PRAGMA user_version = 99")
        for ask in (lambda one: one.run("b"), lambda one: one.refresh()):
            with pytest.raises(CheckpointError, match="layout 99, which a later"):
                await ask(noting(store))


async def test_a_file_without_a_version_is_made_whole(tmp_path: Path) -> None:
    # A process was killed before it had made the tables.
    async with SqliteStore(tmp_path) as store:
        file = store.path_of("press/default")
        with closing(sqlite3.connect(file)) as base, base:
            base.execute("PRAGMA journal_mode = WAL")
        await noting(store).run("a")
        assert dict(await noting(store).refresh()) == {"a": 1}


async def test_a_key_that_no_file_can_be_found_by_is_refused(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path) as store:
        with pytest.raises(CheckpointError, match="surrogates not allowed"):
            await noting(store).instance("\udcff").run("a")
        await noting(store).instance("../\0\n\U0001f600").run("a")
    assert folders_in(tmp_path) == {tmp_path}


async def test_a_directory_that_became_a_file_is_an_error_of_the_store(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "runs"
    async with SqliteStore(folder) as store:
        workflow = noting(store)
        await workflow.run("a")
        folder.rename(tmp_path / "moved")
        folder.write_bytes(b"")
        with pytest.raises(CheckpointError, match="cannot be used"):
            await workflow.run("b")
        folder.unlink()
        (tmp_path / "moved").rename(folder)
        await workflow.run("b")
        assert dict(workflow.state) == {"a": 1, "b": 1}


async def test_a_directory_stays_where_it_is_wherever_the_process_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "runs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    async with SqliteStore("runs") as store:
        workflow = noting(store)
        await workflow.run("a")
        monkeypatch.chdir(elsewhere)
        await workflow.run("b")
        await workflow.instance("new").run("c")
        assert dict(workflow.state) == {"a": 1, "b": 1}
    assert folders_in(tmp_path) == {tmp_path, tmp_path / "runs", elsewhere}


@pytest.mark.parametrize(
    "seconds", [{"lease": -1.0}, {"lease": float("nan")}, {"patience": -0.1}]
)
def test_seconds_that_make_no_sense_are_refused(
    tmp_path: Path, seconds: dict[str, float]
) -> None:
    with pytest.raises(ValueError, match="pass seconds"):
        SqliteStore(tmp_path, **seconds)
    if "lease" in seconds:
        with pytest.raises(ValueError, match="pass seconds"):
            MemoryStore(**seconds)


async def test_no_file_is_made_for_whoever_only_looks(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path) as store:
        asked = noting(store).instance("nobody")
        assert dict(await asked.refresh()) == {}
        assert await asked.history() == []
        with pytest.raises(CheckpointNotFoundError):
            await store.load("press/nobody")
    assert names_in(tmp_path) == {"store-id"}


# Files that another process holds locked.


async def test_an_instance_that_is_locked_does_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    async with SqliteStore(tmp_path, patience=50) as store:
        workflow = noting(store)
        locked, other = workflow.instance("locked"), workflow.instance("other")
        await locked.run("a")
        with closing(
            sqlite3.connect(store.path_of("press/locked"), isolation_level=None)
        ) as base:
            base.execute("BEGIN IMMEDIATE")
            waiting = asyncio.create_task(locked.run("b"))
            async with asyncio.timeout(20):
                for name in ("c", "d", "e"):
                    await other.run(name)
            assert not waiting.done()
            base.execute("ROLLBACK")
            await waiting
        assert dict(locked.state) == {"a": 1, "b": 1}
        assert dict(other.state) == {"c": 1, "d": 1, "e": 1}


@kinds
async def test_patience_has_an_end(tmp_path: Path, kind: str) -> None:
    store = SqliteStore(tmp_path, patience=0.2, blocking=kind == "blocking")
    async with store:
        workflow = noting(store)
        await workflow.run("a")
        with closing(
            sqlite3.connect(store.path_of("press/default"), isolation_level=None)
        ) as base:
            base.execute("BEGIN IMMEDIATE")
            with pytest.raises(CheckpointError, match="database is locked"):
                await workflow.run("b")
        await workflow.run("c")
        assert dict(workflow.state) == {"a": 1, "c": 1}
