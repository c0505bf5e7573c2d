"""Every story by its name, in the order in which a reader should meet them."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from . import abandoned, inside, overlapping, refused, right
from .playing import Told


class Story(NamedTuple):
    """A story that can be played.

    Attributes:
        title: What happens, as a sentence for people who use the engine.
        play: Plays it on the installed engine.
    """

    title: str
    play: Callable[[], Awaitable[Told]]


STORIES: dict[str, Story] = {
    # Left streams.
    "S1": Story(
        "A stream is dropped in mid-superstep; the next run starts at once.",
        abandoned.lost_write,
    ),
    "S1 inside": Story(
        "The same, and what drops it runs inside the next run.",
        abandoned.lost_write_while_the_successor_drops,
    ),
    "S1 later": Story(
        "The same, and the next run starts after the dropped one's cleanup.",
        partial(abandoned.lost_write, 40),
    ),
    "S2b": Story(
        "Stock function executors, a cleanup of 80 ms; the next run at once.",
        abandoned.stock_executors,
    ),
    "S2b +20 ms": Story(
        "The same, the next run 20 ms later.",
        partial(abandoned.stock_executors, 0.02),
    ),
    "S2b +200 ms": Story(
        "The same, the next run 200 ms later, after the cleanup.",
        partial(abandoned.stock_executors, 0.2),
    ),
    **{
        f"S3 {ending}": Story(
            f"A superstep with half its writes staged {what}; then a good run.",
            partial(abandoned.failed_superstep, ending),
        )
        for ending, what in {
            "raises": "raises",
            "times out": "is cancelled by a timeout",
            "closes": "is ended by `close()`",
            "leaves": "is ended by its `async with`",
        }.items()
    },
    "S4": Story(
        "Both runs save checkpoints; the dropped one's cleanup comes during a save.",
        abandoned.torn_checkpoint,
    ),
    "S4 no storage": Story(
        "The same, and the dropped run had saved none.",
        partial(abandoned.torn_checkpoint, with_storage=False),
    ),
    **{
        f"S5 K={after}": Story(
            f"The dropped run's cleanup stages {when}.",
            partial(abandoned.late_cleanup, after),
        )
        for after, when in {
            0: "at once",
            1: "one turn of the loop later",
            3: "three turns later",
            10: "ten turns later",
            50: "fifty turns later",
        }.items()
    },
    "S6": Story(
        "A consumer leaves at `executor_failed`; a sibling's cleanup is slow.",
        abandoned.left_at_a_failure,
    ),
    "S7": Story(
        "A server closes its own generator around the stream, as for a lost client.",
        abandoned.closed_outer_generator,
    ),
    "S8": Story(
        "The stream sits in a reference cycle, and the collector finds it.",
        abandoned.cycle,
    ),
    "S9": Story(
        "A cleanup of 150 ms reaches into the next run's second superstep.",
        abandoned.slow_cleanup,
    ),
    "S10": Story(
        "The dropped run's cleanup yields an output.", abandoned.foreign_output
    ),
    "S11": Story(
        "The dropped run's cleanup sends a message.", abandoned.foreign_message
    ),
    "late fan-in": Story(
        "The dropped run does not heed its cancellation and fills half a fan-in.",
        abandoned.late_fan_in,
    ),
    "dirty read": Story(
        "The next run reads what the dropped run's cleanup has staged.",
        abandoned.dirty_read,
    ),
    # Nobody leaves.
    "S12": Story(
        "A fan-in is half filled when its run ends; then a fresh run.",
        overlapping.fan_in_carry_over,
    ),
    "S13": Story(
        "`cancel_pending_requests` during a live run, whose superstep then fails.",
        overlapping.second_driver,
    ),
    "S14 between": Story(
        "A thread outlives its timed-out run and stages before the next run.",
        partial(overlapping.thread_write, before=True),
    ),
    "S14 during": Story(
        "The same, and it stages during the next run.", overlapping.thread_write
    ),
    "S15": Story(
        "A task that a finished run has left stages.", overlapping.background_write
    ),
    "S16": Story(
        "A checkpoint hook raises, which is only logged.", overlapping.failed_snapshot
    ),
    # Refused.
    "S17": Story(
        "A stream is closed between two supersteps; then a fresh run.",
        refused.closed_between_supersteps,
    ),
    "S18": Story(
        "An agent that is a workflow is cancelled once; then it is asked again.",
        refused.agent_left,
    ),
    "S19": Story(
        "A generator around a stream is dropped; then a fresh run.",
        refused.generator_around,
    ),
    # Inside one superstep.
    "S20": Story("Two executors side by side increment one key.", inside.lost_update),
    "last write": Story(
        "Two executors side by side set one key; the last one wins.",
        inside.last_write_wins,
    ),
    "S21": Story("An executor reads what its sibling has staged.", inside.sibling_read),
    "S22": Story(
        "The targets of a fan-out share one mutable message.", inside.shared_message
    ),
    "S23": Story(
        "An executor commits the raw state, and its superstep then fails.",
        inside.raw_state,
    ),
    # What the engine gets right.
    "to the end": Story(
        "A stream is consumed to its end, the next one in its `async with`.",
        right.consumed_to_the_end,
    ),
    **{
        f"clean {ending}": Story(
            f"A superstep that has staged nothing {what}; then a good run.",
            partial(abandoned.failed_superstep, ending, stages=False),
        )
        for ending, what in {
            "times out": "is cancelled by a timeout",
            "closes": "is ended by `close()`",
            "leaves": "is ended by its `async with`",
        }.items()
    },
    "chain": Story("Two runs of a chain of three.", right.chain),
    "last event": Story(
        "A consumer leaves at the very last event.", right.left_at_the_end
    ),
    "never iterated": Story(
        "A stream is dropped that nobody has iterated.", right.never_iterated
    ),
    "apart": Story("Two executors side by side stage keys of their own.", inside.apart),
    "own commit": Story(
        "An executor commits and discards the raw state, and ends well.",
        right.own_commit,
    ),
    "request": Story(
        "A run stops to wait for a human; another brings the answer.",
        right.answered_request,
    ),
    "request and fan-in": Story(
        "The same, and half a fan-in waits for the answer.",
        right.answered_half_of_a_fan_in,
    ),
    "cancelled request": Story("The request is cancelled.", right.cancelled_request),
    "fan-in": Story(
        "A fan-in waits for a slower branch while checkpoints are saved.",
        right.fan_in_across_supersteps,
    ),
    "restore": Story(
        "A run restores the first checkpoint of an earlier one.",
        right.resumed_from_a_checkpoint,
    ),
    "restore in flight": Story(
        "A run restores a checkpoint that has messages in flight.",
        right.resumed_in_flight,
    ),
    "sub-workflow": Story(
        "A workflow inside another, both with state.", right.sub_workflow
    ),
}
"""Those with a number come first; what the engine gets right comes last."""
