"""Invocations under a retry policy, a timeout or a limit of concurrency."""

import threading
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from typing import Any, Final
from weakref import WeakKeyDictionary

from anyio import CapacityLimiter, fail_after, sleep

from tenure.runtime import _spawn
from tenure.runtime._executor import Executor
from tenure.runtime._retry import Retry
from tenure.runtime.errors import ExecutorError

_making: Final = threading.Lock()
# One limiter for each executor in each event loop, because limiters belong to a loop.
_limiters: WeakKeyDictionary[
    Executor, WeakKeyDictionary[_spawn.Loop, CapacityLimiter]
] = WeakKeyDictionary()


def is_guarded(executor: Executor) -> bool:
    """Say whether invocations of `executor` need more than being awaited."""
    return (executor.retry, executor.timeout, executor.concurrency) != (None,) * 3


def time_limit(executor: Executor) -> AbstractContextManager[Any]:
    """Return what ends an attempt with `TimeoutError` after the executor's timeout."""
    return nullcontext() if executor.timeout is None else fail_after(executor.timeout)


def place_of(executor: Executor) -> AbstractAsyncContextManager[Any]:
    """Return what waits until fewer than `concurrency` invocations run.

    Args:
        executor: The executor that all runs share, or the factory's specimen.
    """
    loop = _spawn.running_loop()
    if executor.concurrency is None or loop is None:
        return nullcontext()
    with _making:
        by_loop = _limiters.setdefault(executor, WeakKeyDictionary())
        limiter = by_loop.get(loop)
        if limiter is None:
            limiter = by_loop[loop] = CapacityLimiter(executor.concurrency)
        return limiter


async def with_retries(
    retry: Retry | None, attempt: Callable[[int], Awaitable[None]]
) -> None:
    """Attempt, and attempt again as `retry` says.

    Args:
        retry: The policy; one attempt if `None`.
        attempt: Called with the number of the attempt, from 1.

    Raises:
        ExecutorError: The last attempt failed, or failed in a way that is not worth
            another; or the policy itself did, asked whether it is.
    """
    if retry is None:
        await attempt(1)
        return
    # Loaded by whoever uses a retry policy.
    from tenacity import (
        AsyncRetrying,
        retry_if_exception,
        stop_after_attempt,
    )

    def worth_another(error: BaseException) -> bool:
        if not isinstance(error, ExecutorError):
            return False
        # In a sub-workflow the failure of an executor is that of another.
        cause: BaseException | None = error
        while isinstance(cause, ExecutorError):
            cause = cause.__cause__
        try:
            return cause is not None and retry.covers(cause)
        except Exception as exc:
            reason = f"retry.on raised {type(exc).__name__}: {exc}"
            raise ExecutorError(error.executor, error.superstep, reason) from exc

    trying = AsyncRetrying(
        sleep=sleep,
        stop=stop_after_attempt(retry.attempts),
        wait=lambda state: retry.seconds_before(state.attempt_number + 1),
        retry=retry_if_exception(worth_another),
        reraise=True,
    )
    async for one in trying:
        with one:
            await attempt(one.retry_state.attempt_number)
