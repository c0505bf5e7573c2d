"""The detector as a shell: verdicts, ways in, threads, re-entrance, bounds."""

import os
import threading
from dataclasses import replace

import pytest

from tenure.detectors import Detector, Verdict
from tenure.detectors.detector import Channel
from tenure.instrumentation import listeners
from tenure.instrumentation.operations import (
    NO_WRITES,
    Claim,
    Discard,
    DiscardCause,
    Execute,
    Owner,
    Release,
    RunRef,
    WriteSet,
)


def run(epoch, instance="i"):
    return RunRef("x/1", "press", instance, f"run-{instance}-{epoch}", epoch, "p")


def race(instance="i", first=1):
    """A stale discard with a victim that needs no history."""
    return Discard(
        run=run(1, instance),
        seq=first,
        owner=Owner(2),
        writes=WriteSet((("b", 2),)),
        cause=DiscardCause.ABANDONED,
    )


def feed_all(detector, operations):
    return [found for one in operations for found in detector.feed(one)]


# Verdicts.


def test_silence_is_inconclusive():
    detector = Detector(announce=())

    assert detector.verdict is Verdict.INCONCLUSIVE
    assert detector.missing == ("any operation",)


def test_a_proven_violation_is_violated_whatever_is_missing(scene):
    scene.skip(5)
    scene.superseded().discard(1, {"b": 2})

    assert scene.detector.verdict is Verdict.VIOLATED


def test_a_run_that_still_owns_its_instance_leaves_the_verdict_open(scene):
    scene.claim(1)

    assert scene.detector.verdict is Verdict.INCONCLUSIVE
    assert scene.detector.missing == ("press/i: the release of epoch 1",)


def test_a_broken_fence_without_a_victim_leaves_the_verdict_open(scene):
    scene.superseded().discard(1, {})
    scene.release(2)

    assert scene.detector.verdict is Verdict.INCONCLUSIVE
    assert "broken fence" in scene.detector.missing[0]


def test_what_was_averted_is_clean(scene):
    scene.superseded().discard(1, {}, fenced=True)
    scene.release(2)

    assert scene.detector.verdict is Verdict.CLEAN


def test_a_possible_violation_leaves_the_verdict_open(scene):
    scene.claim(2)
    scene.commit(2, {"a": 1}, owner=None)
    scene.release(2)

    assert scene.detector.verdict is Verdict.INCONCLUSIVE


def test_what_could_not_be_read_leaves_the_verdict_open(scene):
    scene.claim(1)
    scene.release(1)
    scene.detector.doubt("3 spans that cannot be read")

    assert scene.detector.verdict is Verdict.INCONCLUSIVE
    assert scene.detector.missing == ("3 spans that cannot be read",)


def test_one_open_instance_among_clean_ones_leaves_the_verdict_open(scene):
    scene.claim(1)
    scene.release(1)
    scene.feed(Claim(run=run(1, "other"), seq=1, owner=Owner(1)))

    assert scene.detector.missing == ("press/other: the release of epoch 1",)


def test_clearing_forgets_what_was_found_and_what_was_seen(scene):
    scene.superseded().discard(1, {"b": 2})
    scene.detector.clear()

    assert scene.detector.findings == ()
    assert scene.detector.missing == ("any operation",)


# Bounds.


def test_the_instance_that_was_silent_for_longest_is_forgotten_first():
    detector = Detector(announce=(), max_instances=2)
    for instance in ("a", "b", "a", "c"):
        detector.feed(Execute(run=run(1, instance), seq=None, owner=None, executor="w"))

    named = {one.partition(":")[0] for one in detector.missing}
    assert named == {"press/a", "press/c", "instances forgotten for want of room"}


def test_forgetting_instances_that_were_clean_stays_clean():
    detector = Detector(announce=(), max_instances=1)
    for instance in ("a", "b"):
        detector.feed(Claim(run=run(1, instance), seq=1, owner=Owner(1)))
        detector.feed(
            Release(run=run(1, instance), seq=2, owner=Owner(1), outcome="completed")
        )

    assert detector.verdict is Verdict.CLEAN


def test_only_the_newest_findings_are_kept_and_all_are_announced():
    heard = []
    detector = Detector(heard.append, announce=(), max_findings=2)
    feed_all(detector, [race(first=seq) for seq in (1, 2, 3)])

    assert [one.culprit.seq for one in detector.findings] == [2, 3]
    assert [one.culprit.seq for one in heard] == [1, 2, 3]


@pytest.mark.parametrize("bound", ["max_instances", "max_findings"])
def test_a_bound_below_one_is_refused(bound):
    with pytest.raises(ValueError, match="count from 1"):
        Detector(**{bound: 0})


def test_a_channel_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="pigeon"):
        Detector(announce={"log", "pigeon"})


def test_channels_may_be_named_by_words():
    Detector(announce={"log", Channel.METRIC})


# Ways in.


def test_an_operation_that_comes_twice_counts_once():
    detector = Detector(announce=())

    assert len(detector.feed(race())) == 1
    assert detector.feed(replace(race(), time=7)) == ()


