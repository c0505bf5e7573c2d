"""The workflow on tenure."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, Final

from engine import Run
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

from tenure.runtime import (
    Executor,
    OutputYielded,
    SuperstepStarted,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)


class Retriever(Executor):
    @handler
    async def retrieve(self, question: str, ctx: WorkflowContext[Brief, None]) -> None:
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
        self, draft: Draft, ctx: WorkflowContext[None, Published]
    ) -> None:
        await publish(draft, ctx)


class Tenure:
    def __init__(self, model: Model) -> None:
        retriever, drafter = Retriever(id="retriever"), Drafter(model)
        self._workflow: Final = (
            WorkflowBuilder("answers", start=retriever)
            .add_chain([retriever, drafter, Publisher(id="publisher")])
            .build()
        )

    @property
    def name(self) -> str:
        return f"tenure/{version('tenure')}"

    def ask(self, question: str) -> Run:
        # Whoever asks again wants the new answer, not to hear that the old one is still
        # being written; and the old reader may have left without our knowing yet.
        return self._workflow.stream(question, on_conflict="supersede")

    def progress(self, event: object) -> Progress | None:
        if isinstance(event, SuperstepStarted):
            return Superstep(event.superstep)
        return event.data if isinstance(event, OutputYielded) else None

    def state(self) -> Mapping[str, Any]:
        return self._workflow.state
