"""The instrumented engine, and who listens to what is told of it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from tenure.detectors import Detector
from tenure.instrumentation.agent_framework import AgentFrameworkInstrumentor


@contextmanager
def instrumentation(**options: object) -> Iterator[None]:
    """Instrument the engine for the time of a block."""
    instrumentor = AgentFrameworkInstrumentor()
    instrumentor.instrument(**options)
    try:
        yield
    finally:
        instrumentor.uninstrument()


@pytest.fixture
def instrumenting() -> Callable[..., AbstractContextManager[None]]:
    """Instrument the engine for the time of a block."""
    return instrumentation


@pytest.fixture
def instrumented() -> Iterator[None]:
    """Instrument the engine for the time of the test."""
    with instrumentation():
        yield


@pytest.fixture
def detector() -> Iterator[Detector]:
    """A detector that hears every operation, and announces nothing."""
    with Detector(announce=()) as detector:
        detector.listen()
        yield detector
