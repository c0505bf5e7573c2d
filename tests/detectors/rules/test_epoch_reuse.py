"""Epoch reuse: a claim that is not greater than those before it."""

from dataclasses import replace

from tenure.detectors import Certainty, Severity
from tenure.instrumentation.operations import Claim, Owner


def reuses(found):
    return [finding for finding in found if finding.anomaly == "epoch-reuse"]


def test_one_epoch_that_two_runs_claim_is_certain(scene, only):
    scene.claim(1, run_id="a")
    scene.release(1, run_id="a")
    found = only(reuses(scene.claim(1, run_id="b")))

    assert (found.severity, found.certainty) == (Severity.WARNING, Certainty.CERTAIN)
    assert [one.run.run_id for one in found.evidence] == ["b", "a"]


def test_one_epoch_that_two_processes_claim_is_certain_in_any_order(scene, only):
    scene.claim(1)
    found = only(reuses(scene.claim(1, process="q")))

    assert found.certainty is Certainty.CERTAIN


def test_an_epoch_that_goes_back_is_certain(scene, only):
    scene.claim(5)
    scene.release(5)
    found = only(reuses(scene.claim(3)))

    assert (found.culprit_epoch, found.certainty) == (3, Certainty.CERTAIN)


def test_epochs_may_skip(scene):
    scene.claim(1)
    scene.release(1)

    assert scene.claim(7) == ()


def test_an_old_claim_that_arrives_late_does_not_go_back(scene):
    one, two = scene.run(1), scene.run(2)
    scene.feed(Claim(run=two, seq=2, owner=Owner(2), superseded=1))

    assert scene.feed(Claim(run=one, seq=1, owner=Owner(1))) == ()


def test_an_older_epoch_of_another_process_proves_nothing(scene):
    scene.claim(6, process="q")
    scene.release(6, process="q")

    assert reuses(scene.claim(5)) == []


def test_the_culprit_is_the_later_claim_even_if_it_arrives_first(scene, only):
    high, low = scene.run(5), scene.run(3)
    scene.feed(Claim(run=low, seq=9, owner=Owner(3)))
    found = only(reuses(scene.feed(Claim(run=high, seq=2, owner=Owner(5)))))

    assert (found.culprit_epoch, found.evidence[1].run.epoch) == (3, 5)


def test_the_same_claim_told_twice_is_one_claim(scene):
    claim = Claim(run=scene.run(1), seq=1, owner=Owner(1))
    scene.feed(claim)

    assert scene.feed(claim) == ()


def test_without_positions_the_order_of_arrival_only_suggests_it(scene, only):
    scene.feed(Claim(run=scene.run(5), seq=None, owner=Owner(5)))
    found = only(reuses(scene.feed(Claim(run=scene.run(3), seq=None, owner=Owner(3)))))

    assert found.certainty is Certainty.POSSIBLE
    assert found.missing == ("positions of the operations of process p",)


def test_a_claim_without_a_position_that_comes_twice_is_one_claim(scene):
    claim = Claim(run=scene.run(1), seq=None, owner=Owner(1))
    scene.feed(claim)

    assert scene.feed(replace(claim)) == ()


def test_a_run_that_claims_its_epoch_twice_reuses_it(scene, only):
    scene.claim(1)
    found = only(reuses(scene.claim(1)))

    assert found.certainty is Certainty.CERTAIN


def test_a_numbered_claim_and_its_unnumbered_copy_are_one_claim(scene):
    claim = Claim(run=scene.run(1), seq=1, owner=Owner(1))
    scene.feed(claim)

    assert scene.feed(replace(claim, seq=None)) == ()
