"""A workflow as a picture: Mermaid for documents, DOT for graphviz. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tenure.runtime._executor import Executor
from tenure.runtime._graph import (
    Edge,
    FanInEdge,
    FanOutEdge,
    Graph,
    SingleEdge,
    SwitchEdge,
)
from tenure.runtime._subworkflow import WorkflowExecutor
from tenure.runtime._workflow import Workflow


@dataclass(frozen=True, slots=True)
class _Arrow:
    """One line of the picture."""

    source: str
    target: str
    label: str = ""
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class _Join:
    """Where the lines of a fan-in meet."""

    name: str
    target: str


def to_mermaid(workflow: Workflow) -> str:
    """Return the workflow as a Mermaid flowchart.

    Conditional ways are dotted and labelled, a fan-in meets in a circle, and a
    sub-workflow is a frame around its own executors.

    Args:
        workflow: The workflow.
    """
    lines = ["flowchart TD", *_mermaid(workflow.graph, "", "    ")]
    return "\n".join(lines) + "\n"


def to_dot(workflow: Workflow) -> str:
    """Return the workflow in graphviz's DOT language; it shows what `to_mermaid` shows.

    Args:
        workflow: The workflow.
    """
    lines = [
        f"digraph {_quoted(workflow.name)} {{",
        "    compound=true;",
        '    node [shape=box, style=rounded, fontname="sans-serif"];',
        '    edge [fontname="sans-serif", fontsize=10];',
        *_dot(workflow.graph, "", "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _mermaid(graph: Graph, prefix: str, indent: str) -> Iterator[str]:
    for name, one in graph.executors.items():
        yield from _mermaid_executor(one.executor, prefix + name, indent, graph.start)
    arrows, joins = _ways(graph, prefix)
    for join in joins:
        yield f"{indent}{_id(join.name)}((+))"
    for arrow in arrows:
        line = "-.->" if arrow.dashed else "-->"
        label = f"|{_escaped(arrow.label)}|" if arrow.label else ""
        yield f"{indent}{_id(arrow.source)} {line}{label} {_id(arrow.target)}"


def _mermaid_executor(
    executor: Executor, name: str, indent: str, start: str
) -> Iterator[str]:
    label = _escaped(executor.id)
    if isinstance(executor, WorkflowExecutor):
        yield f"{indent}subgraph {_id(name)}[{label}]"
        yield from _mermaid(executor.workflow.graph, f"{name}/", indent + "    ")
        yield f"{indent}end"
    elif executor.id == start:
        yield f"{indent}{_id(name)}([{label}])"
    else:
        yield f"{indent}{_id(name)}[{label}]"


def _dot(graph: Graph, prefix: str, indent: str) -> Iterator[str]:
    for name, one in graph.executors.items():
        yield from _dot_executor(one.executor, prefix + name, indent, graph.start)
    arrows, joins = _ways(graph, prefix)
    for join in joins:
        yield f'{indent}{_quoted(join.name)} [shape=circle, label="+"];'
    for arrow in arrows:
        facts = [f"label={_quoted(arrow.label)}"] if arrow.label else []
        facts += ["style=dashed"] if arrow.dashed else []
        facts += [
            f"{end}={_quoted(f'cluster {name}')}"
            for end, name in (("ltail", arrow.source), ("lhead", arrow.target))
            if _is_frame(graph, name, prefix)
        ]
        more = f" [{', '.join(facts)}]" if facts else ""
        source, target = (
            _quoted(_inside(graph, name, prefix))
            for name in (arrow.source, arrow.target)
        )
        yield f"{indent}{source} -> {target}{more};"


def _dot_executor(
    executor: Executor, name: str, indent: str, start: str
) -> Iterator[str]:
    if isinstance(executor, WorkflowExecutor):
        yield f"{indent}subgraph {_quoted(f'cluster {name}')} {{"
        yield f"{indent}    label={_quoted(executor.id)};"
        yield from _dot(executor.workflow.graph, f"{name}/", indent + "    ")
        yield f"{indent}}}"
    else:
        shape = ", shape=oval" if executor.id == start else ""
        yield f"{indent}{_quoted(name)} [label={_quoted(executor.id)}{shape}];"


def _is_frame(graph: Graph, name: str, prefix: str) -> bool:
    one = graph.executors.get(name.removeprefix(prefix))
    return one is not None and isinstance(one.executor, WorkflowExecutor)


def _inside(graph: Graph, name: str, prefix: str) -> str:
    """Return what a line to a frame ends at: graphviz draws none to a cluster."""
    one = graph.executors.get(name.removeprefix(prefix))
    if one is None or not isinstance(one.executor, WorkflowExecutor):
        return name
    inner = one.executor.workflow.graph
    return _inside(inner, f"{name}/{inner.start}", f"{name}/")


def _ways(graph: Graph, prefix: str) -> tuple[list[_Arrow], list[_Join]]:
    edges: dict[int, Edge] = {
        id(edge): edge for leaving in graph.leaving.values() for edge in leaving
    }
    arrows: list[_Arrow] = []
    joins: list[_Join] = []
    for edge in edges.values():
        if isinstance(edge, FanInEdge):
            join = _Join(f"{prefix}+{len(joins)} {edge.target}", prefix + edge.target)
            joins.append(join)
            arrows += [_Arrow(prefix + source, join.name) for source in edge.sources]
            arrows.append(_Arrow(join.name, join.target))
        else:
            arrows += _from_one(edge, prefix)
    return arrows, joins


def _from_one(
    edge: SingleEdge | FanOutEdge | SwitchEdge, prefix: str
) -> Iterator[_Arrow]:
    source = prefix + edge.source
    match edge:
        case SingleEdge():
            label = _name_of(edge.condition)
            yield _Arrow(source, prefix + edge.target, label, bool(label))
        case FanOutEdge():
            label = _name_of(edge.select)
            for target in edge.targets:
                yield _Arrow(source, prefix + target, label, bool(label))
        case SwitchEdge():
            for when, target in edge.cases:
                yield _Arrow(source, prefix + target, _name_of(when), dashed=True)
            yield _Arrow(source, prefix + edge.default, "else", dashed=True)


def _name_of(function: Callable[..., Any] | None) -> str:
    """Return how a picture calls a condition: by its name, if it has one."""
    if function is None:
        return ""
    name = str(getattr(function, "__name__", type(function).__name__))
    return "condition" if name == "<lambda>" else name


def _id(name: str) -> str:
    """Return an id that Mermaid takes, whatever is in a name."""
    return "e" + "".join(
        char if char.isascii() and char.isalnum() else f"_{ord(char):x}_"
        for char in name
    )


def _escaped(text: str) -> str:
    """Return a label that Mermaid takes, whatever is in it."""
    plain = text.replace("&", "#amp;").replace('"', "#quot;")
    plain = plain.replace("<", "#lt;").replace(">", "#gt;").replace("\n", " ")
    return f'"{plain}"'


def _quoted(text: str) -> str:
    """Return a DOT string."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{plain}"'
