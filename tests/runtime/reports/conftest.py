"""What the replays of users' reports share: stores, and books about spans."""

from collections.abc import Iterator

import pytest

from tenure.runtime import Store

from .books import Books


@pytest.fixture
def store(durable: Store) -> Store:
    return durable


@pytest.fixture
def books() -> Iterator[Books]:
    """Books about the spans of a test."""
    made = Books()
    yield made
    made.provider.shutdown()
