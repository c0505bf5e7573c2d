"""Executors that wait, fail or finish late on request: for tests of workflows.

They are ordered by events, never by time: a race that a test sets up is the same race
each time.
"""

from collections import defaultdict
from typing import Final

from anyio import Event
from anyio.lowlevel import checkpoint

from tenure.runtime._context import WorkflowContext
from tenure.runtime._executor import Executor, handler


async def turns(count: int) -> None:
    """Give every other task of the loop `count` turns."""
    for _ in range(count):
        await checkpoint()


class HeldExecutor(Executor):
    """Stages `{message}_key`, then waits until the test releases that message.

    Once released it yields the message. Cancelled, it takes `cleanup_turns` turns and
    then stages `{message}_cleanup`, as clean-up code does that comes too late.

    Args:
        id: Name in the workflow.
        cleanup_turns: How many turns its clean-up takes; no clean-up if `None`.

    Attributes:
        staged: For each message, set once its key is staged.
        released: For each message, what it waits for.
        ended: For each message, set once its handler is about to return or raise.
    """

    def __init__(
        self,
        id: str = "held",  # noqa: A002 - as in Executor
        cleanup_turns: int | None = None,
    ) -> None:
        super().__init__(id)
        self.cleanup_turns: Final = cleanup_turns
        self.staged: Final[defaultdict[str, Event]] = defaultdict(Event)
        self.released: Final[defaultdict[str, Event]] = defaultdict(Event)
        self.ended: Final[defaultdict[str, Event]] = defaultdict(Event)

    @handler
    async def hold(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        """Stage, wait, yield."""
        ctx.set_state(f"{message}_key", message)
        self.staged[message].set()
        try:
            await self.released[message].wait()
        finally:
            if self.cleanup_turns is not None and not self.released[message].is_set():
                await self._clean_up(message, self.cleanup_turns, ctx)
            self.ended[message].set()
        await ctx.yield_output(message)

    async def _clean_up(
        self, message: str, count: int, ctx: WorkflowContext[None, str]
    ) -> None:
        await turns(count)
        ctx.set_state(f"{message}_cleanup", message)


class FailingExecutor(Executor):
    """Stages `{message}_key` and raises, for the messages that it is to fail for.

    For all others it yields the message.

    Args:
        id: Name in the workflow.
        fails_for: The messages.
        error: What it raises.
    """

    def __init__(
        self,
        id: str = "failing",  # noqa: A002 - as in Executor
        fails_for: frozenset[str] = frozenset(),
        error: Exception | None = None,
    ) -> None:
        super().__init__(id)
        self.fails_for: Final = fails_for
        self.error: Final = error or RuntimeError("failed on request")

    @handler
    async def work(self, message: str, ctx: WorkflowContext[None, str]) -> None:
        """Stage, then raise or yield."""
        ctx.set_state(f"{message}_key", message)
        if message in self.fails_for:
            raise self.error
        await ctx.yield_output(message)
