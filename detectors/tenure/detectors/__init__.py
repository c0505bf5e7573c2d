"""Race detection over the ownership of workflow instances.

Importing this package loads neither the OpenTelemetry SDK nor any engine;
`OwnershipSpanProcessor` loads the SDK when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from tenure.detectors.anomalies import CATALOGUE, Anomaly, Certainty, Severity
from tenure.detectors.detector import Channel, Detector, Verdict
from tenure.detectors.errors import (
    DetectorError,
    MalformedTraceError,
    RaceError,
    RaceWarning,
)
from tenure.detectors.findings import Finding

if TYPE_CHECKING:
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


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds has any type
    if name == "OwnershipSpanProcessor":
        from tenure.detectors.processor import OwnershipSpanProcessor

        globals()[name] = OwnershipSpanProcessor
        return OwnershipSpanProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
