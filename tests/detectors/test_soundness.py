"""What is called certain is never wrong, and what is lost is never called clean.

Two model engines play random histories: one whose runs share a pending map and break
every rule, and one that keeps them all. Telemetry is then lost, repeated and reordered,
and what the detector says is compared with what the model knows.
"""

from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.detectors import CATALOGUE, Severity, Verdict
from tenure.instrumentation.operations import (
    CheckpointSave,
    Commit,
    CommitCause,
    Execute,
    Late,
    Release,
)

from .models.engine import Telling, place
from .models.isolated import Isolated
from .models.judging import certain, detect, is_true
from .models.shared_map import SharedMap
from .models.wire import Wire

wires = st.builds(
    Wire,
    loss=st.sampled_from([0.0, 0.01, 0.05, 0.2]),
    repeat=st.sampled_from([0.0, 0.3]),
    window=st.sampled_from([0, 5, None]),
)
tellings = st.builds(
    Telling, owner=st.booleans(), writes=st.booleans(), previous=st.booleans()
)
knowing_little = st.builds(
    Telling, owner=st.booleans(), writes=st.booleans(), local=st.booleans()
)
seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(5, 90)
many = settings(
    max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

SELF_CONTAINED = frozenset({
    "stale-discard",
    "leaked-write",
    "dirty-read",
    "stale-commit",
    "torn-checkpoint",
    "lost-snapshot",
    "foreign-delivery",
    "finalizer-by-gc",
    "finalizer-at-shutdown",
})
"""One operation proves them, if it says who owned and who staged."""

UNNUMBERED = frozenset({
    *SELF_CONTAINED,
    "late-write",
    "fork",
    "write-write-conflict",
    "read-write-conflict",
})
"""They may be certain where positions are not counted."""

HARMFUL = {Severity.VIOLATION, Severity.WARNING}


@many
@given(seeds, wires, knowing_little, st.integers(1, 2), lengths)
def test_what_is_certain_is_true_on_a_shared_map(seed, wire, telling, processes, steps):
    random = Random(seed)
    engine = SharedMap(random, telling, processes=processes)
    engine.play(steps)
    detector = detect(wire.carry(engine.told, random))

    lies = [str(one) for one in certain(detector) if not is_true(one, engine)]
    assert lies == []


@many
@given(seeds, wires, knowing_little, st.integers(1, 2), lengths)
def test_what_is_certain_is_true_where_runs_mostly_keep_their_place(
    seed, wire, telling, processes, steps
):
    random = Random(seed)
    engine = SharedMap(random, telling, processes=processes)
    engine.play(steps, mild=True)
    detector = detect(wire.carry(engine.told, random))

    lies = [str(one) for one in certain(detector) if not is_true(one, engine)]
    assert lies == []


@many
@given(seeds, wires, st.booleans(), st.integers(1, 2), lengths)
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
@given(seeds, st.sampled_from([0, 5, None]), lengths)
def test_without_positions_only_what_operations_prove_by_themselves_is_certain(
    seed, window, steps
):
    random = Random(seed)
    engine = SharedMap(random, Telling(numbered=False), processes=1)
    engine.play(steps, reuse=False)
    detector = detect(Wire(0.0, 0.0, window).carry(engine.told, random))

    assert {one.anomaly for one in certain(detector)} <= UNNUMBERED
    assert detector.verdict is not Verdict.CLEAN


@many
@given(seeds, wires, st.integers(1, 2), lengths)
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
        (one.anomaly, one.culprit)
        for one in engine.truth
        if one.culprit in places
        and (one.anomaly in SELF_CONTAINED or one.variant == "stale-save")
    }
    late = {
        ("late-write", place(one))
        for one in arrived
        if isinstance(one, Late) and one.stale
    }
    found = {(one.anomaly, place(one.culprit)) for one in certain(detector)}
    assert (expected | late) - found == set()


@many
@given(seeds, st.sampled_from([0.0, 0.05, 0.2]), st.sampled_from([0, 5]), lengths)
def test_a_conflict_is_missed_only_if_one_of_its_three_operations_was_lost(
    seed, loss, window, steps
):
    random = Random(seed)
    engine = SharedMap(random, Telling(), processes=1)
    engine.play(steps, mild=True)
    arrived = Wire(loss, 0.3, window).carry(engine.told, random)
    detector = detect(arrived)

    lost = {place(one) for one in engine.told} - {place(one) for one in arrived}
    steps_of = {
        place(one): (one.run.run_id, one.index)
        for one in engine.told
        if isinstance(one, Commit | Execute)
        and getattr(one, "cause", CommitCause.SUPERSTEP) is CommitCause.SUPERSTEP
    }
    torn = {steps_of[one] for one in lost if one in steps_of}
    expected = {
        (one.anomaly, one.culprit)
        for one in engine.truth
        if one.anomaly in ("write-write-conflict", "read-write-conflict")
        and steps_of[one.culprit] not in torn
    }
    found = {(one.anomaly, place(one.culprit)) for one in certain(detector)}
    assert expected - found == set()


