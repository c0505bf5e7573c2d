"""The story on tenure."""

from collections.abc import AsyncIterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Final, final

from tenure.cli._demo.story import Desk
from tenure.runtime import (
    Executor,
    ExecutorInvoked,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)


class _Answerer(Executor):
    def __init__(self, desk: Desk) -> None:
        super().__init__(id="answerer")
        self._desk: Final = desk

    @handler
    async def answer(self, question: str, ctx: WorkflowContext[None, str]) -> None:
        await ctx.yield_output(await self._desk.answer(question, ctx.set_state))


@final
class _Workflow:
    def __init__(self, workflow: Workflow) -> None:
        self._workflow: Final = workflow

    def stream(self, question: str) -> AsyncIterable[object]:
        return self._workflow.stream(question)

    def is_invocation(self, event: object) -> bool:
        return isinstance(event, ExecutorInvoked)

    async def ask(self, question: str) -> None:
        await self._workflow.run(question)

    def state(self) -> Mapping[str, object]:
        return dict(self._workflow.state)


@final
class Tenure:
    """tenure's own runtime, which tells its operations itself."""

    def __init__(self) -> None:
        self.loggers: Final = ()  # what tenure logs is ours: nothing is kept aside
        self.name: Final = f"tenure/{version('tenure')}"

    def watched(self) -> AbstractContextManager[object]:
        """Attach nothing."""
        return nullcontext()

    def draw(self, desk: Desk) -> _Workflow:
        """Draw a workflow of one executor."""
        return _Workflow(WorkflowBuilder("answers", start=_Answerer(desk)).build())
