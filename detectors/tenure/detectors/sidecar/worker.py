"""A bounded queue and the threads that empty it.

Everything that a sidecar does after a message was accepted is done by one of these, so
that nothing that is slow can hold up what receives.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar, final

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)


@final
class Worker(Generic[_T]):
    """Does one thing to each item that it is offered, in order if it has one thread.

    Safe to use from any thread.

    Args:
        name: What its threads are called.
        work: What is done to an item. What it raises is logged.
        capacity: How much may wait.
        cost: How much of the capacity an item takes; 1 by default.
        threads: How many threads do it.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[_T], object],
        *,
        capacity: int,
        cost: Callable[[_T], int] | None = None,
        threads: int = 1,
    ) -> None:
        self._work: Final = work
        self._capacity: Final = capacity
        self._cost: Final = cost
        self._changed: Final = threading.Condition()
        # Guarded by `_changed`.
        self._items: Final[deque[tuple[_T, int]]] = deque()
        self._waiting = 0
        self._busy = 0
        self._finishing = False
        # Daemons: a hook that hangs must not keep the process from ending.
        self._threads: Final = [
            threading.Thread(target=self._run, name=name, daemon=True)
            for _ in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether its threads run."""
        return all(thread.is_alive() for thread in self._threads)

    @property
    def waiting(self) -> int:
        """How much of the capacity is taken by items that nobody works on yet."""
        return self._waiting

    @property
    def undone(self) -> int:
        """How many items wait or are being worked on."""
        return len(self._items) + self._busy

    def offer(self, item: _T) -> bool:
        """Put `item` at the end of the queue.

        Returns:
            Whether there was room for it, and it is not too late.
        """
        cost = 1 if self._cost is None else self._cost(item)
        with self._changed:
            if self._finishing or self._waiting + cost > self._capacity:
                return False
            self._items.append((item, cost))
            self._waiting += cost
            self._changed.notify()
            return True

    def finish(self, timeout: float) -> bool:
        """Take no more items and do what waits.

        Args:
            timeout: Seconds after which this returns, done or not.

        Returns:
            Whether everything was done.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            self._finishing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return self.undone == 0

    def _run(self) -> None:
        while (item := self._next()) is not None:
            try:
                self._work(item[0])
            except Exception:
                # One item must not end what all others depend on.
                _logger.exception("%s failed", threading.current_thread().name)
            finally:
                with self._changed:
                    self._busy -= 1

    def _next(self) -> tuple[_T, int] | None:
        with self._changed:
            while not self._items:
                if self._finishing:
                    return None
                self._changed.wait()
            item = self._items.popleft()
            self._waiting -= item[1]
            self._busy += 1
            return item
