"""Bookkeeping that fails must not fail the program that it watches."""

import functools
import logging
import traceback
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
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            # As text: a traceback that a handler keeps would keep the frames of the
            # engine, and with them the stream whose death ends the run.
            _logger.error(  # noqa: TRY400 - see above
                "agent-framework could not be observed here:\n%s",
                traceback.format_exc(),
            )
            return None

    return guarded
