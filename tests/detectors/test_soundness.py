"""What is called certain is never wrong, and what is lost is never called clean.

Two model engines play random histories: one whose runs share a pending map and are not
fenced, and one with a ledger per epoch. The models know the truth by who acted when,
not by the numbers that the rules read. Telemetry is then lost, repeated and reordered.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.detectors import Certainty, Detector, Finding, Severity, Verdict
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    DeliveryKind,
    Discard,
    DiscardCause,
    Execute,
    ForeignDelivery,
    Late,
    LateKind,
    Operation,
    Outcome,
    Owner,
    Release,
    RunRef,
    WriteSet,
)

Truth = tuple[str, Severity, tuple[str, int | None], tuple[str, int] | None]
"""Anomaly, severity, process and position of the culprit, and of a victim's claim."""


@dataclass(eq=False)
class Run:
    """A run of a model engine; its rank in time is its place in `Engine.runs`."""

    ref: RunRef
    released: bool = False
    superseded: bool = False
    claim: Claim | None = None
    ledger: set[str] = field(default_factory=set)

    @property
    def live(self) -> bool:
        return not self.released and not self.superseded


@dataclass(frozen=True)
class Telling:
    """What operations say: engines differ in how much they know."""

    owner: bool = True
    writes: bool = True
    numbered: bool = True


class Engine:
    """What both models share: claims, positions and the truth about them."""

    def __init__(self, random: Random, telling: Telling, *, processes: int) -> None:
        self.random = random
        self.telling = telling
        self.processes = [f"p{number}" for number in range(processes)]
        self.seq: dict[str, int] = {}
        self.runs: list[Run] = []
        self.told: list[Operation] = []
        self.truth: set[Truth] = set()
        self.reused: set[frozenset[tuple[str, int | None]]] = set()

    @property
    def owner(self) -> Run:
        return self.runs[-1]

    def head(self, run: Run) -> dict[str, object]:
        process = run.ref.process
        self.seq[process] = self.seq.get(process, 0) + 1
        owner = Owner(self.owner.ref.epoch, self.owner.ref.run_id)
        return {
            "run": run.ref,
            "seq": self.seq[process] if self.telling.numbered else None,
            "owner": owner if self.telling.owner else None,
        }

    def tell(self, operation: Operation) -> Operation:
        self.told.append(operation)
        return operation

    def accuse(
        self,
        anomaly: str,
        severity: Severity,
        operation: Operation,
        victim: Operation | None = None,
    ) -> None:
        self.truth.add((anomaly, severity, place(operation), victim and place(victim)))

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
                self.accuse(
                    "overlapping-owners", Severity.WARNING, run.claim, other.claim
                )
            if other.ref.epoch >= epoch:
                self.reused.add(frozenset({place(run.claim), place(other.claim)}))

    def release(self, run: Run) -> None:
        if run.live:
            run.released = True
            self.tell(Release(**self.head(run), outcome=Outcome.COMPLETED))

    def work(self, run: Run) -> None:
        self.tell(Execute(**self.head(run), executor="writer", index=1))

    def write_set(self, writes: dict[str, Run]) -> WriteSet | None:
        if not self.telling.writes:
            return None
        return WriteSet(tuple((key, run.ref.epoch) for key, run in writes.items()))


