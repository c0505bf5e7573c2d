"""What all model engines share: claims, positions, and the truth about them.

A model knows the truth by who acted when, not by the numbers that the rules read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from tenure.detectors import CATALOGUE, Severity
from tenure.instrumentation.operations import (
    Claim,
    Execute,
    Operation,
    Outcome,
    Owner,
    Release,
    RunRef,
    SuperstepEnd,
    SuperstepStart,
    WriteSet,
)

Place = tuple[str, int | None]
"""Process and position of an operation."""


@dataclass(frozen=True)
class Truth:
    """One anomaly that happened.

    Attributes:
        anomaly: Its slug.
        variant: Its form, or several that are all right, with `|` between them.
        culprit: Where it happened.
        other: A second operation that it takes, such as a victim's claim.
    """

    anomaly: str
    variant: str
    culprit: Place
    other: Place | None = None

    @property
    def severities(self) -> set[Severity]:
        variants = CATALOGUE[self.anomaly].variants
        return {variants[name] for name in self.variant.split("|")}


@dataclass(eq=False)
class Run:
    """A run of a model engine; its rank in time is its place in `Engine.runs`."""

    ref: RunRef
    released: bool = False
    superseded: bool = False
    claim: Claim | None = None
    ledger: set[str] = field(default_factory=set)
    # The superstep it is in, if any, and what its executors did there.
    index: int = 0
    inside: bool = False
    executions: list[Execute] = field(default_factory=list)
    # Checkpoints: the newest at its claim, until it has saved one itself; the one that
    # it follows; and the snapshots taken for the next.
    found: str | None = None
    parent: str | None = None
    taken: set[str] = field(default_factory=set)
    # Messages: sent and received, each with the superstep of every time.
    sent: dict[str, list[int]] = field(default_factory=dict)
    received: dict[str, list[int]] = field(default_factory=dict)

    @property
    def live(self) -> bool:
        return not self.released and not self.superseded

    def undo(self, index: int) -> None:
        """Take back the messages of a superstep that did not happen."""
        for messages in (self.sent, self.received):
            for message, times in list(messages.items()):
                messages[message] = [one for one in times if one != index]
                if not messages[message]:
                    del messages[message]


@dataclass(frozen=True)
class Telling:
    """What operations say: engines differ in how much they know.

    Attributes:
        owner: Whether they say who owned the instance.
        local: Whether that is only what their own process knew of it.
        previous: Whether a checkpoint says from where its run went back.
    """

    owner: bool = True
    local: bool = False
    previous: bool = True
    writes: bool = True
    numbered: bool = True


def place(operation: Operation) -> Place:
    return operation.run.process, operation.seq


class Engine:
    """Claims and positions; what runs do to each other is for others to say."""

    def __init__(self, random: Random, telling: Telling, *, processes: int) -> None:
        self.random = random
        self.telling = telling
        self.processes = [f"p{number}" for number in range(processes)]
        self.seq: dict[str, int] = {}
        self.runs: list[Run] = []
        self.told: list[Operation] = []
        self.truth: set[Truth] = set()
        # What is true as well, and told as something worse.
        self.also_true: set[Truth] = set()
        self.reused: set[frozenset[Place]] = set()

    @property
    def owner(self) -> Run:
        return self.runs[-1]

    def rank(self, run: Run) -> int:
        return self.runs.index(run)

    def stale(self, run: Run) -> bool:
        return run is not self.owner

    def head(self, run: Run) -> dict[str, object]:
        process = run.ref.process
        self.seq[process] = self.seq.get(process, 0) + 1
        return {
            "run": run.ref,
            "seq": self.seq[process] if self.telling.numbered else None,
            "owner": self.owner_known_to(process),
            # Clocks are skewed beyond all reason: no rule may read them.
            "time": self.random.getrandbits(60),
        }

    def owner_known_to(self, process: str) -> Owner | None:
        if not self.telling.owner:
            return None
        known = [run.ref for run in self.runs]
        if self.telling.local:
            known = [ref for ref in known if ref.process == process]
        return Owner(known[-1].epoch, known[-1].run_id)

    def left_by(self, run: Run) -> str | None:
        """From where a run goes back that is about to save a checkpoint."""
        left, run.found = run.found, None
        return left if self.telling.previous and left != run.parent else None

    def tell(self, operation: Operation) -> Operation:
        self.told.append(operation)
        return operation

    def accuse(
        self,
        anomaly: str,
        variant: str,
        operation: Operation,
        other: Operation | None = None,
    ) -> None:
        second = None if other is None else place(other)
        self.truth.add(Truth(anomaly, variant, place(operation), second))

    def claim(self, *, epoch: int | None = None, policy: bool) -> None:
        """Claim for a new run: over the newest one by policy, or over whoever lives."""
        number = len(self.runs) + 1
        if epoch is None:
            epoch = max((run.ref.epoch for run in self.runs), default=0) + 1
        process = self.random.choice(self.processes)
        ref = RunRef("model/1", "press", "i", f"run-{number}", epoch, process)
        run, before = Run(ref), list(self.runs)
        self.runs.append(run)
        replaced = next((one for one in reversed(before) if one.live), None)
        if not policy:
            replaced = None
        run.claim = Claim(**self.head(run), superseded=replaced and replaced.ref.epoch)
        self.tell(run.claim)
        if replaced is not None:
            replaced.superseded = True
        for other in before:
            assert other.claim is not None
            if other.live:
                self.accuse("overlapping-owners", "claimed", run.claim, other.claim)
            if other.ref.epoch >= epoch:
                self.reused.add(frozenset({place(run.claim), place(other.claim)}))

    def release(self, run: Run) -> None:
        if not run.live:
            return
        run.released = True
        outcome = self.random.choice([Outcome.COMPLETED, Outcome.FAILED])
        operation = self.tell(Release(**self.head(run), outcome=outcome))
        if outcome is Outcome.COMPLETED and set(run.sent) - set(run.received):
            self.accuse("message-loss", "undelivered", operation)

    # Supersteps.

    def begin(self, run: Run) -> None:
        if run.live and not run.inside:
            run.inside = True
            run.index += 1
            run.executions.clear()
            self.tell(SuperstepStart(**self.head(run), index=run.index))

    def end(self, run: Run) -> None:
        run.inside = False
        self.tell(SuperstepEnd(**self.head(run), index=run.index))

    def execute(
        self,
        run: Run,
        *,
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        reduced: tuple[str, ...] = (),
        isolated: bool = False,
        executor: str,
    ) -> None:
        failed = self.random.random() < 0.1
        operation = Execute(
            **self.head(run),
            executor=executor,
            index=run.index,
            reads=reads,
            writes=self.write_set(dict.fromkeys(writes, run)),
            reduced=reduced,
            isolated=isolated,
            error="ValueError" if failed else None,
        )
        self.tell(operation)
        if not failed:
            run.executions.append(operation)

    def conflicts(self, run: Run, commit: Operation) -> None:
        """Compare every two executors: do they write, or read and write, one key?"""
        pairs = [
            (one, two)
            for one in run.executions
            for two in run.executions
            if one.executor != two.executor
        ]
        contended = {
            key
            for one, two in pairs
            for key in _staged(one) & _staged(two)
            if not _joined(key, run.executions)
        }
        read = {
            key
            for one, two in pairs
            for key in set(one.reads) & (_staged(two) - set(two.reduced))
            if not one.isolated
        }
        if contended:
            self.accuse("write-write-conflict", "committed", commit)
        if read - contended:
            self.accuse("read-write-conflict", "committed", commit)
        elif read:
            # If a writer is lost, the other one and the reader are left.
            where = place(commit)
            self.also_true.add(Truth("read-write-conflict", "committed", where))

    def write_set(self, writes: Mapping[str, Run]) -> WriteSet | None:
        if not self.telling.writes:
            return None
        return WriteSet(tuple((key, run.ref.epoch) for key, run in writes.items()))


def _staged(operation: Execute) -> set[str]:
    return set() if operation.writes is None else set(operation.writes.keys)


def _joined(key: str, executions: list[Execute]) -> bool:
    """Say whether everybody who staged `key` did so through a reducer."""
    return all(key in one.reduced for one in executions if key in _staged(one))
