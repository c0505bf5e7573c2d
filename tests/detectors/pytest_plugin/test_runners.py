"""Real races on a real engine, under whatever runs asynchronous tests."""

import pytest

from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

RACES = """
import agents
import pytest

pytestmark = [{marks}]

async def test_unwatched():
    await agents.lost_write()

@pytest.mark.tenure
async def test_race():
    await agents.lost_write()

@pytest.mark.tenure
async def test_clean():
    await agents.clean()

@pytest.mark.tenure(expect=["stale-discard", "leaked-write"])
async def test_expected():
    await agents.lost_write()
"""

SEEN = [
    "tenure found leaked write (violation) in *, stale discard (violation) in *",
    "violated: 2 violations in * operations*",
    "* on agent-framework/*",
    "*epoch 2 commits at run entry: a_key of epoch 1*",
    "*however, epoch 2 committed `a_key` in the engine's own commit at run entry *",
    "*epoch 1 discards (finalizer): b_key of epoch 2",
    "*however, epoch 1 discarded `b_key` (cause: finalizer)",
]

ANYIO = """
@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


@pytest.mark.parametrize(
    ("marks", "more", "arguments"),
    [
        pytest.param("", "", [], id="asyncio, automatic"),
        pytest.param(
            "pytest.mark.asyncio",
            "",
            ["--asyncio-mode=strict"],
            id="asyncio, strict",
        ),
        pytest.param(
            "pytest.mark.asyncio(loop_scope='module')",
            "",
            [],
            id="asyncio, one loop for several tests",
        ),
        pytest.param("pytest.mark.anyio", ANYIO, ["-pno:asyncio"], id="anyio"),
        pytest.param(
            "pytest.mark.anyio",
            ANYIO,
            ["--asyncio-mode=strict"],
            id="anyio beside asyncio",
        ),
    ],
)
def test_races_fail_the_tests_in_which_they_happen(project, marks, more, arguments):
    project.makepyfile(test_it=RACES.format(marks=marks) + more)
    if "-pno:asyncio" in arguments:
        # Nobody knows its settings then.
        project.path.joinpath("pyproject.toml").unlink()
    result = project.runpytest("-ra", *arguments)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(SEEN)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_race - *"])


@pytest.mark.parametrize("arguments", [[], ["--tenure"]])
def test_each_worker_of_xdist_judges_its_own_tests(project, arguments):
    project.makepyfile(
        test_it=RACES.format(marks=""),
        test_other="""
        import pytest
        import told

        @pytest.mark.tenure
        def test_fails_anyway():
            told.Instance().violation()
            raise LookupError("no such thing")
        """,
    )
    result = project.runpytest_subprocess("-ra", "-n", "2", *arguments)

    more = len(arguments)
    result.assert_outcomes(passed=3 - more, failed=2 + more)
    result.stdout.fnmatch_lines(SEEN)
    result.stdout.fnmatch_lines([
        "E       LookupError: no such thing",
        "*- tenure: stale discard (violation) in press -*",
        "*however, epoch 1 discarded `b` (cause: finalizer)",
    ])


def test_an_engine_is_instrumented_for_watched_tests_only(run):
    source = """
import agents
from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

def is_instrumented():
    return AgentFrameworkInstrumentor().is_instrumented_by_opentelemetry

@pytest.mark.tenure
def test_watched():
    assert is_instrumented()

def test_not_watched():
    assert not is_instrumented()
"""
    run(source).assert_outcomes(passed=2)


def test_an_engine_that_is_instrumented_already_stays_so(run):
    instrumentor = AgentFrameworkInstrumentor()
    instrumentor.instrument()
    try:
        source = """
import agents

@pytest.mark.tenure
async def test_race():
    await agents.lost_write()
"""
        run(source).assert_outcomes(failed=1)
        assert instrumentor.is_instrumented_by_opentelemetry
    finally:
        instrumentor.uninstrument()


INSTRUMENTORS = """
class Instrumentor:
    is_instrumented_by_opentelemetry = False

    def instrument(self):
        raise ValueError("version 9 is not known")
"""


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("no_such_module:Instrumentor", "No module named 'no_such_module'; run pip *"),
        ("instrumentors:Instrumentor", "version 9 is not known"),
    ],
)
def test_an_engine_that_cannot_be_watched_is_a_warning_and_no_silence(
    project, run, target, why
):
    project.makepyfile(fake_engine="", instrumentors=INSTRUMENTORS)
    fake = project.mkdir("fake-1.dist-info")
    fake.joinpath("METADATA").write_text("Name: fake\nVersion: 1\n")
    fake.joinpath("entry_points.txt").write_text(
        f"[opentelemetry_instrumentor]\ntenure_fake_engine = {target}\n"
    )
    project.syspathinsert()
    source = """
import fake_engine

@pytest.mark.tenure
def test_it():
    pass
"""
    result = run(source, "-Wdefault")

    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines([
        f"*PytestWarning: tenure cannot watch fake_engine: {why}"
    ])
