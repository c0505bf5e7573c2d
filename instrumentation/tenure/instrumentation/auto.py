"""Zero code: what `opentelemetry-instrument` calls before it instruments anything."""

import logging
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from tenure.instrumentation._settings import (
    DETAIL_VARIABLE,
    KEYS_VARIABLE,
    detail_from_environment,
    keys_from_environment,
)
from tenure.instrumentation.errors import TelemetryConfigError

_logger = logging.getLogger(__name__)

_READ_BY: Final[Mapping[str, Callable[[], object]]] = MappingProxyType({
    DETAIL_VARIABLE: detail_from_environment,
    KEYS_VARIABLE: keys_from_environment,
})


def check_variables() -> None:
    """Log each variable that cannot be used, and take it out of the environment.

    Code that reads one refuses a value that is not known, which is right where somebody
    calls it, and would end a program that never did. Never raises.
    """
    for name, read in _READ_BY.items():
        try:
            read()
        except TelemetryConfigError as error:
            _logger.error("%s. Until then, the default holds", error)  # noqa: TRY400
            os.environ.pop(name, None)


__all__ = ["check_variables"]