def test_it_hears_what_this_process_tells_while_it_listens():
    with Detector(announce=()).listen() as detector:
        listeners.tell(race())
    listeners.tell(race(first=2))

    assert [one.culprit.seq for one in detector.findings] == [1]


def test_listening_twice_is_listening_once_and_so_is_closing():
    detector = Detector(announce=()).listen().listen()
    detector.close()
    detector.close()

    assert not listeners.anyone_listens()


# Re-entrance and threads.


def test_a_callback_may_feed_the_detector_again():
    heard = []

    def on_finding(finding):
        heard.append(finding.culprit.seq)
        if finding.culprit.seq < 4:
            detector.feed(race(first=finding.culprit.seq + 1))

    detector = Detector(on_finding, announce=())
    detector.feed(race())

    assert heard == [1, 2, 3, 4]
    assert [one.culprit.seq for one in detector.findings] == [1, 2, 3, 4]


class Interrupting(WriteSet):
    """A write set whose reading is interrupted, as a finalizer may do to anything."""

    __slots__ = ("interrupt",)

    def __init__(self, pairs, interrupt):
        super().__init__(pairs)
        object.__setattr__(self, "interrupt", interrupt)

    def foreign_to(self, *epochs):
        self.interrupt()
        return super().foreign_to(*epochs)


def test_a_finalizer_that_interrupts_the_judging_neither_blocks_nor_is_lost(scene):
    detector = scene.detector
    inner = []
    writes = Interrupting(
        (("a", 1),), lambda: inner.append(detector.feed(race(first=9)))
    )
    scene.superseded()
    outer = detector.feed(
        Discard(
            run=scene.run(1),
            seq=3,
            owner=Owner(2),
            writes=writes,
            cause=DiscardCause.ABANDONED,
            ledger=1,
        )
    )

    assert inner == [()]
    assert [one.culprit.seq for one in outer] == [3, 9]


def test_what_raises_while_judging_gives_the_turn_back(scene):
    def interrupt():
        raise LookupError("gone")

    broken = Interrupting((("a", 1),), interrupt)
    discard = Discard(
        run=run(1),
        seq=1,
        owner=Owner(2),
        writes=broken,
        cause=DiscardCause.ABANDONED,
        ledger=1,
    )
    with pytest.raises(LookupError):
        scene.feed(discard)

    assert len(scene.feed(race(first=2))) == 1


def test_nothing_is_lost_or_counted_twice_among_threads():
    heard = []
    detector = Detector(heard.append, announce=())
    returned = []
    threads, each = 4, 300
    barrier = threading.Barrier(threads)

    def work(number):
        barrier.wait()
        mine = []
        for seq in range(1, each + 1):
            mine.extend(detector.feed(race(f"i{number}", first=seq)))
        returned.append(mine)

    workers = [
        threading.Thread(target=work, args=(number,)) for number in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    def named(findings):
        return {(one.instance, one.culprit.seq) for one in findings}

    everything = {
        (f"i{number}", seq) for number in range(threads) for seq in range(1, each + 1)
    }
    assert named(detector.findings) == everything
    assert len(detector.findings) == len(everything) == len(heard)
    assert named(heard) == everything
    assert named(one for mine in returned for one in mine) == everything


def test_a_thread_does_not_wait_for_a_callback_that_is_stuck_in_another():
    entered, leave = threading.Event(), threading.Event()

    def on_finding(finding):
        if finding.instance == "slow":
            entered.set()
            leave.wait(20)

    detector = Detector(on_finding, announce=())
    worker = threading.Thread(target=detector.feed, args=(race("slow"),))
    worker.start()
    assert entered.wait(20)
    found = detector.feed(race("quick"))
    leave.set()
    worker.join()

    assert [one.instance for one in found] == ["quick"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_does_not_wait_for_a_turn_that_its_parent_holds():
    detector = Detector(announce=())
    assert detector._judging.take()
    child = os.fork()
    if child == 0:
        os._exit(0 if len(detector.feed(race())) == 1 else 1)
    _, status = os.waitpid(child, 0)
    detector._judging.give_back()

    assert os.waitstatus_to_exitcode(status) == 0


def test_a_callback_that_raises_is_logged_and_harms_nobody(caplog):
    def on_finding(finding):
        raise LookupError("gone")

    detector = Detector(on_finding, announce=())
    found = detector.feed(race())

    assert len(found) == 1
    assert "could not be announced" in caplog.text
    assert detector.findings == found


def test_an_empty_discard_without_owner_says_nothing():
    detector = Detector(announce=())
    found = detector.feed(
        Discard(
            run=run(1),
            seq=1,
            owner=None,
            writes=NO_WRITES,
            cause=DiscardCause.FAILED,
        )
    )

    assert found == ()


def test_two_versions_of_an_engine_may_own_the_same_instance():
    old = RunRef("engine/1.0", "press", "c42", "r1", 1, "p1")
    new = replace(old, engine="engine/1.1", run_id="r2", process="p2")
    detector = Detector(announce=())
    for run in (old, new):
        owner = Owner(run.epoch, run.run_id)
        detector.feed(Claim(run=run, seq=1, owner=owner))
    assert [one.anomaly for one in detector.findings] == ["epoch-reuse"]