class SharedMap(Engine):
    """Every run writes into one pending map, and nobody is ever refused."""

    def __init__(self, random: Random, telling: Telling, *, processes: int) -> None:
        super().__init__(random, telling, processes=processes)
        self.pending: dict[str, Run] = {}

    def play(self, steps: int, *, reuse: bool = False) -> None:
        self.claim(policy=False)
        verbs: list[Callable[[Run], object]] = [
            self.stage,
            self.stage,
            self.commit,
            self.discard,
            self.deliver,
            self.release,
            self.work,
        ]
        for _ in range(steps):
            if self.random.random() < 0.15 and len(self.runs) < 8:
                back = reuse and self.random.random() < 0.5
                epoch = self.random.randint(1, self.owner.ref.epoch) if back else None
                self.claim(epoch=epoch, policy=self.random.random() < 0.5)
            else:
                self.random.choice(verbs)(self.random.choice(self.runs))

    def rank(self, run: Run) -> int:
        return self.runs.index(run)

    def stale(self, run: Run) -> bool:
        return run is not self.owner

    def stage(self, run: Run) -> None:
        key = self.random.choice("abcdef")
        self.pending[key] = run
        if run.live and not self.stale(run):
            return
        ledger = self.owner.ref.epoch
        late = Late(
            **self.head(run),
            kind=LateKind.STAGE,
            writes=self.write_set({key: run}),
            ledger=ledger,
            shared=True,
        )
        self.tell(late)
        if self.stale(run) or run.released:
            self.accuse("late-write", Severity.WARNING, late)

    def commit(self, run: Run) -> None:
        writes, self.pending = self.pending, {}
        inherited = {
            writer.ref.epoch
            for writer in writes.values()
            if writer.released and writer is not run and self.random.random() < 0.3
        }
        operation = Commit(
            **self.head(run),
            writes=self.write_set(writes),
            inherited=tuple(sorted(inherited)),
        )
        self.tell(operation)
        if self.stale(run):
            wrote = bool(writes) and self.telling.writes
            severity = Severity.VIOLATION if wrote else Severity.WARNING
            self.accuse("stale-commit", severity, operation)
        for writer in writes.values():
            if writer is not run and writer.ref.epoch not in inherited:
                assert writer.claim is not None
                self.accuse("leaked-write", Severity.VIOLATION, operation, writer.claim)

    def discard(self, run: Run) -> None:
        fenced = self.random.random() < 0.2
        writes = {} if fenced else self.pending
        operation = Discard(
            **self.head(run),
            writes=self.write_set(writes),
            cause=DiscardCause.ABANDONED,
            fenced=fenced,
        )
        self.tell(operation)
        if fenced:
            if self.stale(run):
                self.accuse("stale-discard", Severity.AVERTED, operation)
            return
        self.pending = {}
        if any(self.rank(writer) > self.rank(run) for writer in writes.values()):
            self.accuse("stale-discard", Severity.VIOLATION, operation)
        elif self.stale(run):
            self.accuse("stale-discard", Severity.WARNING, operation)

    def deliver(self, run: Run) -> None:
        origin = self.random.choice(self.runs)
        operation = ForeignDelivery(
            **self.head(run), kind=DeliveryKind.MESSAGE, origin=origin.ref.epoch
        )
        self.tell(operation)
        if origin is not run:
            self.accuse("foreign-delivery", Severity.VIOLATION, operation)


class Isolated(Engine):
    """A ledger per epoch, and a fence that refuses whoever is stale."""

    def play(self, steps: int, *, polite: bool) -> None:
        self.claim(policy=False)
        for _ in range(steps):
            if self.random.random() < 0.15 and len(self.runs) < 8:
                self.claim(policy=True)
            else:
                run = self.owner if polite else self.random.choice(self.runs)
                self.act(run)
        if self.owner.live:
            self.release(self.owner)

    def act(self, run: Run) -> None:
        if not run.live:
            if run is not self.owner:
                self.refuse(run)
            return
        verb = self.random.choice(["stage", "commit", "discard", "work", "release"])
        if verb == "stage":
            run.ledger.add(self.random.choice("abcdef"))
        elif verb == "work":
            self.work(run)
        elif verb == "release":
            self.release(run)
        else:
            writes = self.write_set(dict.fromkeys(sorted(run.ledger), run))
            run.ledger.clear()
            self.tell(
                Commit(**self.head(run), writes=writes)
                if verb == "commit"
                else Discard(
                    **self.head(run),
                    writes=writes,
                    cause=DiscardCause.FAILED,
                    ledger=run.ref.epoch,
                )
            )

    def refuse(self, run: Run) -> None:
        if self.random.random() < 0.5:
            refused = Discard(
                **self.head(run),
                writes=WriteSet(),
                cause=DiscardCause.FINALIZER,
                fenced=True,
                ledger=run.ref.epoch,
            )
        else:
            refused = Late(
                **self.head(run),
                kind=LateKind.STAGE,
                writes=self.write_set({"a": run}),
                ledger=run.ref.epoch,
            )
        self.tell(refused)


