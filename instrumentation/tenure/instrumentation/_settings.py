"""What a recorder is told to emit: how much detail, and whether keys are shown."""

import hashlib
import os
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Final

from tenure.instrumentation.errors import TelemetryConfigError

DETAIL_VARIABLE: Final = "TENURE_DETAIL"
KEYS_VARIABLE: Final = "TENURE_KEYS"


class Detail(IntEnum):
    """How much of a run is told; every level includes the ones before it."""

    OWNERSHIP = 1
    """Run, own, commit, discard, checkpoint, late and foreign operations."""

    SUPERSTEPS = 2
    """Supersteps too."""

    EXECUTORS = 3
    """Executor invocations too: the default."""


class KeyDisplay(StrEnum):
    """How state keys appear in telemetry; values never do."""

    PLAIN = "plain"
    HASHED = "hashed"
    OFF = "off"


def detail_from_environment() -> Detail:
    """Read `TENURE_DETAIL`: `ownership`, `supersteps` or `executors`.

    Raises:
        TelemetryConfigError: It is set to something else.
    """
    value = os.environ.get(DETAIL_VARIABLE, "").strip()
    if not value:
        return Detail.EXECUTORS
    try:
        return Detail[value.upper()]
    except KeyError:
        known = ", ".join(level.name.lower() for level in Detail)
        raise TelemetryConfigError(
            DETAIL_VARIABLE, value, f"use one of {known}"
        ) from None


def keys_from_environment() -> KeyDisplay:
    """Read `TENURE_KEYS`: `plain`, `hashed` or `off`.

    Raises:
        TelemetryConfigError: It is set to something else.
    """
    value = os.environ.get(KEYS_VARIABLE, "").strip()
    if not value:
        return KeyDisplay.PLAIN
    try:
        return KeyDisplay(value.lower())
    except ValueError:
        known = ", ".join(display.value for display in KeyDisplay)
        raise TelemetryConfigError(
            KEYS_VARIABLE, value, f"use one of {known}"
        ) from None


def key_mask(display: KeyDisplay) -> Callable[[str], str] | None:
    """Return what turns a state key into what telemetry shows; `None` for plain keys.

    A hash is the first 12 hexadecimal digits of SHA-256, so that one key reads the same
    in every process.
    """
    match display:
        case KeyDisplay.PLAIN:
            return None
        case KeyDisplay.HASHED:
            return lambda key: hashlib.sha256(key.encode()).hexdigest()[:12]
        case KeyDisplay.OFF:
            return lambda _key: "*"
