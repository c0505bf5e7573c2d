"""Processes that are killed while they prune or erase: started by the test beside this.

    doomed.py

For each line of its input, a directory, a statement's number and a verb, it forks a
process that is killed when SQLite is about to execute that statement, and answers with
the process's exit status.
"""

import asyncio
import os
import sys

from tenure.runtime import (
    SqliteStore,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
)

KEEP = 3


@executor
async def count(left: int, ctx: WorkflowContext[int, None]) -> None:
    """Change a little of a state that is not so small."""
    if not ctx.get_state("steady"):
        ctx.set_state("steady", "y" * 2_000)
    ctx.set_state(f"left {left % 3}", left)
    if left > 1:
        await ctx.send_message(left - 1)


def counting(store: SqliteStore) -> Workflow:
    builder = WorkflowBuilder("doomed", start=count, store=store)
    return builder.add_edge(count, count).build()


def die_at(directory: str, statement: int, verb: str) -> None:
    """Do something, and be killed at a statement if it comes so far."""
    from fatal import FatalStore  # it lies beside this program, not beside the test

    store = FatalStore(directory, statement, keep=KEEP if verb == "run" else None)

    async def go() -> None:
        workflow = counting(store)
        match verb:
            case "prune":
                await workflow.prune(keep=KEEP)
            case "erase":
                await workflow.erase()
            case _:
                await workflow.run(3)

    asyncio.run(go())
    os._exit(0)


def main() -> None:
    for line in sys.stdin:
        directory, statement, verb = line.rsplit(maxsplit=2)
        pid = os.fork()
        if not pid:
            die_at(directory, int(statement), verb)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