def place(operation: Operation) -> tuple[str, int | None]:
    return operation.run.process, operation.seq


@dataclass(frozen=True)
class Wire:
    """What becomes of telemetry on its way."""

    loss: float
    repeat: float
    window: int | None

    def carry(self, told: list[Operation], random: Random) -> list[Operation]:
        kept = [one for one in told if random.random() >= self.loss]
        twice = [one for one in kept if random.random() < self.repeat]
        arrived = [*kept, *twice]
        if self.window is None:
            random.shuffle(arrived)
            return arrived
        order = {id(one): number for number, one in enumerate(kept)}
        return sorted(
            arrived, key=lambda one: order[id(one)] + random.random() * self.window
        )


wires = st.builds(
    Wire,
    loss=st.sampled_from([0.0, 0.01, 0.05, 0.2]),
    repeat=st.sampled_from([0.0, 0.3]),
    window=st.sampled_from([0, 5, None]),
)
tellings = st.builds(Telling, owner=st.booleans(), writes=st.booleans())
seeds = st.integers(0, 2**32 - 1)
many = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

SELF_CONTAINED = frozenset({
    "stale-discard",
    "leaked-write",
    "stale-commit",
    "foreign-delivery",
})


def detect(arrived: list[Operation]) -> Detector:
    detector = Detector(announce=())
    for operation in arrived:
        detector.feed(operation)
    return detector


def said(finding: Finding) -> Truth:
    """What `finding` claims, in the terms of the truth."""
    names_victim = finding.anomaly in ("overlapping-owners", "leaked-write")
    victim = None
    if names_victim:
        victim = next(
            (
                place(one)
                for one in finding.evidence[1:]
                if isinstance(one, Claim) and one.run.epoch == finding.victim_epoch
            ),
            ("its claim was lost", 0),
        )
    return finding.anomaly, finding.severity, place(finding.culprit), victim


def is_true(finding: Finding, engine: Engine) -> bool:
    if finding.anomaly == "epoch-reuse":
        pair = frozenset(place(one) for one in finding.evidence[:2])
        return pair in engine.reused
    claim = said(finding)
    if claim[3] == ("its claim was lost", 0):
        return any(claim[:3] == one[:3] for one in engine.truth)
    return claim in engine.truth


def certain(detector: Detector) -> list[Finding]:
    return [one for one in detector.findings if one.certainty is Certainty.CERTAIN]


@many
@given(seeds, wires, tellings, st.integers(1, 2), st.integers(5, 60))
def test_what_is_certain_is_true_on_a_shared_map(seed, wire, telling, processes, steps):
    random = Random(seed)
    engine = SharedMap(random, telling, processes=processes)
    engine.play(steps)
    detector = detect(wire.carry(engine.told, random))

    lies = [str(one) for one in certain(detector) if not is_true(one, engine)]
    assert lies == []


@many
@given(seeds, wires, st.booleans(), st.integers(1, 2), st.integers(5, 60))
def test_what_is_certain_about_claims_is_true_when_epochs_come_back(
    seed, wire, owner, processes, steps
):
    # Overlap between processes rests on epochs that no two of them share: a successor
    # that nobody heard of would have had an epoch of its own.
    random = Random(seed)
    engine = SharedMap(random, Telling(owner=owner), processes=processes)
    engine.play(steps, reuse=True)
    detector = detect(wire.carry(engine.told, random))

    about_claims = [
        one
        for one in certain(detector)
        if one.anomaly == "epoch-reuse"
        or (one.anomaly == "overlapping-owners" and processes == 1)
    ]
    assert [str(one) for one in about_claims if not is_true(one, engine)] == []


@many
@given(seeds, st.sampled_from([0, 5, None]), st.integers(5, 60))
def test_without_positions_only_what_one_operation_proves_is_certain(
    seed, window, steps
):
    random = Random(seed)
    engine = SharedMap(random, Telling(numbered=False), processes=1)
    engine.play(steps, reuse=False)
    detector = detect(Wire(0.0, 0.0, window).carry(engine.told, random))

    assert {one.anomaly for one in certain(detector)} <= {*SELF_CONTAINED, "late-write"}
    assert detector.verdict is not Verdict.CLEAN


