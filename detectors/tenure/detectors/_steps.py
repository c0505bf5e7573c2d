"""What is remembered of supersteps: who read and staged which key in the current ones.

Pure and bounded. A superstep is forgotten when it has ended and nothing of it can
arrive any more.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from tenure.instrumentation.operations import (
    WRITE_CAP,
    Commit,
    CommitCause,
    Execute,
    Operation,
    SuperstepEnd,
    SuperstepStart,
)

MAX_SUPERSTEPS: Final = 4
"""How many supersteps that something of may still arrive are remembered per instance."""

MAX_EXECUTIONS: Final = 4_096
"""How many executor invocations are remembered per superstep."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Keys over which the executors of one superstep are in each other's way.

    Attributes:
        written: Keys that two executors staged, in order.
        read: Keys that one executor read and another staged, in order.
        writers: For each of `written`, an invocation of each executor that staged it.
        readers: For each of `read`, the reader's invocation and the writer's.
    """

    written: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    writers: dict[str, tuple[Execute, ...]] = field(default_factory=dict)
    readers: dict[str, tuple[Execute, Execute]] = field(default_factory=dict)


NO_CONFLICTS: Final = Conflicts()


def conflicts(executions: Iterable[Execute]) -> Conflicts:
    """Find the conflicts among the invocations of one superstep, in any order.

    Invocations of one executor are never in conflict: it handles one message at a time.
    """
    writers: dict[str, dict[str, Execute]] = {}
    plain: set[str] = set()
    readers: dict[str, dict[str, Execute]] = {}
    for one in executions:
        if one.writes is not None:
            for key, _ in one.writes.pairs:
                writers.setdefault(key, {}).setdefault(one.executor, one)
                if key not in one.reduced:
                    plain.add(key)
        if not one.isolated:
            for key in one.reads:
                readers.setdefault(key, {}).setdefault(one.executor, one)
    contended = [key for key in writers if key in plain]
    written = {
        key: tuple(writers[key].values()) for key in contended if len(writers[key]) > 1
    }
    read: dict[str, tuple[Execute, Execute]] = {}
    for key in contended:
        if key in written or key not in readers:
            continue
        ((writer, staged),) = writers[key].items()
        for reader, did in readers[key].items():
            if reader != writer:
                read[key] = (did, staged)
                break
    if not written and not read:
        return NO_CONFLICTS
    return Conflicts(tuple(written), tuple(read), written, read)


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
        "executions",
        "index",
        "process",
        "run_id",
        "shared",
    )

    def __init__(self, operation: Operation, index: int) -> None:
        self.process: Final = operation.run.process
        self.run_id: Final = operation.run.run_id
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

    __slots__ = ("_current", "_others", "_started", "forgot")

    def __init__(self) -> None:
        # Whether one was forgotten of which something may still arrive.
        self.forgot = False
        self._current: Superstep | None = None
        # Invariant: not in here is `_current`.
        self._others: OrderedDict[tuple[str, str, int], Superstep] | None = None
        self._started: SuperstepStart | None = None

    def of(self, operation: Execute | Commit) -> Superstep | None:
        """Return the superstep of `operation`, if something of it has arrived."""
        step, index = self._current, operation.index
        if index is None:
            return None
        run = operation.run
        if (
            step is not None
            and step.index == index
            and step.run_id == run.run_id
            and step.process == run.process
        ):
            return step
        if not self._others:
            return None
        return self._others.get((run.process, run.run_id, index))

    def started(self, operation: SuperstepStart) -> None:
        """Remember where the newest superstep began."""
        self._started = operation

    def executed(self, operation: Execute, unbroken_from: int) -> Superstep | None:
        """Remember an invocation; one that failed leaves nothing to be in the way of.

        Args:
            operation: The invocation.
            unbroken_from: Position from which on everything of the process has arrived.

        Returns:
            Its superstep.
        """
        if operation.index is None or operation.error is not None:
            return None
        step = self.of(operation)
        if step is None:
            step = Superstep(operation, operation.index)
            self._put(step, unbroken_from)
        step.add(operation)
        return step

    def committed(self, operation: Commit, unbroken_from: int) -> Superstep | None:
        """Remember that a superstep was committed, so that its conflicts count.

        Args:
            operation: The commit.
            unbroken_from: As in `executed`.

        Returns:
            Its superstep, unless it has no invocations and none can arrive any more.
        """
        index = operation.index
        if index is None or operation.cause is not CommitCause.SUPERSTEP:
            return None
        step = self.of(operation)
        if step is None:
            if unbroken_from <= self._start_of(operation, index):
                return None
            step = Superstep(operation, index)
            self._put(step, unbroken_from)
        if step.commit is None:
            step.commit = operation
        return step

    def ended(self, operation: SuperstepEnd, unbroken_from: int) -> None:
        """Forget a superstep of which everything has arrived.

        Args:
            operation: Its end.
            unbroken_from: As in `executed`.
        """
        step = self._current
        if (
            step is not None
            and step.index == operation.index
            and step.run_id == operation.run.run_id
            and unbroken_from <= self._start_of(operation, operation.index)
        ):
            self._current = None

    def _start_of(self, operation: Operation, index: int) -> int:
        """Position of the superstep's start; the very first one where it is unknown."""
        started = self._started
        if (
            started is None
            or started.seq is None
            or started.index != index
            or started.run.run_id != operation.run.run_id
            or started.run.process != operation.run.process
        ):
            return 1
        return started.seq

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
        if len(self._others) >= MAX_SUPERSTEPS:
            self._others.popitem(last=False)
            self.forgot = True
