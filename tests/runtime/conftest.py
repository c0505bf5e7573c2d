"""What tests of the engine share: who listens to the operations of a test."""

from collections.abc import Iterator

import pytest

from tenure.detectors import Detector
from tenure.instrumentation import add_listener, remove_listener
from tenure.instrumentation.operations import Operation


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
