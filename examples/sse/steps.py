"""What the workflow does: retrieve, draft, publish. The same on every engine."""

import asyncio
import re
from collections.abc import Awaitable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from model import Model

LIBRARY: Final[Mapping[str, str]] = {
    "Why tides happen": "The moon pulls harder on the near side of the earth than on "
    "the far side, and the sea swells on both.",
    "Tides twice a day": "The earth turns below two swells, so most coasts see two "
    "high tides a day, some fifty minutes later every day.",
    "Spring tides": "When sun, moon and earth stand in one line their pulls add up, "
    "and high water is highest.",
    "Waves": "Wind makes waves: the longer it blows over open water, the higher they "
    "grow, and they travel on for days when it has died down.",
    "Salt in the sea": "Rivers carry salt from the rocks to the sea, where the water "
    "evaporates and the salt stays behind.",
}


class Context(Protocol):
    """What a step asks of an engine; the contexts of both engines have it."""

    def get_state(self, key: str, default: Any = None) -> Any: ...

    def set_state(self, key: str, value: Any) -> None: ...

    def send_message(self, message: Any) -> Awaitable[None]: ...

    def yield_output(self, output: Any) -> Awaitable[None]: ...


@dataclass(frozen=True)
class Brief:
    """What the drafter works from."""

    question: str
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Draft:
    """What the drafter has written."""

    question: str
    text: str


@dataclass(frozen=True)
class Superstep:
    """Progress: a superstep of the workflow begins."""

    number: int


@dataclass(frozen=True)
class Piece:
    """Progress: a sentence or so of the draft."""

    text: str


@dataclass(frozen=True)
class Published:
    """The answer."""

    text: str
    sources: tuple[str, ...]


Output = Piece | Published
Progress = Superstep | Output


async def retrieve(question: str, ctx: Context) -> None:
    """Find what the library says about the question."""
    asked = _stems(question)
    found = [title for title in LIBRARY if asked & _stems(title)]
    await ctx.send_message(Brief(question, tuple(found or LIBRARY)))


async def draft(brief: Brief, model: Model, ctx: Context) -> None:
    """Let the model write, and hand on every piece as it comes."""
    ctx.set_state(f"draft:{brief.question}", {"sources": list(brief.sources)})
    passages = [LIBRARY[title] for title in brief.sources]
    generation = model.generate(brief.question, passages)
    written: list[str] = []
    try:
        async with aclosing(generation.pieces()) as pieces:
            async for piece in pieces:
                written.append(piece)
                await ctx.yield_output(Piece(piece))
    except asyncio.CancelledError:
        # The reader has left. The model bills for what it writes until it has stopped,
        # so this call must get through, even if the run is cancelled once more.
        await asyncio.shield(generation.stop())
        raise
    await ctx.send_message(Draft(brief.question, " ".join(written)))


async def publish(draft: Draft, ctx: Context) -> None:
    """Publish the draft together with the sources that the drafter put down."""
    kept = ctx.get_state(f"draft:{draft.question}") or {"sources": []}
    answer = {"text": draft.text, "sources": kept["sources"]}
    ctx.set_state(f"answer:{draft.question}", answer)
    await ctx.yield_output(Published(draft.text, tuple(kept["sources"])))


def _stems(text: str) -> set[str]:
    """Return the words of `text`, but for the smallest, without a plural's end."""
    words = re.findall(r"[a-z]{3,}", text.lower())
    return {word.removesuffix("s") for word in words} - {"the", "why", "what", "how"}
