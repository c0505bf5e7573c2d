"""The plugin costs a session that does not use it next to nothing."""

import subprocess
import sys
from importlib.metadata import entry_points

MODULE = "tenure.detectors.pytest_plugin"
BUDGET = 0.010

LOADED = f"""
import pytest, sys
before = set(sys.modules)
import {MODULE}
print(*sorted(set(sys.modules) - before))
"""

TIMED = f"""
import pytest, time
before = time.perf_counter()
import {MODULE}
print(time.perf_counter() - before)
"""


def printed(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return done.stdout


def test_installing_tenure_is_enough():
    (plugin,) = (point for point in entry_points(group="pytest11", name="tenure"))
    assert plugin.value == MODULE


def test_pytest_loads_the_plugin_and_nothing_else():
    # `tenure` itself is a namespace: there is no file to load.
    expected = {"tenure", "tenure.detectors", MODULE, f"{MODULE}._options"}
    assert set(printed(LOADED).split()) == expected


def test_a_session_that_watches_nothing_loads_nothing_more(project):
    project.makepyfile(
        test_it="""
        import sys

        def test_it():
            heavy = ("opentelemetry", "anyio", "rich", "tenure.runtime",
                     "tenure.instrumentation", "tenure.detectors.detector")
            assert not [name for name in heavy if name in sys.modules]
        """
    )
    # Other plugins are left out: some of them load what this one must not.
    arguments = ["-pno:anyio", "-pno:asyncio", "-pno:hypothesispytest"]
    project.path.joinpath("pyproject.toml").unlink()
    project.runpytest_subprocess(*arguments).assert_outcomes(passed=1)


def test_loading_the_plugin_takes_less_than_ten_milliseconds():
    # The quickest of several: this is about the plugin, not about the machine.
    assert min(float(printed(TIMED)) for _ in range(5)) < BUDGET