@many
@given(seeds, wires, st.integers(1, 2), st.integers(5, 60))
def test_an_anomaly_that_one_operation_proves_is_missed_only_if_that_was_lost(
    seed, wire, processes, steps
):
    random = Random(seed)
    engine = SharedMap(random, Telling(), processes=processes)
    engine.play(steps)
    arrived = wire.carry(engine.told, random)
    detector = detect(arrived)

    places = {place(one) for one in arrived}
    expected = {
        one[:3] for one in engine.truth if one[0] in SELF_CONTAINED and one[2] in places
    }
    late = {
        ("late-write", Severity.WARNING, place(one))
        for one in arrived
        if isinstance(one, Late) and one.stale
    }
    found = {said(one)[:3] for one in certain(detector)}
    assert (expected | late) - found == set()


@many
@given(seeds, wires, st.integers(1, 2), st.integers(5, 60))
def test_an_operation_counts_once_however_often_it_comes(seed, wire, processes, steps):
    random = Random(seed)
    engine = SharedMap(random, Telling(), processes=processes)
    engine.play(steps)
    detector = detect(wire.carry(engine.told, random))

    once = [
        (one.anomaly, place(one.culprit), one.victim_epoch) for one in detector.findings
    ]
    assert len(once) == len(set(once))


@many
@given(seeds, wires, st.booleans(), st.integers(1, 2), st.integers(5, 60))
def test_a_gap_is_never_called_clean(seed, wire, polite, processes, steps):
    random = Random(seed)
    engine = Isolated(random, Telling(), processes=processes)
    engine.play(steps, polite=polite)
    arrived = wire.carry(engine.told, random)
    detector = detect(arrived)

    newest: dict[str, int] = {}
    for one in arrived:
        newest[one.run.process] = max(newest.get(one.run.process, 0), one.seq)
    places = {place(one) for one in arrived}
    gap = any(
        place(one) not in places and one.seq < newest.get(one.run.process, 0)
        for one in engine.told
    )
    # A run of which nothing arrived, after the last one that did, is beyond knowing.
    last = max((one.run.epoch for one in arrived), default=0)
    released = any(
        isinstance(one, Release) and one.run.epoch == last for one in arrived
    )
    if gap or not released:
        assert detector.verdict is not Verdict.CLEAN
    elif wire.window == 0 and processes == 1:
        assert detector.verdict is Verdict.CLEAN


@many
@given(seeds, wires, tellings, st.integers(1, 2), st.integers(5, 60))
def test_an_isolated_engine_is_never_accused_with_certainty(
    seed, wire, telling, processes, steps
):
    random = Random(seed)
    engine = Isolated(random, telling, processes=processes)
    engine.play(steps, polite=False)
    detector = detect(wire.carry(engine.told, random))

    assert {one.severity for one in certain(detector)} <= {Severity.AVERTED}
    assert detector.verdict is not Verdict.VIOLATED


@many
@given(seeds, st.integers(1, 2), st.integers(5, 60))
def test_an_isolated_engine_whose_runs_keep_their_place_is_clean_and_silent(
    seed, processes, steps
):
    random = Random(seed)
    engine = Isolated(random, Telling(), processes=processes)
    engine.play(steps, polite=True)
    detector = detect(engine.told)

    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


@pytest.mark.parametrize(
    "anomaly",
    [
        "stale-discard",
        "leaked-write",
        "stale-commit",
        "late-write",
        "overlapping-owners",
        "foreign-delivery",
    ],
)
def test_the_shared_map_plays_every_anomaly_and_the_detector_finds_it(anomaly):
    found = set()
    for seed in range(40):
        engine = SharedMap(Random(seed), Telling(), processes=1)
        engine.play(40)
        found |= {one.anomaly for one in certain(detect(engine.told))}

    assert anomaly in found


def test_the_shared_map_reuses_epochs_and_the_detector_finds_it():
    found = set()
    for seed in range(40):
        engine = SharedMap(Random(seed), Telling(), processes=1)
        engine.play(40, reuse=True)
        found |= {one.anomaly for one in certain(detect(engine.told))}

    assert "epoch-reuse" in found
