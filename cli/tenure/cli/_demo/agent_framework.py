"""The story on Microsoft agent-framework, as installed from the registry."""

from collections.abc import AsyncIterable, Generator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Final, Never, final

from agent_framework import (
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)

from tenure.cli._demo.story import Desk


class _Answerer(Executor):
    def __init__(self, desk: Desk) -> None:
        super().__init__(id="answerer")
        self._desk: Final = desk

    @handler
    async def answer(self, question: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(await self._desk.answer(question, ctx.set_state))


@final
class _Workflow:
    def __init__(self, workflow: Workflow) -> None:
        self._workflow: Final = workflow

    def stream(self, question: str) -> AsyncIterable[object]:
        return self._workflow.run(question, stream=True)

    def is_invocation(self, event: object) -> bool:
        return getattr(event, "type", None) == "executor_invoked"

    async def ask(self, question: str) -> None:
        await self._workflow.run(question)

    def state(self) -> Mapping[str, object]:
        # The engine shows its committed state nowhere else.
        runner = self._workflow._runner  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        exported: dict[str, object] = runner.state.export_state()
        # Keys that begin with an underscore are the engine's own.
        return {key: exported[key] for key in exported if not key.startswith("_")}


@final
class AgentFramework:
    """Microsoft agent-framework, watched from outside."""

    def __init__(self) -> None:
        self.loggers: Final = ("agent_framework", "asyncio", "opentelemetry.context")
        self.name: Final = f"agent-framework/{version('agent-framework-core')}"

    @contextmanager
    def watched(self) -> Generator[None]:
        """Attach the instrumentor, unless somebody has attached it before."""
        from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor

        instrumentor = AgentFrameworkInstrumentor()
        attached = getattr(instrumentor, "is_instrumented_by_opentelemetry", False)
        if not attached:
            instrumentor.instrument()
        try:
            yield
        finally:
            if not attached:
                instrumentor.uninstrument()

    def draw(self, desk: Desk) -> _Workflow:
        """Draw a workflow of one executor."""
        return _Workflow(
            WorkflowBuilder(name="answers", start_executor=_Answerer(desk)).build()
        )
