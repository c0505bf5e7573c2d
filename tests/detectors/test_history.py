"""What is remembered of an instance is bounded, and forgetting is never clean."""

import pytest

from tenure.detectors._history import MAX_PROCESSES, MAX_TENURES
from tenure.instrumentation.operations import Owner


def play(scene, epoch, process="p"):
    scene.claim(epoch, process=process)
    scene.release(epoch, process=process)


def test_a_history_without_a_gap_whose_last_run_released_is_clean(scene):
    play(scene, 1)
    play(scene, 2)

    assert scene.detector.verdict == "clean"
    assert scene.detector.missing == ()


def test_more_runs_than_are_remembered_are_clean_all_the_same(scene):
    for epoch in range(1, 3 * MAX_TENURES):
        play(scene, epoch)

    assert scene.detector.verdict == "clean"


def test_forgetting_an_epoch_whose_claim_never_came_is_not_clean(scene):
    play(scene, 1)
    scene.commit(2, {"a": 2})
    for epoch in range(3, 3 * MAX_TENURES):
        play(scene, epoch)

    assert scene.detector.verdict == "inconclusive"
    assert scene.detector.missing == (
        "press/i: epochs, processes or supersteps forgotten for want of room",
    )


def test_processes_that_said_all_they_had_may_be_forgotten(scene):
    for epoch in range(1, 2 * MAX_PROCESSES):
        play(scene, epoch, process=f"p{epoch}")

    assert scene.detector.verdict == "clean"


def test_forgetting_a_process_that_left_a_gap_is_not_clean(scene):
    scene.skip(1, process="q")
    play(scene, 1, process="q")
    for epoch in range(2, 2 * MAX_PROCESSES):
        play(scene, epoch, process=f"p{epoch}")

    assert scene.detector.verdict == "inconclusive"


def test_as_many_processes_as_there_is_room_for_are_all_remembered(scene):
    scene.skip(1, process="q")
    play(scene, 1, process="q")
    for epoch in range(2, MAX_PROCESSES + 1):
        play(scene, epoch, process=f"p{epoch}")

    assert scene.detector.missing == ("press/i: seq 1 of process q",)


def test_an_owner_whose_claim_never_came_is_missed(scene):
    play(scene, 1)
    scene.owner = type(scene.owner)(7, "elsewhere")
    scene.discard(1, {}, fenced=True)

    assert scene.detector.missing == ("press/i: the claim of epoch 7",)


def test_a_second_instance_of_the_same_identity_begins_anew(scene):
    play(scene, 1)
    scene.seq.clear()

    assert scene.claim(1, run_id="another") == ()
    scene.release(1, run_id="another")
    assert scene.detector.verdict == "clean"


def test_a_second_instance_does_not_hide_what_the_first_left_open(scene):
    scene.claim(1)
    scene.seq.clear()
    scene.claim(1, run_id="another")
    scene.release(1, run_id="another")

    assert scene.detector.missing == (
        "press/i: part of an earlier instance of the same identity",
    )


def test_a_violation_in_a_second_instance_is_found_although_its_positions_repeat(
    scene,
):
    play(scene, 1)
    play(scene, 2)
    scene.seq.clear()
    scene.claim(1, run_id="another-1")
    scene.claim(2, run_id="another-2", superseded=1)
    (found,) = scene.discard(1, {"a": 2})

    assert found.severity == "violation"


def test_an_operation_without_its_owner_may_be_stale_where_something_is_missing(scene):
    scene.claim(2)
    scene.skip(1)
    scene.commit(2, {}, owner=None)
    scene.release(2)

    assert "press/i: who owned the instance when an operation did not say so" in (
        scene.detector.missing
    )


def test_an_operation_without_its_owner_is_judged_where_nothing_is_missing(scene):
    scene.claim(1)
    scene.commit(1, {}, owner=None)
    scene.release(1)

    assert scene.detector.verdict == "clean"


def test_another_process_may_own_what_an_operation_does_not_say(scene):
    scene.claim(1)
    scene.commit(1, {}, owner=None)
    scene.release(1)
    play(scene, 2, process="q")

    assert scene.detector.missing == (
        "press/i: who owned the instance when an operation did not say so",
    )


FORGOTTEN = ("press/i: parents of checkpoints forgotten for want of room",)


@pytest.fixture
def line(scene, monkeypatch):
    """A line of four checkpoints, of which two are remembered."""
    monkeypatch.setattr("tenure.detectors._lineage.MAX_CHECKPOINTS", 2)
    scene.claim(1)
    for number in range(4):
        parent = f"c{number}" if number else None
        scene.save(1, f"c{number + 1}", parent=parent, owner=Owner(1, "run-1"))
    scene.release(1)
    return scene


def go_on(scene, epoch, checkpoint, parent, process="q"):
    """A run saves one checkpoint."""
    scene.claim(epoch, process=process)
    owner = Owner(epoch, f"run-{epoch}")
    found = scene.save(epoch, checkpoint, parent=parent, owner=owner, process=process)
    scene.release(epoch, process=process)
    return found


def test_another_process_that_goes_on_from_the_newest_checkpoint_leaves_no_doubt(line):
    assert go_on(line, 2, "c5", "c4") == ()
    assert go_on(line, 3, "c6", "c5", "r") == ()
    assert line.detector.verdict == "clean"


def test_whether_a_forgotten_parent_had_a_child_is_a_doubt(line):
    go_on(line, 2, "c5", "c1")
    assert line.detector.missing == FORGOTTEN


def test_to_one_process_alone_forgotten_parents_do_not_matter(line):
    go_on(line, 2, "c5", "c1", "p")
    assert line.detector.verdict == "clean"


def test_a_parent_that_arrives_after_its_child_takes_the_doubt_away(line):
    go_on(line, 3, "c6", "c5", "r")
    assert line.detector.missing == FORGOTTEN
    go_on(line, 2, "c5", "c4")
    assert FORGOTTEN[0] not in line.detector.missing


def test_of_two_children_that_came_before_their_parent_the_forgotten_one_is_a_doubt(
    line,
):
    owner = Owner(2, "run-2")
    line.claim(2, process="q")
    for number in (6, 8, 10):  # children of three parents that have yet to arrive
        parent = f"c{number - 1}"
        line.save(2, f"c{number}", parent=parent, owner=owner, process="q")
    for number in (9, 7, 5):
        line.save(2, f"c{number}", parent="c4", owner=owner, process="q")
    line.release(2, process="q")
    assert FORGOTTEN[0] in line.detector.missing


def test_a_child_that_is_remembered_stays_so_for_as_long_as_its_late_parent(line):
    line.claim(2, process="q")
    owner = Owner(2, "run-2")
    line.save(2, "c6", parent="c5", owner=owner, process="q")  # before its parent
    line.save(2, "c5", parent="c4", owner=owner, process="q")
    line.release(2, process="q")
    [found] = go_on(line, 3, "x", "c5", "r")
    assert (found.anomaly, found.variant) == ("fork", "two-children")


def test_a_commit_that_lists_one_of_its_own_pairs_lists_every_foreign_one(scene):
    scene.claim(1)
    scene.commit(1, {"a": 1}, omitted=40)
    scene.release(1)

    assert scene.detector.verdict == "clean"


def test_a_commit_whose_listed_pairs_are_all_foreign_may_hide_others(scene):
    scene.claim(1)
    scene.release(1)
    scene.claim(2)
    scene.commit(2, {"a": 1}, omitted=40, inherited=(1,))
    scene.release(2)

    assert scene.detector.missing == (
        "press/i: keys that a commit did not list, and who staged them",
    )
