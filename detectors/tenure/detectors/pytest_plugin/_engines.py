"""Foreign engines are told about while a test is watched."""

import sys
import warnings
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import pytest

_GROUP: Final = "opentelemetry_instrumentor"
_PREFIX: Final = "tenure_"
"""An instrumentor of tenure is called so, and then like the module of its engine."""


def instrumented(stack: ExitStack) -> None:
    """Instrument every engine that is loaded, until `stack` is closed.

    One that is instrumented already stays so. A test module imports its engine, so what
    is not loaded when a test begins is not used in it.
    """
    for point in entry_points(group=_GROUP):
        engine = point.name.removeprefix(_PREFIX)
        if engine != point.name and engine in sys.modules:
            stack.enter_context(_instrumented(point, engine))


@contextmanager
def _instrumented(point: EntryPoint, engine: str) -> Generator[None]:
    instrumentor = _instrument(point, engine)
    try:
        yield
    finally:
        if instrumentor is not None:
            instrumentor.uninstrument()


def _instrument(point: EntryPoint, engine: str) -> Any:  # noqa: ANN401 - OpenTelemetry's class is not typed
    try:
        instrumentor = point.load()()
        if instrumentor.is_instrumented_by_opentelemetry:
            return None
        instrumentor.instrument()
    except ModuleNotFoundError as error:
        extra = engine.replace("_", "-")
        _warn(engine, f"{error}; run pip install 'tenure[{extra}]'")
    except Exception as error:  # noqa: BLE001 - whatever it is, the test can run
        _warn(engine, str(error))
    else:
        return instrumentor
    return None


def _warn(engine: str, why: str) -> None:
    warnings.warn(
        pytest.PytestWarning(f"tenure cannot watch {engine}: {why}"), stacklevel=2
    )
