"""A workflow as a picture: Mermaid for documents, DOT for graphviz. Pure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

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

_UNSEEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_ODD: Final = re.compile(rf"[%/\ud800-\udfff]|{_UNSEEN.pattern}")
_ENTITIES: Final = {
    "#": "#35;",  # the beginning of an entity
    "%": "#37;",  # of a comment, or a directive
    "`": "#96;",  # of Markdown
    "&": "#amp;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
}


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
        f"digraph {_quoted(_place('', workflow.name))} {{",
        "    compound=true;",
        '    node [shape=box, style=rounded, fontname="sans-serif"];',
        '    edge [fontname="sans-serif", fontsize=10];',
        *_dot(workflow.graph, "", "    "),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _mermaid(graph: Graph, prefix: str, indent: str) -> Iterator[str]:
    for name, one in graph.executors.items():
        place = _place(prefix, name)
        yield from _mermaid_executor(one.executor, place, indent, graph.start)
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
    frames: dict[str, str] = {}
    for name, one in graph.executors.items():
        place = _place(prefix, name)
        yield from _dot_executor(one.executor, place, indent, graph.start)
        if isinstance(one.executor, WorkflowExecutor):
            frames[place] = _inside(one.executor, place)
    arrows, joins = _ways(graph, prefix)
    for join in joins:
        yield f'{indent}{_quoted(join.name)} [shape=circle, label="+"];'
    for arrow in arrows:
        facts = [f"label={_label(arrow.label)}"] if arrow.label else []
        facts += ["style=dashed"] if arrow.dashed else []
        facts += [
            f"{end}={_quoted(f'cluster {place}')}"
            for end, place in (("ltail", arrow.source), ("lhead", arrow.target))
            if place in frames
        ]
        more = f" [{', '.join(facts)}]" if facts else ""
        # Graphviz draws no line to a frame: it ends at something inside.
        source, target = (
            _quoted(frames.get(place, place)) for place in (arrow.source, arrow.target)
        )
        yield f"{indent}{source} -> {target}{more};"


def _dot_executor(
    executor: Executor, place: str, indent: str, start: str
) -> Iterator[str]:
    if isinstance(executor, WorkflowExecutor):
        yield f"{indent}subgraph {_quoted(f'cluster {place}')} {{"
        yield f"{indent}    label={_label(executor.id)};"
        yield from _dot(executor.workflow.graph, f"{place}/", indent + "    ")
        yield f"{indent}}}"
    else:
        shape = ", shape=oval" if executor.id == start else ""
        yield f"{indent}{_quoted(place)} [label={_label(executor.id)}{shape}];"


def _inside(executor: WorkflowExecutor, place: str) -> str:
    """Return the place of an executor inside a sub-workflow: where that starts."""
    inner = executor.workflow.graph
    start = inner.executors[inner.start].executor
    place = _place(f"{place}/", inner.start)
    return _inside(start, place) if isinstance(start, WorkflowExecutor) else place


def _ways(graph: Graph, prefix: str) -> tuple[list[_Arrow], list[_Join]]:
    edges: dict[int, Edge] = {
        id(edge): edge for leaving in graph.leaving.values() for edge in leaving
    }
    arrows: list[_Arrow] = []
    joins: list[_Join] = []
    for edge in edges.values():
        if isinstance(edge, FanInEdge):
            target = _place("", edge.target)
            join = _Join(f"{prefix}+{len(joins)} {target}", prefix + target)
            joins.append(join)
            arrows += [
                _Arrow(_place(prefix, source), join.name) for source in edge.sources
            ]
            arrows.append(_Arrow(join.name, join.target))
        else:
            arrows += _from_one(edge, prefix)
    return arrows, joins


def _from_one(
    edge: SingleEdge | FanOutEdge | SwitchEdge, prefix: str
) -> Iterator[_Arrow]:
    source = _place(prefix, edge.source)
    match edge:
        case SingleEdge():
            label = _name_of(edge.condition)
            yield _Arrow(source, _place(prefix, edge.target), label, bool(label))
        case FanOutEdge():
            label = _name_of(edge.select)
            for target in edge.targets:
                yield _Arrow(source, _place(prefix, target), label, bool(label))
        case SwitchEdge():
            for when, target in edge.cases:
                way = _place(prefix, target)
                yield _Arrow(source, way, _name_of(when), dashed=True)
            yield _Arrow(source, _place(prefix, edge.default), "else", dashed=True)


def _name_of(function: Callable[..., Any] | None) -> str:
    """Return how a picture calls a condition: by its name, if it has one."""
    if function is None:
        return ""
    name = str(getattr(function, "__name__", type(function).__name__))
    return "condition" if name == "<lambda>" else name


def _place(prefix: str, name: str) -> str:
    """Return what tells an executor from all others of the picture.

    Args:
        prefix: Where its workflow is.
        name: Its id, in which no slash may look like a place inside another, and no
            plus at the beginning like a join.
    """
    plain = _ODD.sub(lambda found: f"%{ord(found[0]):02X}", name)
    return f"{prefix}%2B{plain[1:]}" if plain.startswith("+") else prefix + plain


def _id(place: str) -> str:
    """Return an id that Mermaid takes, whatever is in a place."""
    return "e" + "".join(
        char if char.isascii() and char.isalnum() else f"_{ord(char):x}_"
        for char in place
    )


def _escaped(text: str) -> str:
    """Return a label that Mermaid takes, whatever is in it."""
    plain = "".join(_ENTITIES.get(char, char) for char in _shown(text))
    return f'"{plain}"'


def _label(text: str) -> str:
    """Return a DOT string that is shown as it is."""
    return _quoted(_shown(text).replace("&", "&amp;"))


def _quoted(text: str) -> str:
    """Return a DOT string."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain}"'


def _shown(text: str) -> str:
    """Return a text without what nobody can see, or no file can hold."""
    return _UNSEEN.sub(" ", text).encode(errors="replace").decode()
