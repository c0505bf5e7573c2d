"""langgraph: a chain whose supersteps its SQLite saver keeps.

Install it into an environment of its own, with aiosqlite's synchronous mode left as the
saver sets it: `.venvs/langgraph/bin/pip install langgraph langgraph-checkpoint-sqlite`.
"""

import itertools
import sys
import tempfile
from contextlib import AsyncExitStack
from typing import Any, TypedDict

from harness import PAD, Peer, Prepared, Request, UnsupportedError, disk, main


class State(TypedDict):
    """What the graph keeps."""

    number: int
    last: int
    pad: str


async def increment(state: State) -> dict[str, Any]:
    """Add one, and set 1 KB."""
    return {"number": state["number"] + 1, "pad": "x" * PAD}


def checkpoint(request: Request) -> Prepared:
    """Two nodes that send a number to and fro, saved after each of them."""
    try:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
        from langgraph.graph import END, START, StateGraph
    except ImportError as exc:
        raise UnsupportedError(str(exc)) from exc
    last = request.n
    stack = AsyncExitStack()
    directory = tempfile.TemporaryDirectory(dir=disk())
    graph: Any = StateGraph(State)
    graph.add_node("a", increment)
    graph.add_node("b", increment)
    graph.add_edge(START, "a")
    for here, there in (("a", "b"), ("b", "a")):
        graph.add_conditional_edges(
            here, lambda state, to=there: to if state["number"] < state["last"] else END
        )
    compiled: list[Any] = []
    threads = itertools.count()

    async def prepare() -> None:
        saver = await stack.enter_async_context(
            AsyncSqliteSaver.from_conn_string(f"{directory.name}/langgraph.sqlite3")
        )
        await saver.setup()
        # What this case is about: an acknowledged checkpoint survives a power failure.
        await saver.conn.execute("PRAGMA synchronous = FULL")
        compiled.append(graph.compile(checkpointer=saver))

    async def go() -> int:
        config = {
            "configurable": {"thread_id": f"t{next(threads)}"},
            "recursion_limit": last + 10,
        }
        begin = {"number": 0, "last": last, "pad": ""}
        found = await compiled[0].ainvoke(begin, config, durability="sync")
        return int(found["number"])

    return Prepared(
        go=go, units=last, check=lambda got: got == last, before=prepare,
        note="synchronous = FULL, durability sync",
    )  # fmt: skip


PEER = Peer("langgraph", "langgraph", {"checkpoint": checkpoint})

if __name__ == "__main__":
    sys.exit(main(PEER))
