"""What is told of the stories, operation by operation."""

from collections.abc import Iterable
from typing import TypeVar

import pytest

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    CommitCause,
    DeliveryKind,
    Discard,
    DiscardCause,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    LateKind,
    Operation,
    Outcome,
    Release,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
)

from . import stories
from .cells import Expected
from .stories import STORIES, settled

needs_discards = pytest.mark.skipif(
    not stories.DISCARDS, reason="this version of the engine never discards"
)
O = TypeVar("O", bound=Operation)  # noqa: E741 - O is an operation

pytestmark = pytest.mark.usefixtures("instrumented")


def only(
    kind: type[O], heard: Iterable[Operation], epoch: int | None = None
) -> list[O]:
    return [
        operation
        for operation in heard
        if isinstance(operation, kind) and epoch in {None, operation.run.epoch}
    ]


def owners(operation: Operation) -> tuple[int, int]:
    assert operation.owner is not None
    return operation.run.epoch, operation.owner.epoch


async def test_a_leaked_write_is_told_as_committed_by_its_successors_run_entry(
    heard: list[Operation],
) -> None:
    await settled(stories.lost_write())
    entry = only(Commit, heard, 2)[0]
    assert entry.cause is CommitCause.RUN_ENTRY
    assert owners(entry) == (2, 2)
    assert entry.writes is not None
    assert ("a_key", 1) in entry.writes.pairs
    assert set(entry.writes.foreign_to(2)) == {("a_key", 1)}


@needs_discards
async def test_a_lost_write_is_told_as_discarded_by_the_abandoned_run(
    heard: list[Operation],
) -> None:
    await settled(stories.lost_write())
    (discard,) = only(Discard, heard)
    assert owners(discard) == (1, 2)
    assert discard.writes is not None
    assert discard.writes.pairs == (("b_key", 2),)
    assert not discard.fenced
    assert discard.ledger == 2
    assert discard.cause is DiscardCause.FINALIZER
    assert discard.trigger is Trigger.REFCOUNT


@needs_discards
async def test_the_collector_is_named_where_it_found_the_stream(
    heard: list[Operation],
) -> None:
    await settled(stories.cycle())
    (discard,) = only(Discard, heard)
    assert owners(discard) == (1, 2)
    assert discard.trigger is Trigger.GC


@needs_discards
@pytest.mark.parametrize(
    ("ending", "cause", "trigger", "outcome"),
    [
        ("raises", DiscardCause.FAILED, None, Outcome.FAILED),
        ("times out", DiscardCause.CANCELLED, None, Outcome.CANCELLED),
        ("closes", DiscardCause.FINALIZER, Trigger.CLOSE, Outcome.CANCELLED),
        ("leaves", DiscardCause.FINALIZER, Trigger.CLOSE, Outcome.CANCELLED),
    ],
)
async def test_the_end_of_a_failed_superstep_says_how_it_came_about(
    heard: list[Operation],
    ending: str,
    cause: DiscardCause,
    trigger: Trigger | None,
    outcome: Outcome,
) -> None:
    await settled(stories.failed_superstep(ending))
    (discard,) = only(Discard, heard)
    assert (discard.cause, discard.trigger) == (cause, trigger)
    assert discard.writes is not None
    assert discard.writes.pairs == (("a_key", 1),)
    assert [release.outcome for release in only(Release, heard)] == [
        outcome,
        Outcome.COMPLETED,
    ]


CLEAN = [
    name
    for name in STORIES
    if not Expected().cell(name, _engine.installed_version())["findings"]
]


@pytest.mark.parametrize("name", CLEAN)
async def test_a_clean_run_commits_and_discards_only_its_own_writes(
    heard: list[Operation], name: str
) -> None:
    await settled(STORIES[name].play())
    for operation in [*only(Commit, heard), *only(Discard, heard)]:
        assert operation.writes is not None
        assert set(operation.writes.epochs) <= {operation.run.epoch}
        assert operation.stale is False


@pytest.mark.parametrize("name", STORIES)
async def test_every_run_is_claimed_and_released_once_and_positions_have_no_gap(
    heard: list[Operation], name: str
) -> None:
    await settled(STORIES[name].play())
    instances = {operation.run.instance for operation in heard}
    for instance in instances:
        told = [operation for operation in heard if operation.run.instance == instance]
        claimed = [claim.run for claim in only(Claim, told)]
        released = [release.run for release in only(Release, told)]
        assert [run.epoch for run in claimed] == list(range(1, len(claimed) + 1))
        assert sorted(run.run_id for run in claimed) == sorted(
            run.run_id for run in released
        )
        assert [operation.seq for operation in told] == list(range(1, len(told) + 1))


