"""Bookkeeping that fails must not fail the program that it watches."""

import functools
import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_logger = logging.getLogger(__name__)
_P = ParamSpec("_P")
_R = TypeVar("_R")


def harmless(function: Callable[_P, _R]) -> Callable[_P, _R | None]:
    """Log what `function` raises, and return `None` instead.

    Args:
        function: Bookkeeping of the instrumentor, never a part of the engine.
    """

    @functools.wraps(function)
    def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
        try:
            return function(*args, **kwargs)
        except Exception:
            # Telemetry must never raise into a run.
            _logger.exception("agent-framework could not be observed here")
            return None

    return guarded
