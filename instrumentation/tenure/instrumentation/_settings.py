"""What a recorder is told to emit: how much detail, and whether keys are shown."""

import functools
import hashlib
import os
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Final

from tenure.instrumentation.errors import TelemetryConfigError

DETAIL_VARIABLE: Final = "TENURE_DETAIL"
KEYS_VARIABLE: Final = "TENURE_KEYS"

_DIGITS: Final = 12
_REMEMBERED: Final = 1024
_secret: Final = os.urandom(16)


class Detail(IntEnum):
    """How much of a run is told; every level includes the ones before it."""

    OWNERSHIP = 1
    """Run, own, commit, discard, checkpoint, late and foreign operations."""

    SUPERSTEPS = 2
    """Supersteps too."""

    EXECUTORS = 3
    """Executor invocations too: the default."""

    MESSAGES = 4
    """Every message too, sent and received: two more operations for each."""


class KeyDisplay(StrEnum):
    """How state keys appear in telemetry; values never do."""

    PLAIN = "plain"
    """As they are."""

    HASHED = "hashed"
    """Hashed: the same in every process, so whoever guesses a key can check it."""

    OFF = "off"
    """Not at all: a stand-in that nobody can trace back, valid in one process only."""


def detail_from_environment() -> Detail:
    """Read `TENURE_DETAIL`: `ownership`, `supersteps`, `executors` or `messages`.

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

    A mask keeps different keys apart: rules that compare keys would otherwise accuse
    runs that are innocent. It remembers the keys that it saw last.
    """
    match display:
        case KeyDisplay.PLAIN:
            return None
        case KeyDisplay.HASHED:
            return functools.lru_cache(_REMEMBERED)(_hashed)
        case KeyDisplay.OFF:
            return functools.lru_cache(_REMEMBERED)(_stand_in)


def _hashed(key: str) -> str:
    return hashlib.sha256(_encoded(key)).hexdigest()[:_DIGITS]


def _stand_in(key: str) -> str:
    return hashlib.blake2b(
        _encoded(key), key=_secret, digest_size=_DIGITS // 2
    ).hexdigest()


def _encoded(key: str) -> bytes:
    # A lone surrogate is a legal key, and a refusal to hash it would lose an operation.
    return key.encode("utf-8", "surrogatepass")
