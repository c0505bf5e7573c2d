"""Who hears operations in this process, before sampling and without an SDK.

This module imports the standard library only.
"""

import logging
import threading
import traceback
from collections.abc import Callable

from tenure.instrumentation.operations import Operation

_logger = logging.getLogger(__name__)
_changing = threading.Lock()
# Invariant: replaced as a whole under `_changing`, read without it.
_listeners: tuple[Callable[[Operation], object], ...] = ()


def add_listener(listener: Callable[[Operation], object]) -> None:
    """Hand every operation that this process tells from now on to `listener`.

    It is called on the thread that tells the operation, and must neither block nor
    raise; one that raises is logged and removed. Adding one twice changes nothing.
    May be called from any thread.

    Args:
        listener: Called with each operation.
    """
    global _listeners  # noqa: PLW0603 - one registry per process is the purpose
    with _changing:
        if listener not in _listeners:
            _listeners = (*_listeners, listener)


def remove_listener(listener: Callable[[Operation], object]) -> None:
    """Stop handing operations to `listener`; one that is not there is ignored.

    May be called from any thread.

    Args:
        listener: What `add_listener` was given.
    """
    global _listeners  # noqa: PLW0603 - as above
    with _changing:
        _listeners = tuple(known for known in _listeners if known != listener)


def anyone_listens() -> bool:
    """Say whether an operation told now would be heard by a listener."""
    return bool(_listeners)


def tell(operation: Operation) -> None:
    """Hand `operation` to every listener.

    Args:
        operation: What happened.
    """
    for listener in _listeners:
        try:
            listener(operation)
        except Exception:  # noqa: BLE001 - telemetry must never raise into a run
            remove_listener(listener)
            # As text: a handler that keeps a traceback keeps the frames of the run.
            _logger.error(  # noqa: TRY400 - see above
                "A listener of operations raised and was removed:\n%s",
                traceback.format_exc(),
            )
