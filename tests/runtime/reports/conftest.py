"""What the replays of users' reports share: stores, and books about spans."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tenure.runtime import MemoryStore, SqliteStore, Store

from .books import Books


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A store that outlives the workflows of a test, as it outlives processes."""
    if request.param == "memory":
        yield MemoryStore()
        return
    async with SqliteStore(tmp_path / "runs") as made:
        yield made


@pytest.fixture(params=["none", "memory", "sqlite"])
async def store_if_any(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Store | None]:
    """No store, or one."""
    if request.param == "sqlite":
        async with SqliteStore(tmp_path / "runs") as made:
            yield made
    else:
        yield MemoryStore() if request.param == "memory" else None


@pytest.fixture
def books() -> Iterator[Books]:
    """Books about the spans of a test."""
    made = Books()
    yield made
    made.provider.shutdown()
