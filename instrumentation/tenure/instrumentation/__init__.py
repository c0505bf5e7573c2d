"""Vocabulary, emission and foreign engines: how tenure's telemetry is said.

Importing this package loads the OpenTelemetry API, never its SDK.
"""

from tenure.instrumentation._settings import Detail, KeyDisplay
from tenure.instrumentation.errors import TelemetryConfigError, UnsupportedEngineError
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.recorder import InstanceRecorder, Recorder, RunRecorder

__all__ = [
    "Detail",
    "InstanceRecorder",
    "KeyDisplay",
    "Recorder",
    "RunRecorder",
    "TelemetryConfigError",
    "UnsupportedEngineError",
    "add_listener",
    "remove_listener",
]
