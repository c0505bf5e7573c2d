"""Workflows as pictures: whatever is in a graph is in its picture."""

import html
import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from tenure.runtime import (
    Case,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    handler,
    to_dot,
    to_mermaid,
)


class Text(Executor):
    @handler
    async def work(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.send_message(text)


class Join(Executor):
    @handler
    async def work(self, texts: list[str], ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output("".join(texts))


def is_long(text: str) -> bool:
    return len(text) > 10


def everything() -> Workflow:
    inner = WorkflowBuilder("inner", start=Text("first"))
    inner.add_edge("first", Text("second"))
    start, long, short = Text("start"), Text('long "x" <y>'), Text("short")
    sub = WorkflowExecutor(inner.build(), "sub")
    return (
        WorkflowBuilder("all", start=start)
        .add_switch(start, [Case(is_long, long)], default=short)
        .add_fan_out(long, [sub, Text("beside")])
        .add_edge(short, "beside", condition=lambda text: text == "x")
        .add_fan_in([sub, "beside"], Join("join"))
        .build()
    )


def test_mermaid_shows_conditions_fan_ins_and_sub_workflows() -> None:
    drawn = to_mermaid(everything())
    assert drawn.startswith("flowchart TD\n")
    assert 'estart(["start"])' in drawn
    assert '-.->|"is_long"| ' in drawn
    assert 'estart -.->|"else"| eshort' in drawn
    assert 'eshort -.->|"condition"| ebeside' in drawn
    assert '    subgraph esub["sub"]\n        esub_2f_first(["first"])' in drawn
    assert "esub_2f_first --> esub_2f_second" in drawn
    assert "((+))" in drawn
    assert '["long #quot;x#quot; #lt;y#gt;"]' in drawn


def test_dot_shows_the_same() -> None:
    drawn = to_dot(everything())
    assert 'subgraph "cluster sub" {' in drawn
    assert '"start" -> "short" [label="else", style=dashed];' in drawn
    assert 'lhead="cluster sub"' in drawn
    assert '"long \\"x\\" <y>"' in drawn


@pytest.mark.parametrize("layout", ["-Tplain"])
def test_graphviz_takes_the_picture_where_it_is_installed(layout: str) -> None:
    dot = shutil.which("dot")
    drawn = to_dot(everything())
    if dot is None:
        assert drawn.count("{") == drawn.count("}")
        return
    done = subprocess.run(
        [dot, layout], input=drawn, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "short" in done.stdout


ODD = [
    "end",
    "subgraph",
    "%%{init: {'theme': 'dark'}}%%",
    "`code`",
    "`begins",
    "#quot;",
    "#35;",
    'a"b[c](d){e}|f|',
    "a --> b",
    "<b>bold</b>",
    "a&amp;b",
    "back\\slash\\n",
    "two\nlines",
    "\0\x1b[31m",
    "\u2028",
    "\ud800",
    "数\U0001f600é",
    "long " * 500,
    " ",
    "+0 join",
]
LABEL = r'"((?:[^"#%`<>&\x00-\x1f\ud800-\udfff]|#\w+;)+)"'
MERMAID = [
    re.compile(pattern)
    for pattern in (
        rf"    e\w+\(\[{LABEL}\]\)",
        rf"    e\w+\[{LABEL}\]",
        rf"    e\w+ -\.->\|{LABEL}\| e\w+",
    )
]


def odd(name: str) -> Workflow:
    """A workflow in which everything is called `name`."""

    def condition(text: str) -> bool:
        return bool(text)

    condition.__name__ = name
    start, end = Text(name), Text(f"{name}2")
    return WorkflowBuilder(name, start=start).add_edge(start, end, condition).build()


def seen(name: str) -> str:
    """Return what one can see of a name."""
    plain = re.sub(r"[\x00-\x1f\u2028]", " ", name)
    return plain.encode(errors="replace").decode()


def entity(found: re.Match[str]) -> str:
    """Return the character that Mermaid shows for an entity."""
    digits = "#" if found[1].isdigit() else ""
    return html.unescape(f"&{digits}{found[1]};")


@pytest.mark.parametrize("name", ODD)
def test_mermaid_takes_whatever_things_are_called(name: str) -> None:
    first, *lines = to_mermaid(odd(name)).splitlines()
    assert first == "flowchart TD"
    labels: list[str] = []
    for line, pattern in zip(lines, MERMAID, strict=True):
        found = pattern.fullmatch(line)
        assert found, line
        labels.append(re.sub(r"#(\w+);", entity, found[1]))
    assert labels == [seen(name), seen(f"{name}2"), seen(name)]


def as_graphviz_sees_it(drawn: str) -> dict[str, Any]:
    """Return what graphviz makes of a picture; nothing where it is not installed."""
    dot = shutil.which("dot")
    if dot is None:
        return {}
    done = subprocess.run(
        [dot, "-Tjson"], input=drawn.encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    parsed: dict[str, Any] = json.loads(done.stdout, strict=False)
    return parsed


@pytest.mark.parametrize("name", ODD)
def test_graphviz_takes_whatever_things_are_called(name: str) -> None:
    drawn = to_dot(odd(name))
    assert len(drawn.splitlines()) == 8
    parsed = as_graphviz_sees_it(drawn)
    if parsed:
        assert len(parsed["objects"]) == 2
        assert len(parsed["edges"]) == 1


def test_an_executor_is_not_taken_for_one_of_a_sub_workflow() -> None:
    inner = WorkflowBuilder("inner", start=Text("b")).build()
    sub = WorkflowExecutor(inner, "a")
    workflow = WorkflowBuilder("all", start=sub).add_edge(sub, Text("a/b")).build()
    drawn = to_mermaid(workflow)
    assert 'ea_2f_b(["b"])' in drawn
    assert 'ea_25_2Fb["a/b"]' in drawn
    assert "    ea --> ea_25_2Fb\n" in drawn
    parsed = as_graphviz_sees_it(to_dot(workflow))
    if parsed:
        labels = [one["label"] for one in parsed["objects"]]
        assert sorted(labels) == ["a", "a/b", "b"]


def test_an_executor_is_not_taken_for_a_join() -> None:
    start, join = Text("start"), Join("join")
    both = [Text("b"), Text("+0 join")]
    builder = WorkflowBuilder("all", start=start).add_fan_out(start, both)
    workflow = builder.add_fan_in(both, join).build()
    lines = to_mermaid(workflow).splitlines()
    ids = [line.split("[")[0].split("(")[0] for line in lines[1:6]]
    assert len(set(ids)) == 5
    parsed = as_graphviz_sees_it(to_dot(workflow))
    if parsed:
        assert len(parsed["objects"]) == 5
