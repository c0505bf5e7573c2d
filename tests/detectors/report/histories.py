"""Histories to report on: told as engines tell them, some of them by a stranger."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tenure.detectors import Detector
from tenure.detectors.report import Report, Timeline
from tenure.instrumentation.operations import (
    CheckpointSave,
    Claim,
    Commit,
    CommitCause,
    DeliveryKind,
    Discard,
    DiscardCause,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    LateKind,
    Operation,
    Outcome,
    Owner,
    Receive,
    Release,
    RunRef,
    Send,
    SpanRef,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

START = 1_780_000_000_000_000_000
HOSTILE = (
    "</script><script>window.broken=1</script><img src=x onerror=window.broken=2>"
    "\"'`$title &lt; \u202e \x1b[31m \ud800 ``` | @everyone [x](http://evil.test)"
)
ABOUT = (
    "stale-discard",
    "leaked-write",
    "late-write",
    "overlapping-owners",
    "epoch-reuse",
)
"""What is reported on, so that a new rule changes no picture here."""


class Teller:
    """Tells the operations of one instance, numbered per process."""

    def __init__(
        self,
        *,
        workflow: str = "press",
        instance: str = "default",
        process: str = "host-1",
        run_prefix: str = "run",
    ) -> None:
        self.workflow = workflow
        self.instance = instance
        self.process = process
        self.run_prefix = run_prefix
        self.owner: Owner | None = None
        self.told: list[Operation] = []
        self._seq: dict[str, int] = {}

    def run(self, epoch: int, *, process: str | None = None) -> RunRef:
        run_id = f"{self.run_prefix}-{epoch}"
        counted_by = process or self.process
        return RunRef(
            "model/1", self.workflow, self.instance, run_id, epoch, counted_by
        )

    def tell(self, kind, run: RunRef, /, **facts) -> Operation:
        seq = self._seq[run.process] = self._seq.get(run.process, 0) + 1
        number = len(self.told) + 1
        operation = kind(
            run=run,
            seq=seq,
            owner=self.owner,
            span=SpanRef(run.epoch, number),
            time=START + number * 1_000_000,
            **facts,
        )
        self.told.append(operation)
        return operation

    def claim(self, run: RunRef, *, superseded: int | None = None) -> Operation:
        self.owner = Owner(run.epoch, run.run_id)
        return self.tell(Claim, run, superseded=superseded)

    def release(self, run: RunRef, outcome: Outcome = Outcome.COMPLETED) -> Operation:
        return self.tell(Release, run, outcome=outcome)

    def calm_run(self, epoch: int, *, process: str | None = None) -> None:
        run = self.run(epoch, process=process)
        self.claim(run)
        self.tell(SuperstepStart, run, index=1)
        self.tell(Commit, run, writes=WriteSet((("draft", epoch),)), index=1)
        self.tell(SuperstepEnd, run, index=1)
        self.release(run)


def lost_write(key: str = "answer:second", **names: str) -> list[Operation]:
    """A client disconnects and asks again: the engine leaks one write, loses another.

    Positions 6 (leaked write) and 9 (stale discard) are the culprits.
    """
    teller = Teller(**names)
    first, second = teller.run(1), teller.run(2)
    teller.claim(first)
    teller.tell(Commit, first, writes=WriteSet(), cause=CommitCause.RUN_ENTRY)
    teller.tell(SuperstepStart, first, index=1)
    teller.release(first, Outcome.ABANDONED)
    teller.claim(second, superseded=1)
    leaked = WriteSet((("answer:first", 1),))
    teller.tell(Commit, second, writes=leaked, cause=CommitCause.RUN_ENTRY)
    teller.tell(SuperstepStart, second, index=1)
    teller.tell(Execute, first, executor="answerer", index=1, error="CancelledError")
    teller.tell(
        Discard,
        first,
        writes=WriteSet(((key, 2),)),
        cause=DiscardCause.FINALIZER,
        trigger=Trigger.GC,
    )
    teller.tell(SuperstepEnd, first, index=1)
    teller.tell(Execute, second, executor="answerer", index=1)
    teller.tell(Commit, second, writes=WriteSet(), index=1)
    teller.tell(SuperstepEnd, second, index=1)
    teller.release(second)
    return teller.told


def averted(**names: str) -> list[Operation]:
    """The same on an engine that refuses the late discard, at position 4."""
    teller = Teller(**names)
    first, second = teller.run(1), teller.run(2)
    teller.claim(first)
    teller.release(first, Outcome.SUPERSEDED)
    teller.claim(second, superseded=1)
    teller.tell(
        Discard, first, writes=WriteSet(), cause=DiscardCause.ABANDONED, fenced=True
    )
    teller.release(second)
    return teller.told


def calm(runs: int = 2, **names: str) -> list[Operation]:
    """Runs that follow each other and break nothing."""
    teller = Teller(**names)
    for epoch in range(1, runs + 1):
        teller.calm_run(epoch)
    return teller.told


def many(count: int, *, seed: int = 7, **names: str) -> list[Operation]:
    """At least `count` operations of one instance on an engine that races at times."""
    teller = Teller(**names)
    chance = random.Random(seed)
    epoch = 0
    gone: RunRef | None = None
    while len(teller.told) < count:
        epoch += 1
        run = teller.run(epoch)
        teller.claim(run, superseded=gone.epoch if gone else None)
        for index in range(1, chance.randrange(2, 4)):
            teller.tell(SuperstepStart, run, index=index)
            writes = WriteSet((("draft", epoch), (f"answer:{epoch}", epoch)))
            for name in chance.sample(["planner", "writer", "critic"], 2):
                teller.tell(Execute, run, executor=name, index=index, writes=writes)
            if gone is not None:
                _come_late(teller, gone, writes, chance)
                gone = None
            teller.tell(Commit, run, writes=writes, index=index)
            teller.tell(SuperstepEnd, run, index=index)
        if chance.random() < 0.06:
            gone = run
            teller.release(run, Outcome.ABANDONED)
        else:
            teller.release(run)
    return teller.told


def _come_late(
    teller: Teller, gone: RunRef, writes: WriteSet, chance: random.Random
) -> None:
    teller.tell(Late, gone, kind=LateKind.STAGE, ledger=gone.epoch)
    hit = writes if chance.random() < 0.4 else WriteSet()
    cause = DiscardCause.FINALIZER
    fenced = not hit.pairs and chance.random() < 0.5
    teller.tell(Discard, gone, writes=hit, cause=cause, fenced=fenced)


def every_kind() -> list[Operation]:
    """One operation of every kind, in one run."""
    teller = Teller()
    run = teller.run(2)
    teller.claim(run)
    teller.tell(SuperstepStart, run, index=1)
    teller.tell(Execute, run, executor="writer", index=1)
    teller.tell(Receive, run, message="m1", executor="writer", index=1)
    teller.tell(Send, run, message="m2", executor="writer", target="reader", index=1)
    teller.tell(ForeignRead, run, key="draft", writer=1)
    teller.tell(ForeignDelivery, run, kind=DeliveryKind.OUTPUT, origin=1)
    teller.tell(CheckpointSave, run, checkpoint="c1", parts=(("writer", 2),))
    teller.tell(Discard, run, writes=WriteSet(), cause=DiscardCause.SWEEP)
    teller.tell(Commit, run, writes=WriteSet((("draft", 2),)), index=1)
    teller.tell(SuperstepEnd, run, index=1)
    teller.release(run)
    teller.tell(Late, run, kind=LateKind.OUTPUT)
    teller.tell(Discard, run, writes=None, cause=DiscardCause.FINALIZER, fenced=True)
    return teller.told


def of_processes(
    operations: Iterable[Operation], *processes: str
) -> Iterator[Operation]:
    """The same runs, spread over processes by their epochs, each counting anew."""
    counted: dict[str, int] = {}
    for operation in operations:
        process = processes[operation.run.epoch % len(processes)]
        counted[process] = counted.get(process, 0) + 1
        run = replace(operation.run, process=process)
        yield replace(operation, run=run, seq=counted[process])


def report(*histories: Iterable[Operation], sources: tuple[str, ...] = ()) -> Report:
    """Judge histories, and report on them what the tests here are about."""
    detector, timeline = Detector(announce=()), Timeline()
    for history in histories:
        for operation in history:
            detector.feed(operation)
            timeline.add(operation)
    shown = Report.of(detector, timeline, sources=sources)
    found = tuple(each for each in shown.findings if each.anomaly in ABOUT)
    return replace(shown, findings=found)
