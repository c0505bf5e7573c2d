"""What tests of the engine share: stores, and who listens to operations."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tenure.detectors import Detector
from tenure.instrumentation import add_listener, remove_listener
from tenure.instrumentation.operations import Operation
from tenure.runtime import MemoryStore, SqliteStore, Store


@pytest.fixture
def operations() -> Iterator[list[Operation]]:
    """Every operation that is told during the test."""
    heard: list[Operation] = []
    add_listener(heard.append)
    yield heard
    remove_listener(heard.append)


@pytest.fixture
def detector() -> Iterator[Detector]:
    """A detector that listens during the test."""
    found = Detector()
    with found.listen():
        yield found


@pytest.fixture(params=["memory", "sqlite"])
async def durable(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Store]:
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


@pytest.fixture(params=["memory", "sqlite", "blocking"])
async def any_store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Store]:
    """A store of each kind, and each way to ask it."""
    if request.param == "memory":
        yield MemoryStore()
        return
    blocking = request.param == "blocking"
    async with SqliteStore(tmp_path / "runs", blocking=blocking) as made:
        yield made
