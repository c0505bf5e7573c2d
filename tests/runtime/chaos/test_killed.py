"""Runs that are killed: what was committed stays, and nothing is done twice."""

import itertools
import os
import random
import sqlite3
from pathlib import Path

import pytest

from .database import database, wrong_in
from .processes import ask, end, start

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL"),
    pytest.mark.timeout(600),
]


@pytest.mark.parametrize("steps", [3, 12])
def test_killed_at_any_statement_and_resumed_nothing_is_lost_or_done_twice(
    tmp_path: Path, steps: int
) -> None:
    """Kill a run at every statement, and the run that resumes it at another one.

    langchain-ai/langgraph#8039: writes and the checkpoint that followed them were kept
    one after the other, in either order; a crash in between had work done twice.

    Right: a superstep is kept in one transaction, so there is no between.
    """
    process = start("kennel", tmp_path)
    chance = random.Random(steps)
    killed = 0
    try:
        for statement in itertools.count(1):
            place = tmp_path / f"{statement}"
            status = ask(process, place.name, statement, "run", steps)
            assert status in ("0", "-9")
            if status == "0":
                break
            killed += 1
            assert _committed(place, steps) <= steps
            while chance.random() < 0.6:
                # Which statement, and whether that run comes so far, is left to chance.
                before = _committed(place, steps)
                status = ask(process, place.name, chance.randint(1, 20), "resume", 0)
                killed += status == "-9"
                assert before <= _committed(place, steps) <= steps
            entered = _has_entered(place)
            status = ask(process, place.name, 0, "resume", 0)
            assert status == ("0" if entered else "1"), "there is nothing to resume"
            assert _committed(place, steps) == (steps if entered else 0)
            assert wrong_in(place) == [] if entered else True
    finally:
        end(process)
    assert killed > 4 * steps


def _tables(directory: Path) -> bool:
    files = list(directory.glob("chaos*.sqlite3"))
    if not files:
        return False
    base = sqlite3.connect(files[0])
    try:
        return bool(
            base.execute(
                "SELECT 1 FROM sqlite_master WHERE name = 'tenure_checkpoint'"
            ).fetchone()
        )
    finally:
        base.close()


def _has_entered(directory: Path) -> bool:
    if not _tables(directory):
        return False
    base = database(directory)
    try:
        [count] = base.execute("SELECT count(*) FROM tenure_checkpoint").fetchone()
        return bool(count)
    finally:
        base.close()


def _committed(directory: Path, steps: int) -> int:
    """Return how many supersteps are committed, none of them twice."""
    if not _tables(directory):
        return 0
    base = database(directory)
    try:
        [count] = base.execute(
            "SELECT count(*) FROM tenure_checkpoint WHERE kind = 'superstep'"
        ).fetchone()
        return int(count)
    finally:
        base.close()
