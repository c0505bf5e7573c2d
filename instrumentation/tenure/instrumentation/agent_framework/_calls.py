"""How a call of the engine reaches a wrapper."""

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

Foreign = Any
"""An object of the engine, whose classes are only known once it is instrumented."""

Arguments = tuple[Any, ...]
Keywords = Mapping[str, Any]
Call = Callable[..., Any]

_WRAPPING: Final = ("wrapt.", f"{__name__.rpartition('.')[0]}.")
"""Packages whose modules' frames stand between the engine's caller and its method."""


def argument(
    args: Arguments,
    kwargs: Keywords,
    position: int,
    name: str,
    default: Foreign = None,
) -> Foreign:
    """Return one argument of a call, however it was passed.

    Args:
        args: The positional arguments.
        kwargs: The keyword arguments.
        position: Where it would stand among the positional ones.
        name: Its name.
        default: What it is where it was not passed.
    """
    return args[position] if len(args) > position else kwargs.get(name, default)


def calling_function() -> str:
    """Return the name of the function of the engine that made the current call."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and _is_wrapping(frame):
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_name


def being_closed() -> bool:
    """Say whether a generator or a coroutine is being closed around this call.

    The collector may be what closes it, in the middle of anything.
    """
    return isinstance(sys.exc_info()[1], GeneratorExit)


def _is_wrapping(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(_WRAPPING)
