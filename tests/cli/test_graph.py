"""`tenure graph` draws a workflow that it imports."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
from tenure.runtime import WorkflowBuilder, WorkflowContext, executor


@executor
async def write(text: str, ctx: WorkflowContext[str, None]) -> None:
    await ctx.send_message(text)


@executor
async def publish(text: str, ctx: WorkflowContext[None, str]) -> None:
    await ctx.yield_output(text)


def make():
    return WorkflowBuilder("press", start=write).add_edge(write, publish).build()


workflow = make()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "press_module.py").write_text(MODULE)
    return tmp_path


def graph(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from tenure.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, "graph", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("name", ["workflow", "make"])
def test_a_workflow_is_drawn_as_mermaid(folder: Path, name: str) -> None:
    done = graph(folder, f"press_module:{name}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "ewrite --> epublish" in done.stdout


def test_json_is_one_document(folder: Path) -> None:
    document = json.loads(graph(folder, "press_module:workflow", "--json").stdout)
    assert document["workflow"] == "press"
    assert [one["id"] for one in document["executors"]] == ["write", "publish"]


def test_a_picture_goes_into_a_file(folder: Path) -> None:
    done = graph(folder, "press_module:workflow", "-f", "dot", "-o", "press.dot")
    assert (done.returncode, done.stdout) == (0, "")
    assert (folder / "press.dot").read_text().startswith('digraph "press"')


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("press_module", "write MODULE:WORKFLOW"),
        ("nowhere:workflow", "cannot be imported: ModuleNotFoundError"),
        ("press_module:nothing", "cannot be imported: AttributeError"),
        ("press_module:MODULE", "cannot be imported"),
        ("press_module:write", "not a Workflow"),
    ],
)
def test_what_is_no_workflow_is_refused_in_one_line(
    folder: Path, reference: str, said: str
) -> None:
    done = graph(folder, reference)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
