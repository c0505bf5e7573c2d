"""How a failed invocation is tried again."""

import importlib.util
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Retry:
    """Try an invocation again, with exponential backoff and jitter.

    Each attempt stages into a fresh ledger: a failed one leaves nothing. Outputs that
    it had yielded have reached a stream already; a result does not hold them.

    Attributes:
        attempts: How many attempts there are in all.
        wait: Seconds before the second attempt, at most; each further wait may be twice
            as long. Half of each is left to chance, so that runs that failed together
            do not try again together.
        max_wait: Seconds that no wait exceeds.
        on: Exceptions that are worth another attempt, or a function that says so.
            A timeout of the executor raises `TimeoutError`.

    Raises:
        ValueError: A number makes no sense.
        ImportError: The library that spaces the attempts is not installed.
    """

    attempts: int = 3
    wait: float = 0.1
    max_wait: float = 5.0
    on: (
        type[Exception] | tuple[type[Exception], ...] | Callable[[BaseException], bool]
    ) = Exception

    def __post_init__(self) -> None:
        if not (self.attempts >= 1 and self.wait >= 0 and self.max_wait >= 0):
            raise ValueError(f"{self!r}: attempts count from 1, waits from 0 seconds")
        if importlib.util.find_spec("tenacity") is None:
            raise ImportError("Retry needs tenacity: pip install 'tenure[retry]'")

    def seconds_before(self, attempt: int) -> float:
        """Return how long to wait before an attempt, from the second on."""
        longest = min(self.max_wait, self.wait * 2.0 ** min(attempt - 2, 64))
        return random.uniform(longest / 2, longest)  # noqa: S311 - spreads attempts

    def covers(self, error: BaseException) -> bool:
        """Say whether `error` is worth another attempt."""
        on: Any = self.on
        return isinstance(error, on) if isinstance(on, type | tuple) else on(error)
