"""Overlapping owners: a claim while the previous owner is still one."""

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import Claim, Outcome, Owner, Release


def test_a_claim_over_an_owner_that_has_not_ended_is_certain_without_a_gap(scene, only):
    scene.claim(1)
    scene.commit(1, {"a": 1})
    found = only(scene.claim(2))

    assert found.anomaly == "overlapping-owners"
    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert (found.culprit_epoch, found.victim_epoch) == (2, 1)


def test_a_claim_after_the_release_is_no_overlap(scene):
    scene.claim(1)
    scene.release(1)

    assert scene.claim(2) == ()


def test_a_claim_that_supersedes_by_policy_is_no_overlap(scene):
    scene.claim(1)

    assert scene.claim(2, superseded=1) == ()


def test_an_owner_that_another_claim_superseded_does_not_overlap(scene):
    scene.claim(1)
    scene.claim(2, superseded=1)
    scene.release(2)

    assert scene.claim(3) == ()


def test_with_a_gap_between_the_claims_it_stays_possible_and_names_the_gap(scene, only):
    scene.claim(1)
    scene.skip(3)
    found = only(scene.claim(2))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("seq 2-4 of process p",)


def test_between_two_processes_it_stays_possible(scene, only):
    scene.claim(1)
    found = only(scene.claim(2, process="q"))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("the order of processes p and q",)


def test_a_release_that_was_counted_after_the_next_claim_does_not_excuse_it(
    scene, only
):
    one, two = scene.run(1), scene.run(2)
    scene.feed(Claim(run=one, seq=1, owner=Owner(1)))
    scene.feed(Release(run=one, seq=3, owner=Owner(2), outcome=Outcome.COMPLETED))
    found = only(scene.feed(Claim(run=two, seq=2, owner=Owner(2))))

    assert found.certainty is Certainty.CERTAIN


def test_a_release_that_arrives_before_its_claim_still_excuses_the_next(scene):
    one, two = scene.run(1), scene.run(2)
    scene.feed(Release(run=one, seq=2, owner=Owner(1), outcome=Outcome.COMPLETED))
    scene.feed(Claim(run=two, seq=3, owner=Owner(2)))

    assert scene.feed(Claim(run=one, seq=1, owner=Owner(1))) == ()


def test_an_earlier_claim_that_arrives_last_completes_the_proof(scene, only):
    one, two = scene.run(1), scene.run(2)
    assert scene.feed(Claim(run=two, seq=2, owner=Owner(2))) == ()
    found = only(scene.feed(Claim(run=one, seq=1, owner=Owner(1))))

    assert found.certainty is Certainty.CERTAIN
    assert (found.culprit_epoch, found.victim_epoch) == (2, 1)


def test_nothing_is_said_about_an_owner_whose_claim_is_not_known(scene):
    scene.skip(4)
    scene.commit(1, {"a": 1}, owner=Owner(1))

    assert scene.claim(2) == ()


def test_a_release_of_another_run_with_the_same_epoch_leaves_it_possible(scene):
    scene.claim(1, run_id="a")
    scene.claim(1, run_id="b")
    scene.release(1, run_id="b")
    found = [
        finding for finding in scene.claim(2) if finding.anomaly == "overlapping-owners"
    ]

    assert [finding.certainty for finding in found] == [Certainty.POSSIBLE]
    assert found[0].missing == ("which run had epoch 1",)


def test_an_epoch_between_the_two_leaves_it_possible(scene, only):
    scene.claim(1)
    found = only(scene.claim(3))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("whether a run followed epoch 1",)


def test_a_claim_that_replaced_a_newer_epoch_says_nothing_about_an_older_one(scene):
    scene.claim(1)

    assert scene.claim(3, superseded=2) == ()


def released(scene, run_id, seq):
    run = scene.run(1, run_id=run_id)
    return Release(run=run, seq=seq, owner=Owner(1), outcome=Outcome.COMPLETED)


def claimed(scene, epoch, seq, run_id=""):
    run = scene.run(epoch, run_id=run_id)
    return Claim(run=run, seq=seq, owner=Owner(epoch))


def test_a_release_of_another_run_makes_a_claim_that_comes_later_ambiguous(scene):
    scene.feed(released(scene, "a", 4))
    scene.feed(claimed(scene, 2, 3))
    (found,) = scene.feed(claimed(scene, 1, 2, "b"))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("which run had epoch 1",)


def test_two_runs_that_release_one_epoch_end_nothing_for_certain(scene, only):
    scene.feed(released(scene, "a", 1))
    scene.feed(released(scene, "b", 2))
    scene.skip(2)
    found = scene.late(1, ledger=0, owner=Owner(1))

    assert only(found).certainty is Certainty.POSSIBLE


def test_a_second_run_of_the_newer_epoch_overlaps_for_certain_too(scene):
    scene.claim(1)
    scene.claim(2, run_id="a")
    found = [
        one for one in scene.claim(2, run_id="b") if one.anomaly == "overlapping-owners"
    ]

    assert [one.certainty for one in found] == [Certainty.CERTAIN]
    assert found[0].culprit.run.run_id == "b"


def test_a_claim_that_comes_when_its_successors_are_forgotten_accuses_nobody(scene):
    for epoch in range(3, 80):
        scene.claim(epoch, process="q")
        scene.release(epoch, process="q")
    scene.feed(Claim(run=scene.run(80, process="r"), seq=1, owner=Owner(80)))

    assert scene.claim(2, process="p") == ()
