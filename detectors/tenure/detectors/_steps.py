"""What is remembered of supersteps: who read and staged which key in the current ones.

Pure and bounded. A superstep is forgotten when it has ended and nothing of it can
arrive any more.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tenure.instrumentation.operations import (
    WRITE_CAP,
    Commit,
    CommitCause,
    Execute,
    Operation,
    RunRef,
    SuperstepEnd,
    SuperstepStart,
)

MAX_SUPERSTEPS: Final = 4
"""How many supersteps are remembered per instance beside the newest one."""

MAX_EXECUTIONS: Final = 4_096
"""How many executor invocations are remembered per superstep."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Keys over which the executors of one superstep are in each other's way.

    Attributes:
        written: Keys that two executors staged, each with an invocation of every one.
        read: Keys that one executor read and another staged: both invocations, the
            reader's first.
    """

    written: Mapping[str, tuple[Execute, ...]]
    read: Mapping[str, tuple[Execute, Execute]]


NO_CONFLICTS: Final = Conflicts({}, {})


def conflicts(executions: Sequence[Execute]) -> Conflicts:
    """Find the conflicts among the invocations of one superstep, in any order.

    Invocations of one executor are never in conflict: it handles one message at a time.
    """
    if _disjoint(executions):
        return NO_CONFLICTS
    writers, readers = _stagings(executions), _readings(executions)
    contended = [
        key
        for key, staged in writers.items()
        if not all(key in one.reduced for one in staged)
    ]
    written: dict[str, tuple[Execute, ...]] = {}
    read: dict[str, tuple[Execute, Execute]] = {}
    for key in contended:
        by = {one.executor: one for one in reversed(writers[key])}
        if len(by) > 1:
            written[key] = tuple(reversed(by.values()))
            continue
        (staged,) = by.values()
        for one in readers.get(key, ()):
            if one.executor != staged.executor:
                read[key] = (one, staged)
                break
    return Conflicts(written, read) if written or read else NO_CONFLICTS


def _disjoint(executions: Sequence[Execute]) -> bool:
    """Say whether no executor touched what another staged: the ordinary case."""
    stagers: dict[str, str] = {}
    for one in executions:
        executor = one.executor
        if one.writes is not None:
            for key, _ in one.writes.pairs:
                if stagers.setdefault(key, executor) != executor:
                    return False
    return not any(
        stagers.get(key, one.executor) != one.executor
        for one in executions
        if one.reads and not one.isolated
        for key in one.reads
    )


def _stagings(executions: Sequence[Execute]) -> dict[str, list[Execute]]:
    found: dict[str, list[Execute]] = {}
    for one in executions:
        if one.writes is not None:
            for key, _ in one.writes.pairs:
                found.setdefault(key, []).append(one)
    return found


def _readings(executions: Sequence[Execute]) -> dict[str, list[Execute]]:
    found: dict[str, list[Execute]] = {}
    for one in executions:
        if not one.isolated:
            for key in one.reads:
                found.setdefault(key, []).append(one)
    return found


class Superstep:
    """One superstep of one run, as far as its operations have arrived.

    Args:
        operation: The first of them.
        index: Its number in the run.
    """

    __slots__ = (
        "_counted",
        "_found",
        "commit",
        "cut_short",
        "epoch",
        "executions",
        "index",
        "process",
        "run_id",
        "shared",
    )

    def __init__(self, operation: Operation, index: int) -> None:
        self.process: Final = operation.run.process
        self.run_id: Final = operation.run.run_id
        self.epoch: Final = operation.run.epoch
        self.index: Final = index
        self.executions: Final[list[Execute]] = []
        # Whether more than one executor has acted in it.
        self.shared = False
        # Whether some keys are not known, so that a conflict may go unseen.
        self.cut_short = False
        self.commit: Commit | None = None
        self._found = NO_CONFLICTS
        # Invariant: `_found` is that of the first so many executions.
        self._counted = 0

    def is_of(self, run: RunRef) -> bool:
        """Say whether it is one of `run`."""
        return self.run_id == run.run_id and self.process == run.process

    def precedes(self, other: "Superstep") -> bool:
        """Say whether it is an earlier one of the same run."""
        return (
            self.index < other.index
            and self.run_id == other.run_id
            and self.process == other.process
        )

    def add(self, operation: Execute) -> None:
        """Remember an invocation."""
        executions = self.executions
        if len(executions) >= MAX_EXECUTIONS:
            self.cut_short = True
            return
        if executions and executions[0].executor != operation.executor:
            self.shared = True
        writes = operation.writes
        if writes is None or writes.omitted or len(operation.reads) >= WRITE_CAP:
            self.cut_short = True
        executions.append(operation)

    def conflicts(self) -> Conflicts:
        """Return the conflicts among the invocations that have arrived."""
        if not self.shared:
            return NO_CONFLICTS
        if self._counted != len(self.executions):
            self._found = conflicts(self.executions)
            self._counted = len(self.executions)
        return self._found

    def conflicts_with(self, operation: Execute) -> Conflicts:
        """Return the conflicts that there are once `operation` is added."""
        if all(one.executor == operation.executor for one in self.executions):
            return NO_CONFLICTS
        return conflicts([*self.executions, operation])


class Supersteps:
    """The supersteps of one instance of which something may still arrive."""

    __slots__ = (
        "_current",
        "_lone",
        "_others",
        "contended",
        "evicted",
        "late",
        "newest_start",
    )

    def __init__(self) -> None:
        # Invariant: with a lone invocation, neither of the other two has anything.
        self._lone: Execute | None = None
        self._current: Superstep | None = None
        self._others: OrderedDict[tuple[str, str, int], Superstep] | None = None
        # Where the newest superstep began.
        self.newest_start: SuperstepStart | None = None
        # Whether a remembered superstep has more than one executor, or its commit.
        self.contended = False
        self.late = False
        # One that was forgotten for want of room, for the history to look at.
        self.evicted: Superstep | None = None

    @property
    def in_question(self) -> bool:
        """Whether a remembered superstep may have conflicts."""
        return self.contended or self.late

    def of(self, operation: Execute | Commit) -> Superstep | None:
        """Return the superstep of `operation`, if it is remembered and contended."""
        step, index = self._current, operation.index
        if index is None:
            return None
        if step is not None and step.index == index and step.is_of(operation.run):
            return step
        if not self._others:
            return None
        run = operation.run
        return self._others.get((run.process, run.run_id, index))

    def executed(self, operation: Execute, unbroken_from: int) -> Superstep | None:
        """Remember an invocation; one that failed leaves nothing to be in the way of.

        Args:
            operation: The invocation.
            unbroken_from: Position from which on everything of the process has arrived.

        Returns:
            Its superstep, unless it is the first and only invocation that is known.
        """
        if operation.index is None or operation.error is not None:
            return None
        if self._lone is None and self._current is None and not self._others:
            self._lone = operation
            return None
        self._unfold()
        step = self.of(operation)
        if step is None:
            step = Superstep(operation, operation.index)
            self._put(step, unbroken_from)
        step.add(operation)
        if step.shared:
            self.contended = True
        return step

    def committed(self, operation: Commit, unbroken_from: int) -> Superstep | None:
        """Remember that a superstep was committed, so that its conflicts count.

        All executors of a superstep end before it is committed: where everything up to
        here has arrived, it is forgotten instead.

        Args:
            operation: The commit.
            unbroken_from: As in `executed`.

        Returns:
            Its superstep, unless it has no conflicts for certain.
        """
        index = operation.index
        if index is None or operation.cause is not CommitCause.SUPERSTEP:
            return None
        whole = unbroken_from <= self._start_of(operation, index)
        if self._lone is not None:
            if whole and self._lone_is_of(operation.run, index):
                self._lone = None
                return None
            self._unfold()
        step = self.of(operation)
        if step is None:
            if whole:
                return None
            step = Superstep(operation, index)
            self._put(step, unbroken_from)
        if step.commit is None:
            step.commit = operation
        if whole:
            self._forget(step)
        else:
            self.late = True
        return step

    def ended(self, operation: SuperstepEnd, unbroken_from: int) -> None:
        """Forget a superstep of which everything has arrived.

        Args:
            operation: Its end.
            unbroken_from: As in `executed`.
        """
        lone, step = self._lone, self._current
        if lone is None and step is None:
            return
        if unbroken_from > self._start_of(operation, operation.index):
            return
        if lone is not None:
            if self._lone_is_of(operation.run, operation.index):
                self._lone = None
        elif (
            step is not None
            and step.index == operation.index
            and step.is_of(operation.run)
        ):
            self._forget(step)

    def _start_of(self, operation: Operation, index: int) -> int:
        """Position of the superstep's start; the very first one where it is unknown."""
        started = self.newest_start
        if started is None or started.index != index or started.seq is None:
            return 1
        run, begun = operation.run, started.run
        if run is begun or (
            run.run_id == begun.run_id and run.process == begun.process
        ):
            return started.seq
        return 1

    def _lone_is_of(self, run: RunRef, index: int) -> bool:
        lone = self._lone
        return (
            lone is not None
            and lone.index == index
            and lone.run.run_id == run.run_id
            and lone.run.process == run.process
        )

    def _unfold(self) -> None:
        """Make a superstep of the lone invocation."""
        lone, self._lone = self._lone, None
        if lone is not None and lone.index is not None:
            self._current = Superstep(lone, lone.index)
            self._current.add(lone)

    def _put(self, step: Superstep, unbroken_from: int) -> None:
        before, self._current = self._current, step
        if before is None:
            return
        # All executors of a superstep end before the run's next one begins.
        if unbroken_from <= 1 and before.precedes(step):
            return
        if self._others is None:
            self._others = OrderedDict()
        self._others[before.process, before.run_id, before.index] = before
        if len(self._others) > MAX_SUPERSTEPS:
            _, self.evicted = self._others.popitem(last=False)

    def _forget(self, step: Superstep) -> None:
        if step is self._current:
            self._current = None
        elif self._others is not None:
            self._others.pop((step.process, step.run_id, step.index), None)
        if self._current is None and not self._others:
            self.contended = self.late = False
