"""What a detector remembers is bounded, measured in a process of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "soundness.py"


def measure(instances: int, operations: int) -> dict[str, float]:
    sizes = ["--instances", str(instances), "--operations", str(operations)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--json", *sizes],
        check=True,
        capture_output=True,
        text=True,
        timeout=150,
    )
    return json.loads(done.stdout)


@pytest.mark.timeout(180)
def test_a_million_operations_of_ten_thousand_instances_take_little_memory_and_time():
    found = measure(instances=10_000, operations=1_000_000)

    assert found["operations"] == 1_000_000
    assert found["kilobytes_per_instance"] < 8
    assert found["seconds"] < 30


@pytest.mark.timeout(180)
def test_instances_that_live_for_ever_stop_growing():
    # 5,000 operations each are some 250 runs, of which 64 are remembered.
    found = measure(instances=100, operations=500_000)

    assert found["kilobytes_per_instance"] < 80
    assert found["growth_after_half"] < 0.2


@pytest.mark.timeout(120)
def test_the_measured_recall_has_no_wrong_finding():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "recall", "--histories", "30"],
        check=False,
        capture_output=True,
        text=True,
        timeout=110,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert "of which wrong: **0**" in done.stdout
