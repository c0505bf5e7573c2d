"""The standard OTLP variables: read strictly, so that a typing error is not silence.

The SDK falls back to a default, or fails deep inside an export, where a variable cannot
be used. This module imports the standard library only.
"""

import os
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from tenure.instrumentation.errors import TelemetryConfigError


class Signal(StrEnum):
    """What OpenTelemetry carries, by the word its variables use."""

    TRACES = "TRACES"
    METRICS = "METRICS"
    LOGS = "LOGS"


class Transport(StrEnum):
    """How OTLP travels."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


_DEFAULT_ENDPOINT: Final = {
    Transport.GRPC: "http://localhost:4317",
    Transport.HTTP: "http://localhost:4318",
}


def named_endpoint(signal: Signal) -> str | None:
    """Return the place that a variable names for `signal`."""
    return _read(signal, "ENDPOINT")[1] or None


def endpoint(signal: Signal) -> str:
    """Return where `signal` goes, for display."""
    return named_endpoint(signal) or _DEFAULT_ENDPOINT[transport(signal)]


def exported(signal: Signal) -> bool:
    """Say whether `signal` is wanted: not if `OTEL_{signal}_EXPORTER` is `none`."""
    return os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() != "none"


def transport(signal: Signal) -> Transport:
    """Return how `signal` travels: gRPC unless a variable says otherwise.

    Raises:
        TelemetryConfigError: The variable names an unknown transport.
    """
    name, value = _read(signal, "PROTOCOL")
    try:
        return Transport(value or Transport.GRPC)
    except ValueError:
        raise TelemetryConfigError(
            name, value, f"use {Transport.GRPC} or {Transport.HTTP}"
        ) from None


def check(signal: Signal) -> None:
    """Check the variables from which an exporter of `signal` is built.

    Raises:
        TelemetryConfigError: One of them cannot be used.
    """
    _check_endpoint(signal)
    _check_timeout(signal)
    _check_compression(signal)


def _check_endpoint(signal: Signal) -> None:
    name, value = _read(signal, "ENDPOINT")
    if not value or transport(signal) is Transport.GRPC:
        return
    if urlsplit(value).scheme not in {"http", "https"}:
        raise TelemetryConfigError(
            name, value, f"begin with http:// or https://, as in http://{value}"
        )


def _check_timeout(signal: Signal) -> None:
    name, value = _read(signal, "TIMEOUT")
    try:
        usable = not value or float(value) > 0
    except ValueError:
        usable = False
    if not usable:
        raise TelemetryConfigError(name, value, "give a positive number of seconds")


def _check_compression(signal: Signal) -> None:
    name, value = _read(signal, "COMPRESSION")
    if not value:
        return
    grpc = transport(signal) is Transport.GRPC
    known = ("gzip",) if grpc else ("gzip", "deflate", "none")
    if value.lower() not in known:
        raise TelemetryConfigError(
            name, value, f"use {' or '.join(known)}, or unset it"
        )


def _read(signal: Signal, what: str) -> tuple[str, str]:
    """Return the variable that decides, and its value: a signal's own comes first."""
    general = f"OTEL_EXPORTER_OTLP_{what}"
    own = f"OTEL_EXPORTER_OTLP_{signal}_{what}"
    for name in (own, general):
        value = os.environ.get(name, "").strip()
        if value:
            return name, value
    return general, ""
