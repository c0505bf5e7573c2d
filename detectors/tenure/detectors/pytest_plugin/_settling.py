"""The turns that late cleanup gets before the loop of an asynchronous test is gone.

Whoever runs the test closes or leaves its loop as soon as the body returns. What the
body has abandoned is cleaned up by tasks that have hardly begun then.
"""

import asyncio  # noqa: TID251 - the loop that runs the test, not the engine's
import functools
import gc
import inspect
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import pytest

TURNS: Final = 50
"""How often the loop turns each time; a run of agent-framework that was dropped has
cleaned up after 13 turns, one whose executors clean up slowly later."""

_T = TypeVar("_T")


@contextmanager
def settling(item: pytest.Item, is_needed: Callable[[], bool]) -> Generator[None]:
    """Let what the body of `item` leaves behind settle before its loop is left.

    Args:
        item: A test; one that is not asynchronous has no loop to turn, and what only
            the collector would find is collected at its end.
        is_needed: Asked when the body has returned.
    """
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(
        item.obj
    ):
        yield
        if is_needed():
            gc.collect()
        return
    body = item.obj
    item.obj = _settled(body, is_needed)
    try:
        yield
    finally:
        item.obj = body


def _settled(
    body: Callable[..., Awaitable[_T]], is_needed: Callable[[], bool]
) -> Callable[..., Awaitable[_T]]:
    @functools.wraps(body)
    async def wrapper(*args: Any, **kwargs: Any) -> _T:  # noqa: ANN401 - as the body has them
        result = await body(*args, **kwargs)
        # The body's frame is gone, and with it what nothing else held.
        if is_needed():
            await _settle()
        return result

    return wrapper


async def _settle() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Another library's loop, where nothing outlives its nursery.
        return
    await _turn()
    # Invariant: no task is garbage here. The collector would throw one that waits for
    # ever into its own finalizers; whoever closes the loop cancels it in good order.
    held = asyncio.all_tasks()
    gc.collect()
    await _turn()
    held.clear()


async def _turn() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)
