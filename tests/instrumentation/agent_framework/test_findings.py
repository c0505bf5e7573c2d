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
    "S1 five turns later": (
        partial(stories.lost_write, 5),
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
        {
            (*LEAK, ("a_key",)),
            (*LEAK, ("a_cleanup",)),
            (*LATE, ("a_cleanup",)),
        },
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
    "S15": (stories.background_write, {(*LEAK, ("a_background",))}),
}

CLEAN: dict[str, Story] = {
    "S1 after the cleanup": partial(stories.lost_write, 15),
    "S3 that raises": partial(stories.failed_superstep, "raises"),
    "S3 that times out": partial(stories.failed_superstep, "times out"),
    "S3 that is closed": partial(stories.failed_superstep, "closes"),
    "S3 that leaves its block": partial(stories.failed_superstep, "leaves"),
    "a chain": stories.chain,
    "a checkpoint": stories.resumed_from_a_checkpoint,
    "a request": stories.answered_request,
    "a sub-workflow": stories.sub_workflow,
    "a stream that is never iterated": stories.never_iterated,
    "a stream that is left at its end": stories.left_at_the_end,
}


@pytest.mark.parametrize("name", RACES)
async def test_a_race_of_the_engine_is_found(name: str, detector: Detector) -> None:
    story, expected = RACES[name]
    await settled(story())
    assert expected <= found_by(detector)
    assert detector.verdict.value == "violated"


@pytest.mark.parametrize("name", RACES)
async def test_nothing_found_in_a_race_blames_the_wrong_epoch(
    name: str, detector: Detector
) -> None:
    story, expected = RACES[name]
    await settled(story())
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
