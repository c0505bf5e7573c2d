"""Killed at any statement while old checkpoints go: all of a step has gone, or none."""

import asyncio
import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tenure.runtime import SqliteStore

from .doomed import KEEP, counting

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL"),
    pytest.mark.timeout(300),
]

NAME = "doomed/default"
SUPERSTEPS = 62
DOOMED = Path(__file__).with_name("doomed.py")


@pytest.fixture
def doomed() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(DOOMED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: subprocess.Popen[str], place: Path, statement: int, verb: str) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{place} {statement} {verb}\n")
    return int(process.stdout.readline())


async def kept(place: Path) -> dict[str, Any]:
    """Return what every checkpoint brings back, the newest first."""
    async with SqliteStore(place) as store:
        line = [one.checkpoint_id for one in await store.history(NAME)]
        if line:
            assert (await store.load(NAME))[0].checkpoint_id == line[0]
        return {name: await store.load(NAME, name) for name in line}


def sound(place: Path) -> None:
    [file] = place.glob("doomed*.sqlite3")
    base = sqlite3.connect(file)
    assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    base.close()


@pytest.mark.parametrize(("verb", "least"), [("prune", 12), ("erase", 8), ("run", 25)])
def test_killed_at_any_statement_what_is_left_is_whole(
    tmp_path: Path, doomed: subprocess.Popen[str], verb: str, least: int
) -> None:
    before = tmp_path / "before"

    async def prepare() -> dict[str, Any]:
        async with SqliteStore(before) as store:
            workflow = counting(store)
            # A run of the verb passes position 100, where the store looks.
            await workflow.run(SUPERSTEPS)
            await workflow.run(34)
        return await kept(before)

    line = asyncio.run(prepare())
    assert len(line) == SUPERSTEPS + 36
    seen: set[int] = set()
    for statement in itertools.count(1):
        place = tmp_path / f"{statement}"
        shutil.copytree(before, place)
        status = ask(doomed, place, statement, verb)
        assert status in (0, -9)
        sound(place)
        left = asyncio.run(kept(place))
        seen.add(len(left))
        new = [name for name in left if name not in line]
        assert len(new) <= (4 if verb == "run" else 0)
        old = [name for name in line if name in left]
        assert old == list(line)[: len(old)], "the oldest have gone"
        for name in old:
            assert left[name] == line[name]
        if verb == "erase":
            assert len(left) in (0, len(line))
        else:
            assert len(left) >= KEEP
        # Whoever comes next finds nothing in its way.
        assert ask(doomed, place, 0, "run") == 0
        assert ask(doomed, place, 0, "prune") == 0
        assert len(asyncio.run(kept(place))) == KEEP
        if status == 0:
            break
    assert statement > least
    assert len(seen) > 1, "something went"
