"""The workflow on Microsoft agent-framework."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final, Never

from agent_framework import (
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowException,
    handler,
)
from engine import BusyError, Run
from model import Model
from steps import (
    Brief,
    Draft,
    Piece,
    Progress,
    Published,
    Superstep,
    draft,
    publish,
    retrieve,
)

from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor


class Retriever(Executor):
    @handler
    async def retrieve(self, question: str, ctx: WorkflowContext[Brief]) -> None:
        await retrieve(question, ctx)


class Drafter(Executor):
    def __init__(self, model: Model) -> None:
        super().__init__(id="drafter")
        self._model: Final = model

    @handler
    async def draft(self, brief: Brief, ctx: WorkflowContext[Draft, Piece]) -> None:
        await draft(brief, self._model, ctx)


class Publisher(Executor):
    @handler
    async def publish(
        self, draft: Draft, ctx: WorkflowContext[Never, Published]
    ) -> None:
        await publish(draft, ctx)


class AgentFramework:
    def __init__(self, model: Model) -> None:
        # All that a workflow on this engine needs to be watched.
        AgentFrameworkInstrumentor().instrument()
        retriever, drafter = Retriever(id="retriever"), Drafter(model)
        self._workflow: Final = (
            WorkflowBuilder(name="answers", start_executor=retriever)
            .add_edge(retriever, drafter)
            .add_edge(drafter, Publisher(id="publisher"))
            .build()
        )

    @property
    def name(self) -> str:
        return f"agent-framework/{version('agent-framework-core')}"

    def ask(self, question: str) -> Run:
        try:
            return self._workflow.run(question, stream=True)
        except WorkflowException as error:
            raise BusyError(str(error)) from error

    def progress(self, event: Any) -> Progress | None:
        if event.type == "superstep_started":
            return Superstep(event.iteration)
        return event.data if event.type == "output" else None

    def state(self) -> Mapping[str, Any]:
        # The engine shows its committed state nowhere else. Keys that begin with an
        # underscore are its own.
        exported = self._workflow._runner.state.export_state()  # noqa: SLF001
        return {key: exported[key] for key in exported if not key.startswith("_")}
