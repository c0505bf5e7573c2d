"""`tenure graph` draws a workflow that it imports."""

import json
import os
import shutil
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


def graph(
    folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    code = "import sys; from tenure.cli import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", code, "graph", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
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


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
        ("raise RuntimeError('no')", "cannot be imported: RuntimeError: no"),
        ("def broken(:", "cannot be imported: SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_the_reason(
    folder: Path, first: str, said: str
) -> None:
    (folder / "press_module.py").write_text(f"{first}\n{MODULE}")
    done = graph(folder, "press_module:workflow")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_a_module_prints_is_no_part_of_the_document(folder: Path) -> None:
    (folder / "press_module.py").write_text(f"print('noise')\n{MODULE}")
    done = graph(folder, "press_module:make", "--json")
    assert json.loads(done.stdout)["workflow"] == "press"
    assert done.stderr == "noise\n"


def test_a_module_may_change_the_path_that_it_is_found_by(folder: Path) -> None:
    first = "import sys; sys.path[:] = [one for one in sys.path if one]"
    (folder / "press_module.py").write_text(f"{first}\n{MODULE}")
    done = graph(folder, "press_module:workflow")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_coroutine_is_no_workflow(folder: Path) -> None:
    (folder / "press_module.py").write_text(f"{MODULE}\nasync def later(): ...\n")
    done = graph(folder, "press_module:later")
    assert done.returncode == 2
    assert "is coroutine, not a Workflow" in done.stderr
    assert done.stderr.count("\n") == 1


def test_svg_needs_graphviz_that_works(folder: Path) -> None:
    broken = folder / "broken"
    broken.mkdir()
    (broken / "dot").write_text("what is this?")
    (broken / "dot").chmod(0o755)
    for path, said in (("", "svg needs graphviz"), (str(broken), "cannot be run")):
        done = graph(folder, "press_module:workflow", "-f", "svg", PATH=path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_svg_may_show_any_letter_whatever_the_locale(folder: Path) -> None:
    text = MODULE.replace("@executor\nasync def w", '@executor(id="é数")\nasync def w')
    (folder / "press_module.py").write_text(text, encoding="utf-8")
    done = graph(
        *(folder, "press_module:workflow", "-f", "svg", "-o", "press.svg"),
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    if shutil.which("dot") is None:
        assert "svg needs graphviz" in done.stderr
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert "é数" in (folder / "press.svg").read_text(encoding="utf-8")
