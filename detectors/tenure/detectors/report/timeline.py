"""The newest operations of each instance, for a report.

A detector needs no past and keeps none; whoever wants to see what happened around a
finding keeps a timeline beside it.
"""

from collections import deque
from itertools import count
from types import TracebackType
from typing import Final, Self

from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.operations import Operation

Key = tuple[str, str, str]


class _Shelf:
    """What is kept of one instance, and how much came."""

    __slots__ = ("counting", "kept", "taken")

    def __init__(self, room: int) -> None:
        self.kept: Final[deque[Operation]] = deque(maxlen=room)
        self.counting: Final = count(1)
        self.taken = 0


class Timeline:
    """Keeps the newest operations of each instance, and counts what it lets go.

    Any thread may call any method, and a finalizer may interrupt one with `add`:
    nothing blocks and nothing raises.

    Args:
        max_per_instance: How many operations are kept of one instance.
        max_instances: How many instances are kept; the one that came first goes first.

    Raises:
        ValueError: A bound is less than 1.
    """

    def __init__(
        self, *, max_per_instance: int = 10_000, max_instances: int = 1_000
    ) -> None:
        if max_per_instance < 1 or max_instances < 1:
            raise ValueError("max_per_instance and max_instances count from 1")
        self._room: Final = max_per_instance
        self._max_instances: Final = max_instances
        # Every step below is one that other threads see as a whole: no lock, because a
        # finalizer may interrupt the thread that holds it.
        self._shelves: Final[dict[Key, _Shelf]] = {}
        self._forgotten: Final[deque[int]] = deque(maxlen=1)
        self._forgetting: Final = count(1)

    def add(self, operation: Operation) -> None:
        """Keep `operation`; the oldest one of its instance may go for it."""
        run = operation.run
        key = (run.engine, run.workflow, run.instance)
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves.setdefault(key, _Shelf(self._room))
            if len(self._shelves) > self._max_instances:
                self._forget()
        shelf.kept.append(operation)
        shelf.taken = next(shelf.counting)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is kept: instance after instance, each in the order of arrival."""
        found: list[Operation] = []
        for shelf in self._shelves.copy().values():
            found.extend(shelf.kept.copy())
        return tuple(found)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What came and is not kept, in words; empty if everything is."""
        found: list[str] = []
        for (_, workflow, instance), shelf in self._shelves.copy().items():
            gone = shelf.taken - len(shelf.kept)
            if gone > 0:
                found.append(f"the oldest {gone} operations of {workflow}/{instance}")
        if self._forgotten:
            found.append(f"{self._forgotten[0]} instances, those that came first")
        return tuple(found)

    def listen(self) -> Self:
        """Keep every operation that this process tells from now on.

        Listening twice changes nothing. Use the result as a context manager to stop at
        the end of a block.
        """
        add_listener(self.add)
        return self

    def close(self) -> None:
        """Stop listening; what is kept stays. Closing twice changes nothing."""
        remove_listener(self.add)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _forget(self) -> None:
        try:
            oldest = next(iter(self._shelves))
        except (RuntimeError, StopIteration):
            # Another thread changed the shelves meanwhile, and forgets in turn.
            return
        if self._shelves.pop(oldest, None) is not None:
            self._forgotten.append(next(self._forgetting))
