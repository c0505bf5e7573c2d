"""The frame of the command line: help, version, and how everything else ends."""

import os
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

PROGRAM = "import sys; from tenure.cli import main; sys.exit(main())"


def run(
    *arguments: str, program: str = PROGRAM, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        env={**clean, **variables},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def without(*modules: str) -> str:
    """The program in an installation that lacks `modules`."""
    return f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == each or name.startswith(each + ".") for each in {modules!r}):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
{PROGRAM}
"""


def test_the_console_script_is_the_function_main():
    (script,) = entry_points(group="console_scripts", name="tenure")

    assert script.value == "tenure.cli:main"
    assert script.load().__module__ == "tenure.cli"


def test_version_is_that_of_the_distribution():
    done = run("--version")

    assert (done.returncode, done.stdout) == (0, f"tenure {version('tenure')}\n")


def test_help_names_the_commands_and_the_exit_statuses():
    done = run("--help")

    assert done.returncode == 0
    assert "demo" in done.stdout
    assert "Exit status: 0 clean" in done.stdout


def test_the_help_of_demo_names_every_option():
    done = run("demo", "--help")

    assert done.returncode == 0
    for option in ("--json", "--output", "--engine", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        assert option in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--nonsense",),
        ("nonsense",),
        ("demo", "--nonsense"),
        ("demo", "--engine", "nonsense"),
        ("demo", "surplus"),
    ],
)
def test_bad_usage_exits_with_two_and_no_traceback(arguments: tuple[str, ...]):
    done = run(*arguments)

    assert done.returncode == 2
    assert "Usage: tenure" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_base_installation_says_in_one_line_what_to_install(missing: str):
    done = run("demo", program=without(missing))

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "tenure: the command line is not installed; run pip install 'tenure[cli]'\n"
    )


@pytest.mark.parametrize(
    "missing",
    [
        "agent_framework",
        "opentelemetry.instrumentation",
        "opentelemetry.sdk",
        "opentelemetry.exporter",
        "wrapt",
    ],
)
def test_a_missing_extra_of_demo_is_one_line(missing: str, tmp_path: Path):
    done = run("demo", program=without(missing), cwd=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert missing in done.stderr
    assert done.stderr.endswith("not installed; run pip install 'tenure[demo]'\n")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_help_loads_nothing_heavy():
    done = run(
        "demo",
        "--help",
        program="""
import sys
from tenure.cli import main
try:
    main()
finally:
    heavy = ("agent_framework", "opentelemetry", "tenure.runtime", "tenure.detectors")
    sys.stderr.write(repr([name for name in sys.modules if name.startswith(heavy)]))
""",
    )

    assert done.stderr == "[]"
