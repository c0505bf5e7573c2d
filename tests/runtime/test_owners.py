"""Who seems to live, of those who hold instances."""

import os
import subprocess
import sys
import time

import pytest

from tenure.instrumentation.process import process_id
from tenure.runtime._checkpoint import Held
from tenure.runtime.stores._owners import held_by_another, is_gone

HOST, PID, START = process_id().rsplit("-", 2)


def ended() -> int:
    """Return the number of a process that has ended."""
    return int(
        subprocess.check_output([sys.executable, "-c", "import os; print(os.getpid())"])
    )


@pytest.mark.parametrize(
    ("holder", "gone"),
    [
        (process_id(), False),
        (f"{process_id()}/another workflow of this process", False),
        (f"{HOST}-{os.getppid()}-0/ab", False),
        (f"{HOST}-{ended()}-{START}/ab", True),
        (f"elsewhere-{PID}-0/ab", False),
        ("of another make", False),
        (f"{HOST}-none-0", False),
        ("", False),
    ],
    # What processes are called differs from run to run.
    ids=["this one", "itself", "its parent", "ended", "afar", "foreign", "odd", "none"],
)
def test_a_process_is_gone_if_it_was_of_this_machine_and_has_ended(
    holder: str, gone: bool
) -> None:
    assert is_gone(holder) is gone


def test_who_had_this_process_s_number_before_it_is_gone() -> None:
    # In a container the first process has the number 1, whenever it is started.
    before = f"{HOST}-{PID}-{int(START, 16) - 1:x}/ab"
    assert is_gone(before)
    row = (3, "run", before, 1, time.time() + 30)
    assert held_by_another(row, f"{process_id()}/cd") is None
    living = (3, "run", f"{process_id()}/ab", 1, time.time() + 30)
    assert isinstance(held_by_another(living, f"{process_id()}/cd"), Held)
