"""Race detection over the ownership of workflow instances.

Importing this package loads nothing else: a name is loaded when it is first asked for,
because pytest imports the plugin in here at every start. Nothing loads an engine, and
only `OwnershipSpanProcessor` loads the OpenTelemetry SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.detectors.anomalies import CATALOGUE, Anomaly, Certainty, Severity
    from tenure.detectors.detector import Channel, Detector, Verdict
    from tenure.detectors.errors import (
        DetectorError,
        MalformedTraceError,
        RaceError,
        RaceWarning,
    )
    from tenure.detectors.findings import Finding
    from tenure.detectors.processor import OwnershipSpanProcessor

__all__ = [
    "CATALOGUE",
    "Anomaly",
    "Certainty",
    "Channel",
    "Detector",
    "DetectorError",
    "Finding",
    "MalformedTraceError",
    "OwnershipSpanProcessor",
    "RaceError",
    "RaceWarning",
    "Severity",
    "Verdict",
]

_HOLDS = {
    "anomalies": ("CATALOGUE", "Anomaly", "Certainty", "Severity"),
    "detector": ("Channel", "Detector", "Verdict"),
    "errors": ("DetectorError", "MalformedTraceError", "RaceError", "RaceWarning"),
    "findings": ("Finding",),
    "processor": ("OwnershipSpanProcessor",),
}
_MODULE_OF = {name: module for module, names in _HOLDS.items() for name in names}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds has any type
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
