"""Eight processes compete for an instance, and are stopped and killed meanwhile.

Two judges that know nothing of each other: a reader of the database without any of
tenure's code, and `tenure check` over the spans that all processes have exported, those
that were killed and those that came in their place.

`make chaos` does it for a minute.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tenure.detectors import Detector
from tenure.instrumentation.operations import CheckpointSave, Discard, Outcome, Release

from .arena import FEWEST_COMMITS, SECONDS, Arena, compete
from .checked import Checked, check
from .database import database, stale_commits_in, wrong_in

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP"),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    """What is left of the fight over tenure's own store."""
    return compete(tmp_path_factory.mktemp("fenced"), "fenced", SECONDS)


@pytest.fixture(scope="module")
def checked(arena: Arena) -> Checked:
    """What `tenure check` says of it."""
    return check(arena.spans)


def test_nobody_commits_out_of_turn(arena: Arena) -> None:
    assert wrong_in(arena.directory, audited=True) == []
    told = arena.operations()
    # What a process was told is committed is there, and is what it was told.
    base = database(arena.directory)
    kept = {
        row[0]: row[1:]
        for row in base.execute(
            "SELECT checkpoint_id, parent_id, epoch, run_id FROM tenure_checkpoint"
        )
    }
    [claims] = base.execute("SELECT epoch FROM tenure_instance").fetchone()
    base.close()
    saves = [one for one in told if isinstance(one, CheckpointSave)]
    for save in saves:
        expected = (save.parent, save.run.epoch, save.run.run_id)
        assert kept.get(save.checkpoint) == expected
    lost = sum(isinstance(one, Release) and one.outcome is Outcome.LOST for one in told)
    sys.stdout.write(
        f"\n{SECONDS:g} s: {arena.stopped} stops, {arena.killed} kills, "
        f"{claims} claims, {len(kept)} commits, {len(saves)} told, {lost} runs lost, "
        f"{len(told)} operations\n"
    )
    assert arena.stopped > 10
    assert arena.killed > 2
    assert lost > 0
    assert len(kept) >= FEWEST_COMMITS


def test_what_all_processes_tell_shows_no_race_that_was_not_averted(
    arena: Arena,
) -> None:
    detector = Detector(announce=())
    for operation in arena.operations():
        detector.feed(operation)
    assert {one.severity.value for one in detector.findings} == {"averted"}


def test_the_spans_of_all_processes_show_no_race_that_was_not_averted(
    arena: Arena, checked: Checked
) -> None:
    counts = checked.document["counts"]
    sys.stdout.write(
        f"\ntenure check: {checked.document['verdict']}, exit status {checked.status}, "
        f"{counts['files']} files ({checked.empty} empty, {checked.torn} torn), "
        f"{counts['spans']} spans, {counts['operations']} operations, "
        f"{_listed(checked)}; {checked.seconds:.1f} s\n"
    )
    # Clean it cannot be: what a killed process had not exported is missing.
    assert checked.status == 3
    assert {one["severity"] for one in checked.findings} == {"averted"}
    # Those that came in place of the killed have told as well.
    assert counts["files"] - checked.empty > 8
    assert counts["unreadable"] == 0


def test_the_spans_tell_which_commits_were_refused_and_who_owned_the_instance(
    arena: Arena, checked: Checked
) -> None:
    refused = {
        (one.run.run_id, one.owner.epoch)
        for one in arena.operations()
        if isinstance(one, Discard) and one.stale and one.owner is not None
    }
    seen = _accused(checked.findings)
    assert seen <= refused
    # Of some, the process was killed before it had exported them.
    assert len(seen) > len(refused) / 2 > 2


def test_eight_processes_on_a_store_without_a_fence_are_caught_by_either_judge(
    tmp_path: Path,
) -> None:
    """The negative control of both."""
    for seed in range(1, 9):
        directory = tmp_path / str(seed)
        directory.mkdir()
        arena = compete(directory, "unfenced", min(SECONDS, 2), seed)
        checked, stale = check(arena.spans), stale_commits_in(directory)
        assert (checked.status == 1) == bool(checked.proven)
        found = [one for one in checked.proven if one["anomaly"] == "stale-commit"]
        # What is certain is true: the database shows each of them as well.
        assert _accused(found) <= stale
        if found:
            break
    sys.stdout.write(
        f"\nunfenced: {len(stale)} stale commits in the database; "
        f"tenure check: exit status {checked.status}, {_listed(checked)}\n"
    )
    assert found
    assert wrong_in(directory, audited=True)
    assert checked.document["verdict"] == "violated"


def _accused(findings: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Return the run that each finding accuses, and the owner's epoch."""
    return {(one["evidence"][0]["run_id"], one["owner_epoch"]) for one in findings}


def _listed(checked: Checked) -> str:
    kinds = checked.kinds.most_common()
    return "; ".join(f"{count} {' '.join(kind)}" for kind, count in kinds)
