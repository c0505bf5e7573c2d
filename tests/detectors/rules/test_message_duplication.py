"""Message duplication: one message received twice in one run."""

from tenure.detectors import Certainty, Severity


def test_a_message_that_is_received_twice_is_duplicated(scene, only):
    scene.claim(1)
    scene.send(1, "m")
    scene.receive(1, "m", index=2)
    found = only(scene.receive(1, "m", index=3))

    assert (found.anomaly, found.variant) == ("message-duplication", "received-twice")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert [one.seq for one in found.evidence[:2]] == [4, 3]


def test_a_superstep_that_is_done_again_receives_its_messages_again(scene):
    scene.claim(1)
    scene.receive(1, "m", index=2)
    scene.discard(1, {}, ledger=1, index=2)

    assert scene.receive(1, "m", index=2) == ()


def test_a_discard_that_may_have_been_lost_makes_it_possible(scene, only):
    scene.claim(1)
    scene.receive(1, "m", index=2)
    scene.skip(1)
    found = only(scene.receive(1, "m", index=2))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("seq 3 of process p",)


def test_two_runs_may_use_one_name_for_their_messages(scene):
    scene.claim(1)
    scene.receive(1, "m")
    scene.claim(2, superseded=1)

    assert scene.receive(2, "m") == ()


def test_the_second_receipt_is_the_culprit_whichever_arrives_first(scene, only):
    told = []
    scene.claim(1)
    scene.detector.feed, feed = told.append, scene.detector.feed
    scene.receive(1, "m", index=2)
    scene.receive(1, "m", index=3)
    feed(told[1])

    assert only(feed(told[0])).culprit.seq == 3


def test_more_messages_than_are_remembered_are_not_clean(scene, monkeypatch):
    monkeypatch.setattr("tenure.detectors._messages.MAX_MESSAGES", 2)
    scene.claim(1)
    for number in range(3):
        scene.receive(1, f"m{number}")
    scene.release(1)

    assert scene.detector.verdict == "inconclusive"


def test_a_receipt_whose_discard_came_before_it_did_not_happen(scene):
    told = []
    scene.claim(1)
    scene.detector.feed, feed = told.append, scene.detector.feed
    scene.receive(1, "m", index=2)
    scene.discard(1, {}, ledger=1, index=2)
    scene.receive(1, "m", index=3)

    assert [one for place in (1, 2, 0) for one in feed(told[place])] == []