@pytest.mark.parametrize("name", STORIES)
async def test_every_superstep_that_starts_ends(
    heard: list[Operation], name: str
) -> None:
    await settled(STORIES[name].play())
    started = [(step.run.run_id, step.index) for step in only(SuperstepStart, heard)]
    ended = [(step.run.run_id, step.index) for step in only(SuperstepEnd, heard)]
    assert started
    assert sorted(started) == sorted(ended)


async def test_an_abandoned_run_is_released_before_its_successor_claims(
    heard: list[Operation],
) -> None:
    await settled(stories.lost_write())
    (release,) = only(Release, heard, 1)
    (claim,) = only(Claim, heard, 2)
    assert release.outcome is Outcome.ABANDONED
    assert heard.index(release) < heard.index(claim)
    assert claim.superseded == 1


async def test_a_run_that_waits_for_a_human_is_released_with_pending_requests(
    heard: list[Operation],
) -> None:
    await settled(stories.answered_request())
    outcomes = [release.outcome for release in only(Release, heard)]
    assert outcomes == [Outcome.PENDING_REQUESTS, Outcome.COMPLETED]


async def test_a_run_whose_consumer_leaves_at_the_last_event_has_completed(
    heard: list[Operation],
) -> None:
    await settled(stories.left_at_the_end())
    assert only(Release, heard)[0].outcome is Outcome.COMPLETED


async def test_a_stream_that_is_never_iterated_is_released_before_the_next_claim(
    heard: list[Operation],
) -> None:
    await settled(stories.never_iterated())
    told = [type(operation).__name__ for operation in heard[:3]]
    assert told == ["Claim", "Release", "Claim"]
    assert only(Release, heard, 1)[0].outcome is Outcome.ABANDONED
    assert only(Claim, heard, 2)[0].superseded is None


async def test_a_stream_that_is_never_iterated_is_released_without_a_successor(
    heard: list[Operation],
) -> None:
    workflow = stories.one_executor(stories.Gates())
    stream = workflow.run("a", stream=True)
    del stream
    assert [operation.name for operation in heard] == ["claim"]
    await stories.turns(2)
    assert [operation.name for operation in heard] == ["claim", "release"]


async def test_restored_messages_belong_to_the_run_that_restores_them(
    heard: list[Operation],
) -> None:
    told = await settled(stories.resumed_in_flight())
    assert told.outputs == ["a"]
    assert only(CheckpointRestore, heard, 2)
    assert only(Execute, heard, 2)
    assert only(ForeignDelivery, heard) == []


async def test_a_late_stage_names_its_executor_and_the_owners_ledger(
    heard: list[Operation],
) -> None:
    await settled(stories.late_cleanup(3))
    (late,) = only(Late, heard)
    assert late.kind is LateKind.STAGE
    assert owners(late) == (1, 2)
    assert late.writes is not None
    assert late.writes.pairs == (("a_cleanup", 1),)
    assert (late.ledger, late.executor) == (2, "wa")


async def test_a_read_of_what_another_epoch_has_staged_is_told(
    heard: list[Operation],
) -> None:
    told = await settled(stories.dirty_read())
    assert told.notes == ["a"]
    (read,) = only(ForeignRead, heard)
    assert owners(read) == (2, 2)
    assert (read.key, read.writer, read.executor) == ("a_cleanup", 1, "wb")


async def test_a_late_output_and_its_delivery_are_told(
    heard: list[Operation],
) -> None:
    await settled(stories.foreign_output())
    (late,) = only(Late, heard)
    assert (late.kind, late.executor) == (LateKind.OUTPUT, "wa")
    (delivery,) = only(ForeignDelivery, heard)
    assert owners(delivery) == (2, 2)
    assert (delivery.kind, delivery.origin) == (DeliveryKind.OUTPUT, 1)


async def test_a_late_message_and_its_delivery_are_told(
    heard: list[Operation],
) -> None:
    await settled(stories.foreign_message())
    (late,) = only(Late, heard)
    assert (late.kind, late.executor) == (LateKind.SEND, "wa")
    (delivery,) = only(ForeignDelivery, heard)
    assert (delivery.kind, delivery.origin) == (DeliveryKind.MESSAGE, 1)
    assert delivery.executor == "s"