@many
@given(seeds, wires, st.integers(1, 2), lengths)
def test_an_operation_counts_once_however_often_it_comes(seed, wire, processes, steps):
    random = Random(seed)
    engine = SharedMap(random, Telling(), processes=processes)
    engine.play(steps)
    detector = detect(wire.carry(engine.told, random))

    # A conflict over one key may be proven before one over another of the same commit.
    once = [
        (one.anomaly, one.variant, place(one.culprit), one.victim_epoch, one.keys)
        for one in detector.findings
        if one.variant != "two-children"
    ]
    assert len(once) == len(set(once))


def without_previous(operation):
    if isinstance(operation, CheckpointSave):
        return replace(operation, previous=None)
    return operation


def forks(arrived):
    return {
        (place(one.culprit), place(one.evidence[1])): one
        for one in detect(arrived).findings
        if one.variant == "two-children"
    }


@many
@given(seeds, wires, st.booleans(), st.booleans(), st.integers(60, 120))
def test_no_fork_is_taken_for_a_run_that_went_back_on_purpose(
    seed, wire, owner, mild, steps
):
    random = Random(seed)
    engine = SharedMap(random, Telling(owner=owner, local=True), processes=3)
    engine.play(steps, mild=mild)
    arrived = wire.carry(engine.told, random)

    found, suspected = forks(arrived), forks(map(without_previous, arrived))
    assert set(found) <= set(suspected)
    settled = [suspected[one] for one in set(suspected) - set(found)]
    assert [str(one) for one in settled if is_true(one, engine)] == []


@many
@given(seeds, wires, tellings, st.integers(1, 2), lengths)
def test_clean_is_never_said_over_harm_that_was_told(
    seed, wire, telling, processes, steps
):
    random = Random(seed)
    engine = SharedMap(random, telling, processes=processes)
    engine.play(steps, mild=True)
    arrived = wire.carry(engine.told, random)
    detector = detect(arrived)

    if detector.verdict is Verdict.CLEAN:
        places = {place(one) for one in arrived}
        harm = [
            one
            for one in engine.truth
            if one.culprit in places and one.severities & HARMFUL
        ]
        assert harm == []


@many
@given(seeds, wires, st.booleans(), st.integers(1, 2), lengths)
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
@given(seeds, wires, knowing_little, st.integers(1, 2), lengths)
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
@given(seeds, st.booleans(), st.integers(1, 2), lengths)
def test_an_isolated_engine_whose_runs_keep_their_place_is_clean_and_silent(
    seed, local, processes, steps
):
    random = Random(seed)
    engine = Isolated(random, Telling(local=local), processes=processes)
    engine.play(steps, polite=True)
    detector = detect(engine.told)

    assert detector.findings == ()
    assert detector.verdict is Verdict.CLEAN


def test_a_run_that_went_back_in_another_process_is_suspected_unless_it_says_so():
    suspected, cleared = 0, 0
    for seed in range(100):
        engine = SharedMap(Random(seed), Telling(local=True), processes=3)
        engine.play(120, mild=True)
        before = forks(map(without_previous, engine.told))
        suspected += sum(not is_true(one, engine) for one in before.values())
        cleared += len(set(before) - set(forks(engine.told)))

    assert suspected > 0
    assert cleared / suspected > 0.8


def play_many(**how):
    found = set()
    for seed in range(120):
        engine = SharedMap(Random(seed), Telling(), processes=1)
        engine.play(90, mild=seed % 2 == 0, **how)
        found |= {one.anomaly for one in certain(detect(engine.told))}
    return found


def test_the_shared_map_plays_every_anomaly_and_the_detector_finds_it():
    # Reuse has a history of its own, and silence takes a clock.
    assert play_many() == set(CATALOGUE) - {"epoch-reuse", "never-released"}


def test_the_shared_map_reuses_epochs_and_the_detector_finds_it():
    assert "epoch-reuse" in play_many(reuse=True)


def test_clean_is_said_where_runs_keep_their_place():
    verdicts = set()
    for seed in range(60):
        engine = SharedMap(Random(seed), Telling(), processes=1)
        engine.play(8, mild=True)
        verdicts.add(detect(engine.told).verdict)

    assert Verdict.CLEAN in verdicts
