"""In which order operations are drawn: by position, never by clock.

Within a process the position decides. Between processes nothing does but epochs: an
operation is drawn after the claim of the epoch that it saw owning the instance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

from tenure.instrumentation.operations import Claim, Operation

Key = tuple[str, str, str]
Slot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Hole:
    """Positions of one process that are not there."""

    process: str
    first: int
    last: int


@dataclass(slots=True)
class Life:
    """The operations of one instance, from its making to its end.

    Attributes:
        number: Counts instances that had one identity, one after the other, from 1.
        operations: In the order of arrival.
    """

    number: int
    operations: list[Operation] = field(default_factory=list[Operation])
    slots: set[Slot] = field(default_factory=set[Slot])


def identity(operation: Operation) -> object:
    """Return what two arrivals of one operation have in common, and no others."""
    if operation.seq is None:
        return operation
    run = operation.run
    return (
        operation.name,
        run.engine,
        run.workflow,
        run.instance,
        run.run_id,
        run.process,
        operation.seq,
    )


def lives(operations: Iterable[Operation]) -> Iterator[tuple[Key, Life]]:
    """Tell instances apart, also those that had one identity one after the other.

    A process counts the operations of an instance from 1. A run whose positions are
    taken by other runs is therefore one of a later instance of that name.

    Args:
        operations: In the order of arrival; repetitions are left out.
    """
    instances: dict[Key, dict[str, list[Operation]]] = {}
    seen: dict[object, int] = {}
    for operation in operations:
        known = identity(operation)
        if known in seen:
            continue
        seen[known] = len(seen)
        run = operation.run
        runs = instances.setdefault((run.engine, run.workflow, run.instance), {})
        runs.setdefault(run.run_id, []).append(operation)
    for key, runs in instances.items():
        for life in _split(runs.values()):
            life.operations.sort(key=lambda each: seen[identity(each)])
            yield key, life


def _split(runs: Iterable[list[Operation]]) -> Iterator[Life]:
    life = Life(1)
    for operations in runs:
        slots = {
            (operation.run.process, operation.seq)
            for operation in operations
            if operation.seq is not None
        }
        if not slots.isdisjoint(life.slots):
            yield life
            life = Life(life.number + 1)
        life.operations.extend(operations)
        life.slots |= slots
    yield life


def processes(operations: Iterable[Operation]) -> tuple[str, ...]:
    """Return who counted `operations`, in the order of their smallest epochs."""
    return tuple(_by_process(operations))


def _by_process(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for operation in operations:
        found.setdefault(operation.run.process, []).append(operation)
    smallest = {
        process: min(operation.run.epoch for operation in counted)
        for process, counted in found.items()
    }
    ranked = sorted(found, key=lambda process: (smallest[process], process))
    return {process: found[process] for process in ranked}


def in_order(operations: Iterable[Operation]) -> Iterator[Operation | Hole]:
    """Order the operations of one life, with a hole wherever positions are missing.

    Args:
        operations: In any order.
    """
    queues = [_Queue(*counted) for counted in _by_process(operations).items()]
    heads = [(queue.urgency, number) for number, queue in enumerate(queues)]
    heapify(heads)
    while heads:
        _, number = heappop(heads)
        queue = queues[number]
        yield from queue.take()
        if not queue.empty:
            heappush(heads, (queue.urgency, number))


class _Queue:
    """The operations of one process, by position; those without one come last."""

    def __init__(self, process: str, operations: Iterable[Operation]) -> None:
        self._process: Final = process
        # Invariant: the next one is the last.
        self._waiting: Final = sorted(operations, key=_position)[::-1]
        self._expected = 1

    @property
    def empty(self) -> bool:
        """Whether all have been taken."""
        return not self._waiting

    @property
    def urgency(self) -> tuple[int, bool]:
        """By which the next operation is compared with those of other processes."""
        head = self._waiting[-1]
        owner = head.run.epoch if head.owner is None else head.owner.epoch
        return max(owner, head.run.epoch), not isinstance(head, Claim)

    def take(self) -> Iterator[Operation | Hole]:
        """Take the next operation, after the hole before it."""
        head = self._waiting.pop()
        if head.seq is not None:
            if head.seq > self._expected:
                yield Hole(self._process, self._expected, head.seq - 1)
            self._expected = max(self._expected, head.seq + 1)
        yield head


def _position(operation: Operation) -> tuple[bool, int]:
    return operation.seq is None, operation.seq or 0
