"""Zero code: the detector that `opentelemetry-instrument` starts.

It listens to what this process tells, before sampling, and reads the spans of the
global tracer provider besides. `TENURE_DETECT` turns it off, `TENURE_ANNOUNCE` says
where findings go.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from opentelemetry import trace
from opentelemetry._logs import get_logger_provider

from tenure.detectors.anomalies import Severity
from tenure.detectors.detector import DEFAULT_CHANNELS, Channel, Detector
from tenure.detectors.findings import Finding
from tenure.instrumentation import TelemetryConfigError

DETECT_VARIABLE: Final = "TENURE_DETECT"
ANNOUNCE_VARIABLE: Final = "TENURE_ANNOUNCE"
NOWHERE: Final = "none"
"""What `TENURE_ANNOUNCE` says for no way at all."""

_SWITCH: Final[Mapping[str, bool]] = MappingProxyType({"on": True, "off": False})
_LEVELS: Final[Mapping[Severity, int]] = MappingProxyType({
    Severity.VIOLATION: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.AVERTED: logging.INFO,
    Severity.INFORMATION: logging.INFO,
})

_logger = logging.getLogger(__name__)
_starting: Final = threading.Lock()
# Written under `_starting`, and once.
_detector: Detector | None = None
_T = TypeVar("_T")


def start() -> None:
    """Start the detector of this process, unless `TENURE_DETECT` is `off`.

    The entry point of zero code. Starting twice changes nothing. Never raises: what
    goes wrong is logged, and the program runs as it would without a detector.
    """
    global _detector  # noqa: PLW0603 - one per process is the purpose
    try:
        with _starting:
            if _detector is None and _usable(detect_from_environment, default=True):
                _detector = _started()
    except Exception:
        _logger.exception("The race detector could not be started")


def detector() -> Detector | None:
    """Return the detector that was started here; `None` where none was."""
    return _detector


def detect_from_environment() -> bool:
    """Read `TENURE_DETECT`: `on`, the default, or `off`.

    Raises:
        TelemetryConfigError: It is set to something else.
    """
    value = os.environ.get(DETECT_VARIABLE, "").strip()
    wanted = _SWITCH.get(value.lower() or "on")
    if wanted is None:
        raise TelemetryConfigError(
            DETECT_VARIABLE, value, f"use {' or '.join(_SWITCH)}"
        )
    return wanted


def announce_from_environment() -> frozenset[Channel]:
    """Read `TENURE_ANNOUNCE`: names with commas between them, or `none`.

    Raises:
        TelemetryConfigError: One of the names is not known.
    """
    value = os.environ.get(ANNOUNCE_VARIABLE, "").strip()
    if not value:
        return DEFAULT_CHANNELS
    names = {name.strip().lower() for name in value.split(",")}
    if names == {NOWHERE}:
        return frozenset()
    try:
        return frozenset(Channel(name) for name in names)
    except ValueError:
        known = ", ".join(channel.value for channel in Channel)
        raise TelemetryConfigError(
            ANNOUNCE_VARIABLE,
            value,
            f"use some of {known} with commas between them, or {NOWHERE} alone",
        ) from None


def _usable(read: Callable[[], _T], default: _T) -> _T:
    """Return what `read` reads, or `default` and a line in the log."""
    try:
        return read()
    except TelemetryConfigError as error:
        _logger.error("%s. Until then, the default holds", error)  # noqa: TRY400
        return default


def _started() -> Detector:
    channels = _usable(announce_from_environment, DEFAULT_CHANNELS)
    found = Detector(_log if Channel.LOG in channels else None, announce=channels)
    # An SDK's provider has this method; the API's placeholder does not.
    add = getattr(trace.get_tracer_provider(), "add_span_processor", None)
    if add is not None:
        from tenure.detectors.processor import OwnershipSpanProcessor

        add(OwnershipSpanProcessor(found))
    return found.listen()


def _log(finding: Finding) -> None:
    """Log a finding in Python's own log where nobody takes OpenTelemetry's."""
    taken_by = type(get_logger_provider()).__module__
    if taken_by.startswith("opentelemetry._logs"):
        _logger.log(_LEVELS[finding.severity], "%s", finding)


__all__ = [
    "ANNOUNCE_VARIABLE",
    "DETECT_VARIABLE",
    "NOWHERE",
    "announce_from_environment",
    "detect_from_environment",
    "detector",
    "start",
]
