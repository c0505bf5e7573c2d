"""The model that writes answers: a pretended one, or one behind HTTP.

Either writes an answer in pieces, over a while, and must be told to stop: it would else
go on writing, and billing, for a reader who has left. To tell it takes a while as well.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Final, Protocol
from uuid import uuid4

if TYPE_CHECKING:
    import httpx

FIRST_PIECE_AFTER: Final = 0.3
PIECE_EVERY: Final = 2.0
STOPPING_TAKES: Final = 0.08


class Generation(Protocol):
    """An answer that is being written."""

    def pieces(self) -> AsyncGenerator[str]:
        """Return what the model writes, a sentence or so at a time."""
        ...

    async def stop(self) -> None:
        """Tell the model to stop, and wait until it has."""
        ...


class Model(Protocol):
    """Writes answers."""

    def generate(self, question: str, passages: Sequence[str]) -> Generation:
        """Begin to answer `question` from `passages`."""
        ...


class PretendedGeneration:
    """Hands out the passages, slowly."""

    def __init__(self, passages: Sequence[str]) -> None:
        self._passages: Final = passages

    async def pieces(self) -> AsyncGenerator[str]:
        await asyncio.sleep(FIRST_PIECE_AFTER)
        for number, passage in enumerate(self._passages):
            if number:
                await asyncio.sleep(PIECE_EVERY)
            yield passage

    async def stop(self) -> None:
        await asyncio.sleep(STOPPING_TAKES)


class PretendedModel:
    """Needs neither a key nor a network."""

    def generate(self, question: str, passages: Sequence[str]) -> PretendedGeneration:
        return PretendedGeneration([f"You ask: {question}.", *passages])


class HttpGeneration:
    """An answer that a service writes.

    `POST /generations/{id}` answers with one piece a line; `DELETE` of the same address
    answers once the service has stopped.
    """

    def __init__(
        self, client: "httpx.AsyncClient", question: str, passages: Sequence[str]
    ) -> None:
        self._client: Final = client
        self._address: Final = f"/generations/{uuid4()}"
        self._asked: Final = {"question": question, "passages": list(passages)}

    async def pieces(self) -> AsyncGenerator[str]:
        asking = self._client.stream("POST", self._address, json=self._asked)
        async with asking as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                yield line  # noqa: ASYNC119 - the drafter closes this generator

    async def stop(self) -> None:
        await self._client.delete(self._address)


class HttpModel:
    """A service at `url`."""

    def __init__(self, url: str) -> None:
        import httpx

        self._client: Final = httpx.AsyncClient(base_url=url, timeout=60)

    def generate(self, question: str, passages: Sequence[str]) -> HttpGeneration:
        return HttpGeneration(self._client, question, passages)
