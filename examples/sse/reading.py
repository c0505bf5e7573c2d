"""Five ways to read a run into a response, as people write them.

They differ in where the server's cancellation finds them when a client disconnects, and
so in whether the run is closed or only dropped. What follows from that on which engine
is in docs/howto/server-sent-events.md, and tests/examples/test_sse.py holds it to that.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from engine import Engine
from steps import Piece, Progress, Published, Superstep


@dataclass(frozen=True)
class Request:
    """A question of a client.

    Attributes:
        question: What it asks.
        pace: Seconds between two words of a piece.
        disconnected: Says whether the client has left.
    """

    question: str
    pace: float
    disconnected: Callable[[], Awaitable[bool]]


Reader = Callable[[Engine, Request], AsyncIterator[str]]


def message(event: str, data: Mapping[str, Any]) -> str:
    """Return a server-sent event."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


def messages(progress: Progress | None) -> Iterator[str]:
    """Return what a reader is told: a piece goes out word by word."""
    match progress:
        case Superstep(number):
            yield message("superstep", {"number": number})
        case Piece(text):
            for word in text.split():
                yield message("word", {"text": word})
        case Published():
            yield message("published", asdict(progress))


END: Final = message("end", {})


async def plain(engine: Engine, request: Request) -> AsyncIterator[str]:
    """Pass on everything at once: nearly always, this waits for the run."""
    async for event in engine.ask(request.question):
        for told in messages(engine.progress(event)):
            yield told
    yield END


async def typewriter(engine: Engine, request: Request) -> AsyncIterator[str]:
    """Pause between words, so that they can be read: this waits beside the run."""
    async for event in engine.ask(request.question):
        for number, told in enumerate(messages(engine.progress(event))):
            if number:
                await asyncio.sleep(request.pace)
            yield told
    yield END


async def polling(engine: Engine, request: Request) -> AsyncIterator[str]:
    """Ask before each event whether anybody still reads."""
    async for event in engine.ask(request.question):
        if await request.disconnected():
            break
        for told in messages(engine.progress(event)):
            yield told
    yield END


async def queue(engine: Engine, request: Request) -> AsyncIterator[str]:
    """Let a task of its own read the run, and cancel that task at the end."""
    waiting: asyncio.Queue[str] = asyncio.Queue()

    async def read() -> None:
        async for event in engine.ask(request.question):
            for told in messages(engine.progress(event)):
                waiting.put_nowait(told)

    reading = asyncio.create_task(read())
    reading.add_done_callback(lambda _: waiting.put_nowait(END))
    try:
        while (told := await waiting.get()) is not END:
            yield told
        await reading
    finally:
        reading.cancel()
    yield END


async def block(engine: Engine, request: Request) -> AsyncIterator[str]:
    """Type as `typewriter` does, in a block whose end is the end of the run."""
    async with engine.ask(request.question) as events:
        async for event in events:
            for number, told in enumerate(messages(engine.progress(event))):
                if number:
                    await asyncio.sleep(request.pace)
                yield told  # noqa: ASYNC119 - uvicorn never leaves it here
    yield END


READERS: Final[Mapping[str, Reader]] = {
    reader.__name__: reader for reader in (typewriter, plain, polling, queue, block)
}
