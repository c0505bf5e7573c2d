"""Workflows as pictures: whatever is in a graph is in its picture."""

import shutil
import subprocess

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
