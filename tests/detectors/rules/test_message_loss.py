"""Message loss: what was sent and not received when its run completed."""

import pytest

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import Outcome


def test_a_message_that_nobody_received_when_the_run_completed_is_lost(scene, only):
    scene.claim(1)
    scene.send(1, "m", target="b")
    found = only(scene.release(1))

    assert (found.anomaly, found.variant) == ("message-loss", "undelivered")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert "message m to executor b" in found.proof


def test_a_message_that_was_received_is_not_lost(scene):
    scene.claim(1)
    scene.send(1, "m")
    scene.receive(1, "m", index=2)

    assert scene.release(1) == ()
    assert scene.detector.verdict == "clean"


@pytest.mark.parametrize("outcome", set(Outcome) - {Outcome.COMPLETED})
def test_a_run_that_did_not_complete_leaves_messages_behind_for_a_reason(
    scene, outcome
):
    scene.claim(1)
    scene.send(1, "m")

    assert scene.release(1, outcome=outcome) == ()


def test_a_superstep_that_was_discarded_sent_nothing(scene):
    scene.claim(1)
    scene.send(1, "m", index=1)
    scene.discard(1, {}, ledger=1, index=1)

    assert scene.release(1) == ()


def test_what_the_next_attempt_sends_is_sent(scene, only):
    scene.claim(1)
    scene.discard(1, {}, ledger=1, index=1)
    scene.send(1, "m", index=1)

    assert only(scene.release(1)).certainty is Certainty.CERTAIN


def test_a_receipt_that_may_have_been_lost_makes_it_possible(scene, only):
    scene.claim(1)
    scene.send(1, "m")
    scene.send(1, "n")
    scene.skip(2)
    found = only(scene.release(1))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("seq 4-5 of process p",)


def test_a_send_whose_discard_came_before_it_was_not_sent(scene):
    told = []
    scene.claim(1)
    scene.detector.feed, feed = told.append, scene.detector.feed
    scene.send(1, "m", index=1)
    scene.discard(1, {}, ledger=1, index=1)
    scene.release(1)

    assert [found for one in (1, 0, 2) for found in feed(told[one])] == []


def test_a_message_that_arrives_after_the_end_of_its_run_is_not_clean(scene):
    told = []
    scene.claim(1)
    scene.detector.feed, feed = told.append, scene.detector.feed
    scene.send(1, "m")
    scene.release(1)
    feed(told[1])
    feed(told[0])

    assert scene.detector.missing == (
        "press/i: messages that arrived after the end of their run",
    )


def test_a_receipt_that_was_discarded_leaves_the_message_waiting(scene, only):
    scene.claim(1)
    scene.send(1, "m", index=1)
    scene.receive(1, "m", index=2)
    scene.discard(1, {}, ledger=1, index=2)

    assert only(scene.release(1)).certainty is Certainty.CERTAIN


def test_a_second_receipt_counts_although_the_first_is_discarded_later(scene):
    told = []
    scene.claim(1)
    scene.detector.feed, feed = told.append, scene.detector.feed
    scene.send(1, "m", index=1)
    scene.receive(1, "m", index=2)
    scene.discard(1, {}, ledger=1, index=2)
    scene.receive(1, "m", index=3)
    scene.release(1)
    found = [one for place in (0, 1, 3, 2, 4) for one in feed(told[place])]

    assert "message-loss" not in {one.anomaly for one in found}
