"""How the end of an object came about, asked from inside its finalizer."""

import atexit
import gc
import threading
import weakref
from typing import Any

from tenure.instrumentation.operations import Trigger

# Invariant: the thread in which the collector runs now, or 0.
_collecting = 0
_exiting = False
_watching = False


def watch_endings() -> None:
    """Begin to take note of collections and of the interpreter's exit."""
    global _watching  # noqa: PLW0603 - one collector per process
    if not _watching:
        _watching = True
        gc.callbacks.append(_note_collection)
        # The exit hook of finalizers is registered with the first of them. This one has
        # to be registered after it, to be called before it.
        weakref.finalize(watch_endings, current_trigger).detach()
        atexit.register(_note_exit)


def current_trigger() -> Trigger:
    """Return why a finalizer runs now in this thread."""
    if _exiting:
        return Trigger.SHUTDOWN
    if _collecting == threading.get_ident():
        return Trigger.GC
    return Trigger.REFCOUNT


def _note_collection(phase: str, _info: dict[str, Any]) -> None:
    global _collecting  # noqa: PLW0603 - as above
    _collecting = threading.get_ident() if phase == "start" else 0


def _note_exit() -> None:
    global _exiting  # noqa: PLW0603 - as above
    _exiting = True
