"""A project of its own, with races to play and pytest to run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from agent_framework import WorkflowBuilder

from tenure.detectors.pytest_plugin import _watch
from tenure.instrumentation import agent_framework

SHARED = (WorkflowBuilder, _watch, agent_framework)
"""pytester forgets what an inner run is the first to import. What counts once in a
process (the engine, its instrumentor, listeners) is imported here, to be shared."""

PROGRAMS = Path(__file__).parents[1] / "programs"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with programs that race; `agents` on a real engine, `told` without.

    Hypothesis is left out: its plugin takes a second in every session.
    """
    for program in PROGRAMS.glob("*.py"):
        pytester.makepyfile(**{program.stem: program.read_text("utf-8")})
    pytester.makepyprojecttoml(
        """
        [tool.pytest.ini_options]
        addopts = ["--strict-markers", "--strict-config", "-pno:hypothesispytest"]
        filterwarnings = ["error"]
        asyncio_mode = "auto"
        asyncio_default_fixture_loop_scope = "function"
        """
    )
    return pytester


@pytest.fixture
def run(project: pytest.Pytester) -> Run:
    """Write a test file into the project and run it, in this process."""

    def run(source: str, *arguments: str) -> pytest.RunResult:
        project.makepyfile(
            test_it=f"import asyncio, gc\nimport pytest\nimport told\n{source}"
        )
        return project.runpytest("-ra", "test_it.py", *arguments)

    return run
