"""What a recorder is told beyond who and when: maps, snapshots, reducers, messages."""

import pytest

from tenure.instrumentation import Detail, KeyDisplay, Recorder
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.operations import (
    CheckpointSave,
    Discard,
    DiscardCause,
    Execute,
    Late,
    LateKind,
    Outcome,
    Owner,
    Receive,
    Release,
    Send,
    Trigger,
)

OWNER = Owner(1, "run-1")


@pytest.fixture
def heard():
    told = []
    add_listener(told.append)
    yield told
    remove_listener(told.append)


def claimed(**how):
    recorder = Recorder("model/1", **how)
    run = recorder.instance("press", "i").run("run-1")
    run.claim(OWNER)
    return run


def test_a_map_that_all_runs_share_is_told_as_such(heard):
    run = claimed()
    run.late(OWNER, LateKind.STAGE, writes={"k": 1}, ledger=1, shared=True)
    run.discard(OWNER, {}, cause=DiscardCause.SWEEP, ledger=1, shared=True)
    run.late(OWNER, LateKind.SEND, ledger=1)

    shared = [one.shared for one in heard if isinstance(one, Late | Discard)]
    assert shared == [True, True, False]


def test_keys_that_hold_snapshots_are_shown_as_the_other_keys_are(heard):
    run = claimed(keys=KeyDisplay.HASHED)
    run.discard(OWNER, {"s": 1}, cause=DiscardCause.FAILED, snapshots=("s",))

    (discard,) = [one for one in heard if isinstance(one, Discard)]
    assert discard.snapshots == discard.writes.keys != ("s",)


def test_keys_that_a_reducer_joins_are_shown_as_the_other_keys_are(heard):
    run = claimed(keys=KeyDisplay.HASHED)
    span = run.executor_started("a", 1)
    run.executor_ended(
        OWNER, span, "a", 1, writes={"k": 1}, reduced=("k",), isolated=True
    )

    (execute,) = [one for one in heard if isinstance(one, Execute)]
    assert execute.reduced == execute.writes.keys != ("k",)
    assert execute.isolated


def test_snapshots_that_were_taken_for_a_checkpoint_are_told(heard):
    run = claimed()
    run.checkpoint_saved(OWNER, "c", None, {"a": 1}, taken=["a", "b"])
    run.checkpoint_saved(OWNER, "d", "c", None)

    saves = [one for one in heard if isinstance(one, CheckpointSave)]
    assert [one.taken for one in saves] == [("a", "b"), None]


def test_a_release_says_what_brought_it_about(heard):
    run = claimed()
    run.release(OWNER, Outcome.ABANDONED, trigger=Trigger.GC)

    (release,) = [one for one in heard if isinstance(one, Release)]
    assert release.trigger is Trigger.GC


def test_messages_are_told_at_their_level_of_detail(heard):
    run = claimed(detail=Detail.MESSAGES)
    assert run.telling_messages
    run.sent(OWNER, "1", executor="a", target="b", index=1)
    run.received(OWNER, "1", executor="b", index=2)

    send, receive = [one for one in heard if isinstance(one, Send | Receive)]
    assert (send.message, send.executor, send.target, send.index) == ("1", "a", "b", 1)
    assert (receive.message, receive.executor, receive.index) == ("1", "b", 2)
    assert [one.seq for one in heard] == [1, 2, 3]


def test_at_less_detail_messages_take_no_number(heard):
    run = claimed(detail=Detail.EXECUTORS)
    assert not run.telling_messages
    run.sent(OWNER, "1")
    run.received(OWNER, "1")
    run.release(OWNER, Outcome.COMPLETED)

    assert [one.seq for one in heard] == [1, 2]


def test_messages_that_nobody_would_hear_are_not_worth_a_name():
    assert not claimed(detail=Detail.MESSAGES).telling_messages
