"""Lost snapshot: what an executor saved for a checkpoint is not in it."""

from tenure.detectors import Certainty, Severity


def of(found, slug):
    (one,) = [finding for finding in found if finding.anomaly == slug]
    return one


def test_a_stale_discard_that_hits_snapshots_loses_them(scene):
    found = scene.superseded().discard(1, {"s": 2, "a": 1}, snapshots=("s",))

    lost = of(found, "lost-snapshot")
    assert (lost.variant, lost.severity) == ("discarded", Severity.VIOLATION)
    assert (lost.victim_epoch, lost.keys) == (2, ("s",))
    assert of(found, "stale-discard").variant == "victim"


def test_a_discard_of_ones_own_or_of_older_snapshots_loses_nothing(scene):
    scene.superseded()

    assert scene.discard(2, {"s": 1, "a": 2}, snapshots=("s",)) == ()


def test_a_discard_that_was_refused_loses_no_snapshot(scene):
    found = scene.superseded().discard(1, {}, fenced=True, snapshots=("s",))

    assert [one.anomaly for one in found] == ["stale-discard"]


def test_a_discard_that_hits_other_keys_loses_no_snapshot(scene):
    found = scene.superseded().discard(1, {"a": 2}, snapshots=("s",))

    assert [one.anomaly for one in found] == ["stale-discard"]


def test_a_checkpoint_without_a_snapshot_that_was_taken_for_it_lost_it(scene, only):
    scene.claim(1)
    found = only(scene.save(1, "c", parts={"b": 1}, taken=("a", "b")))

    assert (found.anomaly, found.variant) == ("lost-snapshot", "left-out")
    assert (found.severity, found.certainty) == (
        Severity.VIOLATION,
        Certainty.CERTAIN,
    )
    assert (found.culprit_epoch, found.victim_epoch) == (1, None)
    assert found.keys == ("a",)


def test_a_checkpoint_may_have_more_parts_than_were_taken_for_it(scene):
    scene.claim(1)

    assert scene.save(1, "c", parts={"a": 1, "edge": 1}, taken=("a",)) == ()


def test_nothing_is_said_of_a_checkpoint_whose_parts_are_not_told(scene):
    scene.claim(1)

    assert scene.save(1, "c", taken=("a",)) == ()
    assert scene.save(1, "d", parts={"b": 1}) == ()