async def test_a_fan_in_that_delivers_an_older_run_is_told(
    heard: list[Operation],
) -> None:
    await settled(stories.fan_in_carry_over())
    (delivery,) = only(ForeignDelivery, heard)
    assert owners(delivery) == (2, 2)
    assert (delivery.kind, delivery.origin) == (DeliveryKind.FAN_IN, 1)
    assert delivery.executor == "j"


async def test_a_second_driver_claims(heard: list[Operation]) -> None:
    await settled(stories.second_driver())
    assert [claim.superseded for claim in only(Claim, heard)] == [None, None]
    assert [owners(release) for release in only(Release, heard)] == [(2, 2), (1, 2)]


@needs_discards
async def test_a_torn_checkpoint_names_the_epoch_of_each_part(
    heard: list[Operation],
) -> None:
    told = await settled(stories.torn_checkpoint())
    entry, *later = only(CheckpointSave, heard, 2)
    assert told.checkpoints[0] == {"first": {"run": "a"}, "second": {"run": "b"}}
    assert dict(entry.parts or ()) == {"first": 1, "second": 2}
    assert [dict(save.parts or ()) for save in later] == 2 * [{"first": 2, "second": 2}]


@needs_discards
async def test_a_snapshot_that_is_missing_from_a_checkpoint_is_no_part_of_it(
    heard: list[Operation],
) -> None:
    told = await settled(stories.torn_checkpoint(with_storage=False))
    entry = only(CheckpointSave, heard, 2)[0]
    assert told.checkpoints[0] == {"second": {"run": "b"}}
    assert dict(entry.parts or ()) == {"second": 2}


async def test_checkpoints_follow_each_other_and_a_restore_names_their_epochs(
    heard: list[Operation],
) -> None:
    await settled(stories.resumed_from_a_checkpoint())
    saves = only(CheckpointSave, heard, 1)
    assert [save.parent for save in saves] == [
        None,
        *(save.checkpoint for save in saves[:-1]),
    ]
    (restore,) = only(CheckpointRestore, heard)
    assert (restore.checkpoint, restore.parent) == (saves[0].checkpoint, None)
    assert dict(restore.parts or ()) == {"x": 1, "y": 1}
    resumed = only(CheckpointSave, heard, 2)
    assert resumed[0].parent == saves[0].checkpoint
    assert dict(resumed[0].parts or ()) == {"x": 2, "y": 2}


async def test_an_edge_buffer_is_a_part_of_the_checkpoint_that_holds_it(
    heard: list[Operation],
) -> None:
    told = await settled(stories.fan_in_across_supersteps())
    assert told.outputs == ["p1:r:b,p2:m:r:b"]
    parts = [set(dict(save.parts or ())) for save in only(CheckpointSave, heard, 2)]
    buffers = [{part for part in names if "FanIn" in part} for names in parts]
    assert [len(names) for names in buffers] == [0, 0, 0, 1, 0]
    for save in only(CheckpointSave, heard):
        assert {epoch for _, epoch in save.parts or ()} == {save.run.epoch}


async def test_a_commit_by_an_executor_does_not_end_its_superstep(
    heard: list[Operation],
) -> None:
    await settled(stories.own_commit())
    names = [operation.name for operation in heard][2:]
    assert names == [
        "superstep start",
        "commit",
        "discard",
        "execute",
        "commit",
        "superstep end",
        "release",
    ]


async def test_an_executor_tells_what_it_read_and_staged(
    heard: list[Operation],
) -> None:
    await settled(stories.chain())
    first = only(Execute, heard)[0]
    assert (first.executor, first.index, first.error) == ("x", 1, None)
    assert first.reads == ("count",)
    assert first.writes is not None
    assert first.writes.pairs == (("count", 1),)


async def test_an_executor_that_fails_tells_its_error(heard: list[Operation]) -> None:
    await settled(stories.failed_superstep("raises"))
    assert only(Execute, heard)[0].error == "LookupError"


async def test_a_sub_workflow_is_an_instance_of_its_own(
    heard: list[Operation],
) -> None:
    await settled(stories.sub_workflow())
    writers = {
        (operation.run.instance, key)
        for operation in only(Execute, heard)
        if operation.writes is not None
        for key in operation.writes.keys
    }
    assert len({instance for instance, _ in writers}) == 2
    assert {key for _, key in writers} == {"inner", "outer"}


async def test_a_workflow_without_a_name_has_one_name_for_all_its_instances(
    heard: list[Operation],
) -> None:
    await settled(stories.chain())
    await settled(stories.chain())
    assert {operation.run.workflow for operation in heard} == {"WorkflowBuilder"}
    assert len({operation.run.instance for operation in heard}) == 2
