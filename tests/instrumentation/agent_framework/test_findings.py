"""What the detector finds in the stories, on the real engine."""

from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from tenure.detectors import Detector

from . import stories
from .stories import Told, settled

Story = Callable[[], Awaitable[Told]]
Found = set[tuple[str, str, int, int | None, tuple[str, ...]]]

pytestmark = pytest.mark.usefixtures("instrumented")

LEAK = ("leaked-write", "violation", 2, 1)
DISCARD = ("stale-discard", "violation", 1, 2)
NO_VICTIM = ("stale-discard", "warning", 1, None, ())
LATE = ("late-write", "warning", 1, None)
FOREIGN = ("foreign-delivery", "violation", 2, 1, ())
OVERLAP = ("overlapping-owners", "warning", 2, 1, ())


def found_by(detector: Detector) -> Found:
    return {
        (
            finding.anomaly,
            finding.severity.value,
            finding.culprit_epoch,
            finding.victim_epoch,
            finding.keys,
        )
        for finding in detector.findings
    }


RACES: dict[str, tuple[Story, Found]] = {
    "S1 at once": (
        stories.lost_write,
        {(*LEAK, ("a_key",)), (*DISCARD, ("b_key",))},
    ),
    "S1 dropped by the successor": (
        stories.lost_write_while_the_successor_drops,
        {(*LEAK, ("a_key",)), (*DISCARD, ("b_key",))},
    ),
    "S4 with storage": (
        stories.torn_checkpoint,
        {(*LEAK, ("a_key",)), (*DISCARD, ("_executor_state",))},
    ),
    "S4 without storage": (
        partial(stories.torn_checkpoint, with_storage=False),
        {(*LEAK, ("a_key",)), (*DISCARD, ("_executor_state",))},
    ),
    "S5 at once": (
        stories.late_cleanup,
        {(*LEAK, ("a_key",)), (*LATE, ("a_cleanup",))},
    ),
    "S5 three turns later": (
        partial(stories.late_cleanup, 3),
        {(*LEAK, ("a_key",)), (*LATE, ("a_cleanup",))},
    ),
    "S5 fifty turns later": (
        partial(stories.late_cleanup, 50),
        {(*LEAK, ("a_key",)), (*LATE, ("a_cleanup",))},
    ),
    "S6": (stories.left_at_a_failure, {(*LEAK, ("secret",)), NO_VICTIM}),
    "S7": (
        stories.closed_outer_generator,
        {(*LEAK, ("a_key",)), (*DISCARD, ("b_key",))},
    ),
    "S8": (stories.cycle, {(*LEAK, ("a_key",)), (*DISCARD, ("b_key",))}),
    "S9": (stories.slow_cleanup, {(*DISCARD, ("b2_key",))}),
    "S10": (stories.foreign_output, {(*LATE, ()), FOREIGN}),
    "S11": (stories.foreign_message, {(*LATE, ()), FOREIGN}),
    "S12": (stories.fan_in_carry_over, {FOREIGN}),
    "S13": (stories.second_driver, {OVERLAP, (*LEAK, ("half",))}),
    "S14": (stories.thread_write, {(*LATE, ("a_thread",)), (*LEAK, ("a_thread",))}),
    "S16": (stories.failed_snapshot, {(*LEAK, ("_executor_state",))}),
    "S15": (stories.background_write, {(*LEAK, ("a_background",))}),
}

CLEAN: dict[str, Story] = {
    "a chain": stories.chain,
    "a checkpoint": stories.resumed_from_a_checkpoint,
    "a request": stories.answered_request,
    "a cancelled request": stories.cancelled_request,
    "a fan-in across supersteps": stories.fan_in_across_supersteps,
    "a commit by an executor": stories.own_commit,
    "a sub-workflow": stories.sub_workflow,
    "a stream that is never iterated": stories.never_iterated,
    "a stream that is left at its end": stories.left_at_the_end,
}

if stories.DISCARDS:
    CLEAN |= {
        "S1 after the cleanup": partial(stories.lost_write, 40),
        "S3 that raises": partial(stories.failed_superstep, "raises"),
        "S3 that times out": partial(stories.failed_superstep, "times out"),
        "S3 that is closed": partial(stories.failed_superstep, "closes"),
        "S3 that leaves its block": partial(stories.failed_superstep, "leaves"),
    }
else:
    # What is never discarded is not lost: it leaks.
    RACES = {
        name: (story, {one for one in found if one[0] != "stale-discard"})
        for name, (story, found) in RACES.items()
        if name != "S9"
    }
    RACES |= {
        f"S3 that {ending}": (
            partial(stories.failed_superstep, ending),
            {(*LEAK, ("a_key",))},
        )
        for ending in ("raises", "times out", "closes", "leaves")
    }


@pytest.mark.parametrize("name", RACES)
async def test_a_race_of_the_engine_is_found(name: str, detector: Detector) -> None:
    story, expected = RACES[name]
    await settled(story())
    assert expected <= found_by(detector)
    assert detector.verdict.value == "violated"


@pytest.mark.parametrize("later", range(16))
async def test_what_is_found_of_s1_agrees_with_what_was_lost(
    later: int, detector: Detector
) -> None:
    told = await settled(stories.lost_write(later))
    found = found_by(detector)
    assert ("b_key" not in told.state) == ((*DISCARD, ("b_key",)) in found)
    assert ("a_key" in told.state) == ((*LEAK, ("a_key",)) in found)


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5, 10, 50])
async def test_what_is_found_of_s5_agrees_with_what_was_lost(
    after: int, detector: Detector
) -> None:
    told = await settled(stories.late_cleanup(after))
    found = found_by(detector)
    assert ("b_key" not in told.state) == ((*DISCARD, ("b_key",)) in found)
    assert ("a_key" in told.state) == ((*LEAK, ("a_key",)) in found)
    assert ("a_cleanup" in told.state) == ((*LEAK, ("a_cleanup",)) in found)


@pytest.mark.parametrize("name", RACES)
async def test_nothing_found_in_a_race_blames_the_wrong_epoch(
    name: str, detector: Detector
) -> None:
    story, expected = RACES[name]
    await settled(story())
    overlaps = {one[0] for one in found_by(detector)} & {OVERLAP[0]}
    assert bool(overlaps) == (OVERLAP in expected)
    blamed = {culprit for _, _, culprit, _, _ in expected} | {1}
    assert {finding.culprit_epoch for finding in detector.findings} <= blamed
    assert all(
        finding.victim_epoch != finding.culprit_epoch for finding in detector.findings
    )


@pytest.mark.parametrize("name", CLEAN)
async def test_what_the_engine_gets_right_gives_no_finding(
    name: str, detector: Detector
) -> None:
    await settled(CLEAN[name]())
    assert detector.findings == ()
    assert detector.verdict.value == "clean"
