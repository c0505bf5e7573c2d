"""The story: a client asks, disconnects in the middle of a superstep, and asks again.

The client is the same for every engine. What an engine must do for it stands in
`Engine` and `Subject`; what its executor does stands in `Desk.answer`.
"""

import asyncio
import gc
from collections.abc import AsyncIterable, Callable, Coroutine, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

PATIENCE: Final = 20.0
"""Seconds after which a story that does not end is given up."""

TURNS: Final = 20
"""Turns of the event loop between the second request's write and its answer.

An abandoned stream is finalized some turns after it was dropped: 13 on agent-framework
1.22 and 1.23.
"""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the client.

    Attributes:
        question: The message to the workflow.
        number: Its rank, from 1.
    """

    question: str
    number: int

    @property
    def key(self) -> str:
        """The state key under which the executor keeps the answer."""
        return f"answer:{self.question}"


FIRST: Final = Request("first", 1)
SECOND: Final = Request("second", 2)


class Actor(StrEnum):
    """Who takes a step of the story."""

    CLIENT = "client"
    EXECUTOR = "executor"


@dataclass(frozen=True, slots=True)
class Step:
    """Something that the client or an executor did, as opposed to the engine.

    Attributes:
        actor: Who.
        request: On behalf of which request.
        text: What, in the present tense.
    """

    actor: Actor
    request: Request
    text: str


class StoryError(Exception):
    """The story did not come to its end.

    Args:
        engine: On which engine.
        reason: Why.
    """

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(engine, reason)
        self.engine = engine
        self.reason = reason

    def __str__(self) -> str:
        return f"the story did not come to its end on {self.engine}: {self.reason}"


class Desk:
    """Where the executor of either engine and the client meet.

    Belongs to one event loop.

    Args:
        tell: Called with each step.
    """

    def __init__(self, tell: Callable[[Step], None]) -> None:
        self.tell: Final = tell
        self._requests: Final = {
            request.question: request for request in (FIRST, SECOND)
        }
        self._staged: Final = {question: asyncio.Event() for question in self._requests}
        self._staged_writes: Final[dict[str, dict[str, str]]] = {}
        self._may_answer: Final = asyncio.Event()
        self._served: Final[list[Request]] = []

    async def answer(self, question: str, stage: Callable[[str, str], None]) -> str:
        """Do an executor's work: stage a write, think, answer.

        Args:
            question: The message.
            stage: The engine's way to stage a write.

        Returns:
            The answer.
        """
        request = self._requests[question]
        answer = f"the answer to {question}"
        stage(request.key, answer)
        self._staged_writes[question] = {request.key: answer}
        self.tell(Step(Actor.EXECUTOR, request, f"stages {request.key}"))
        self._staged[question].set()
        await self._may_answer.wait()
        self.tell(Step(Actor.EXECUTOR, request, "answers"))
        return answer

    async def wait_until_staged(self, request: Request) -> None:
        """Wait until the executor has staged the write of `request`."""
        await self._staged[request.question].wait()

    def let_answer(self) -> None:
        """Let executors go on from thinking to answering."""
        self._may_answer.set()

    def serve(self, request: Request) -> None:
        """Note that the client has got its answer to `request`."""
        self._served.append(request)
        self.tell(Step(Actor.CLIENT, request, "gets its answer"))

    @property
    def expected(self) -> dict[str, str]:
        """What a correct engine commits: the writes of requests that were served."""
        return {
            key: value
            for request in self._served
            for key, value in self._staged_writes[request.question].items()
        }


class Subject(Protocol):
    """A workflow of some engine, drawn around a desk."""

    def stream(self, question: str) -> AsyncIterable[object]:
        """Start a run and return its events, to be iterated once."""
        ...

    def is_invocation(self, event: object) -> bool:
        """Say whether `event` tells that an executor was invoked."""
        ...

    async def ask(self, question: str) -> None:
        """Run to the end."""
        ...

    def state(self) -> Mapping[str, object]:
        """Return the committed state."""
        ...


class Engine(Protocol):
    """An engine on which the story is played."""

    @property
    def name(self) -> str:
        """Engine and version, such as `tenure/0.1.0`."""
        ...

    def watched(self) -> AbstractContextManager[object]:
        """Attach what tells the engine's operations, where it does not tell them."""
        ...

    @property
    def loggers(self) -> tuple[str, ...]:
        """Loggers that speak of abandoned streams; kept aside and shown in the report.

        Left alone, they would write to standard error in the middle of a timeline.
        """
        ...

    def draw(self, desk: Desk) -> Subject:
        """Draw the workflow whose executor works at `desk`."""
        ...


async def disconnect_and_ask_again(subject: Subject, desk: Desk) -> None:
    """Play the client.

    Args:
        subject: The workflow.
        desk: Where its executor works.

    Raises:
        TimeoutError: The engine did not go on.
    """
    async with asyncio.timeout(PATIENCE):
        await _ask_and_disconnect(subject, desk)
        # An abandoned stream that sits in a reference cycle is found by the collector.
        gc.collect()
        desk.tell(Step(Actor.CLIENT, SECOND, "asks again at once"))
        second = asyncio.create_task(subject.ask(SECOND.question))
        try:
            await _first_of(second, desk.wait_until_staged(SECOND))
            await _let_the_loop_turn()
            desk.let_answer()
            await second
            desk.serve(SECOND)
        finally:
            second.cancel()
        await _let_the_loop_turn()


async def _ask_and_disconnect(subject: Subject, desk: Desk) -> None:
    desk.tell(Step(Actor.CLIENT, FIRST, "asks, reads the stream"))
    stream = subject.stream(FIRST.question)
    async for event in stream:
        if subject.is_invocation(event):
            break
    await desk.wait_until_staged(FIRST)
    # Invariant: nothing else refers to the stream, so the return drops it unclosed,
    # just as a web server drops the stream of a client that has gone.
    desk.tell(Step(Actor.CLIENT, FIRST, "disconnects"))


async def _first_of(
    task: asyncio.Task[None], event: Coroutine[object, object, None]
) -> None:
    """Wait for `event`, or raise what ends `task` before."""
    waiting = asyncio.create_task(event)
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting.cancel()
        task.result()


async def _let_the_loop_turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
