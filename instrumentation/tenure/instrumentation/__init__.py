"""Vocabulary, emission and foreign engines: how tenure's telemetry is said.

Importing this package loads the OpenTelemetry API, never its SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tenure.instrumentation._settings import Detail, KeyDisplay
from tenure.instrumentation.errors import TelemetryConfigError, UnsupportedEngineError
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.recorder import InstanceRecorder, Recorder, RunRecorder

if TYPE_CHECKING:
    from tenure.instrumentation.sampler import RecordOwnership
    from tenure.instrumentation.sdk import OtlpTelemetry, configure_otlp

__all__ = [
    "Detail",
    "InstanceRecorder",
    "KeyDisplay",
    "OtlpTelemetry",
    "RecordOwnership",
    "Recorder",
    "RunRecorder",
    "TelemetryConfigError",
    "UnsupportedEngineError",
    "add_listener",
    "configure_otlp",
    "remove_listener",
]

_LAZY = {
    "OtlpTelemetry": "tenure.instrumentation.sdk",
    "RecordOwnership": "tenure.instrumentation.sampler",
    "configure_otlp": "tenure.instrumentation.sdk",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attributes
    """Load what sets up the SDK, or needs it, when it is used."""
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
