"""Attributes as operations: the exact way back, and tolerance without guessing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.detectors._lift import NOTHING, lift
from tenure.instrumentation import operations, semconv
from tenure.instrumentation.attributes import (
    operation_attributes,
    run_attributes,
    span_name,
)
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
    Owner,
    Receive,
    Release,
    RunRef,
    Send,
    SpanRef,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

text = st.text(min_size=1, max_size=8)
number = st.integers(0, 2**31)
runs = st.builds(RunRef, text, text, text, text, number, text)
owners = st.none() | st.builds(Owner, number, st.just("") | text)
pairs = st.lists(st.tuples(text, number), max_size=4).map(tuple)
write_sets = st.none() | st.builds(WriteSet, pairs, st.integers(0, 50))
spans = st.none() | st.builds(SpanRef, st.integers(1), st.integers(1))
head = {
    "run": runs,
    "seq": st.none() | number,
    "owner": owners,
    "span": spans,
    "time": number,
}
index = st.none() | number
executor = st.none() | text
parts = st.none() | pairs
names = st.lists(text, max_size=3).map(tuple)

SINGLE = {
    Commit: {
        "writes": write_sets,
        "cause": st.sampled_from(CommitCause),
        "index": index,
        "inherited": st.lists(number, max_size=3).map(tuple),
    },
    Discard: {
        "writes": write_sets,
        "cause": st.sampled_from(DiscardCause),
        "fenced": st.booleans(),
        "ledger": index,
        "shared": st.booleans(),
        "trigger": st.none() | st.sampled_from(Trigger),
        "index": index,
        "snapshots": names,
    },
    CheckpointSave: {
        "checkpoint": text,
        "parent": executor,
        "parts": parts,
        "taken": st.none() | names,
        "previous": executor,
    },
    CheckpointRestore: {"checkpoint": text, "parent": executor, "parts": parts},
    Late: {
        "kind": st.sampled_from(LateKind),
        "writes": write_sets,
        "ledger": index,
        "shared": st.booleans(),
        "executor": executor,
    },
    Send: {"message": text, "executor": executor, "target": executor, "index": index},
    Receive: {"message": text, "executor": executor, "index": index},
    ForeignRead: {"key": text, "writer": number, "executor": executor},
    ForeignDelivery: {
        "kind": st.sampled_from(DeliveryKind),
        "origin": number,
        "message": executor,
        "executor": executor,
    },
}
singles = st.one_of([
    st.builds(kind, **head, **fields) for kind, fields in SINGLE.items()
])
executes = st.builds(
    Execute,
    **head,
    executor=text,
    index=index,
    reads=st.lists(text, max_size=4).map(tuple),
    writes=write_sets,
    error=executor,
    reduced=names,
    isolated=st.booleans(),
)
claims = st.builds(Claim, **head, superseded=index)


def as_json_would(attributes):
    """Sequences come back as lists from most stores."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in attributes.items()
    }


@given(singles, st.booleans())
def test_a_span_of_one_operation_is_read_back_as_it_was(operation, as_lists):
    attributes = operation_attributes(operation)
    lifted = lift(
        span_name(operation),
        as_json_would(attributes) if as_lists else attributes,
        start=operation.time,
        end=operation.time + 5,
        span=operation.span,
    )

    assert lifted.operations == (operation,)
    assert lifted.unreadable == ()


@given(executes)
def test_an_execution_is_read_back_at_its_end(operation):
    attributes = operation_attributes(operation)
    name = span_name(operation)

    ended = lift(name, attributes, start=0, end=operation.time, span=operation.span)
    assert ended.operations == (operation,)
    assert lift(name, attributes, span=operation.span) == NOTHING


@given(claims, number, number, st.sampled_from(Outcome))
def test_an_own_span_is_read_back_as_claim_and_release(claim, seq, end, outcome):
    end_seq = None if claim.seq is None else seq
    attributes = operation_attributes(claim)
    started = lift(span_name(claim), attributes, start=claim.time, span=claim.span)
    attributes[semconv.RUN_OUTCOME] = outcome.value
    if end_seq is not None:
        attributes[semconv.END_SEQ] = end_seq
    ended = lift(
        span_name(claim), attributes, start=claim.time, end=end, span=claim.span
    )

    release = Release(
        run=claim.run,
        seq=end_seq,
        owner=claim.owner,
        span=claim.span,
        time=end,
        outcome=outcome,
    )
    assert started.operations == (claim,)
    assert ended.operations == (claim, release)


@given(st.builds(SuperstepStart, **head, index=number), number, number)
def test_a_superstep_span_is_read_back_as_start_and_end(start, seq, end):
    end_seq = None if start.seq is None else seq
    attributes = operation_attributes(start)
    started = lift("superstep", attributes, start=start.time, span=start.span)
    if end_seq is not None:
        attributes[semconv.END_SEQ] = end_seq
    ended = lift("superstep", attributes, start=start.time, end=end, span=start.span)

    # Who owned the instance when it ended is not on the span.
    closing = SuperstepEnd(
        run=start.run,
        seq=end_seq,
        owner=None,
        span=start.span,
        time=end,
        index=start.index,
    )
    assert started.operations == (start,)
    assert ended.operations == (start, closing)


def test_every_kind_of_operation_can_be_read_back():
    kinds = {
        kind
        for kind in vars(operations).values()
        if isinstance(kind, type) and issubclass(kind, Operation)
    }
    assert {
        *SINGLE,
        Execute,
        Claim,
        Release,
        SuperstepStart,
        SuperstepEnd,
    } == kinds - {Operation}


# Tolerance.

RUN = RunRef("x/1", "press", "i", "r", 2, "p")
COMMIT = Commit(
    run=RUN, seq=3, owner=Owner(2, "r"), writes=WriteSet((("a", 2),)), inherited=(1,)
)
OPERATIONS = [
    COMMIT,
    Discard(
        run=RUN,
        seq=3,
        owner=Owner(2),
        writes=WriteSet((("a", 2),), 4),
        cause=DiscardCause.SWEEP,
        ledger=1,
        trigger=Trigger.GC,
    ),
    CheckpointSave(run=RUN, seq=1, owner=None, checkpoint="c", parts=(("w", 1),)),
    Late(run=RUN, seq=1, owner=None, kind=LateKind.STAGE, ledger=1, executor="w"),
    ForeignRead(run=RUN, seq=1, owner=None, key="k", writer=1, executor="w"),
    ForeignDelivery(
        run=RUN, seq=1, owner=None, kind=DeliveryKind.FAN_IN, origin=1, message="m"
    ),
    Claim(run=RUN, seq=1, owner=Owner(2), superseded=1),
    SuperstepStart(run=RUN, seq=1, owner=Owner(2), index=1),
    Execute(run=RUN, seq=1, owner=None, executor="w", index=1, reads=("k",)),
]
junk = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.integers() | st.text(max_size=2) | st.booleans(), max_size=3)
    | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
)


@given(st.sampled_from(OPERATIONS), st.data())
def test_junk_in_any_attribute_neither_raises_nor_is_taken_for_something_else(
    operation, data
):
    attributes = operation_attributes(operation)
    name = data.draw(st.sampled_from(sorted(attributes)))
    attributes[name] = data.draw(junk)
    lifted = lift(span_name(operation), attributes, end=1)

    for one in lifted.operations:
        assert isinstance(one.run.epoch, int)
        assert not isinstance(one.run.epoch, bool)
        assert one.seq is None or isinstance(one.seq, int)


@given(text, st.dictionaries(text, junk, max_size=4))
def test_spans_of_anybody_else_say_nothing(name, attributes):
    assert lift(name, attributes) == NOTHING


@pytest.mark.parametrize("name", ["commit", "own press", "superstep", "execute w"])
def test_a_span_that_only_has_the_name_of_an_operation_says_nothing(name):
    assert lift(name, {"db.system": "sqlite"}, end=1) == NOTHING
    assert lift(name, None, end=1) == NOTHING


def test_the_span_of_a_run_is_no_operation():
    assert lift("run press", run_attributes(RUN), end=1) == NOTHING


@pytest.mark.parametrize(
    "missing",
    [*run_attributes(RUN), semconv.COMMIT_CAUSE, semconv.WRITE_KEYS],
)
def test_what_a_commit_cannot_do_without_is_named(missing):
    attributes = operation_attributes(COMMIT)
    del attributes[missing]
    lifted = lift("commit", attributes, end=1)

    assert lifted.operations == ()
    assert lifted.unreadable in ((missing,), (semconv.WRITE_EPOCHS,))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (semconv.RUN_EPOCH, "2"),
        (semconv.RUN_EPOCH, True),
        (semconv.SEQ, 1.5),
        (semconv.WRITE_EPOCHS, (1, 2)),
        (semconv.WRITE_EPOCHS, ("1",)),
        (semconv.WRITE_KEYS, "a"),
        (semconv.WRITE_COUNT, 7),
        (semconv.WRITE_OMITTED, -1),
        (semconv.COMMIT_CAUSE, "whim"),
        (semconv.INHERITED_EPOCHS, (True,)),
        (semconv.INHERITED_EPOCHS, 1),
    ],
)
def test_what_is_malformed_is_named_and_not_guessed(name, value):
    lifted = lift("commit", {**operation_attributes(COMMIT), name: value}, end=1)

    assert lifted.operations == ()
    assert len(lifted.unreadable) == 1


def test_a_claim_is_read_although_its_release_cannot_be():
    claim = Claim(run=RUN, seq=1, owner=Owner(2))
    attributes = {**operation_attributes(claim), semconv.RUN_OUTCOME: "completed"}
    lifted = lift("own press", attributes, end=1)

    assert lifted.operations == (claim,)
    assert lifted.unreadable == (semconv.END_SEQ,)


def test_writes_that_nobody_recorded_stay_unknown():
    operation = replace(COMMIT, writes=None)
    lifted = lift("commit", operation_attributes(operation), end=1)

    assert lifted.operations == (operation,)


def test_an_empty_write_set_reads_the_same_with_and_without_empty_sequences():
    operation = replace(COMMIT, writes=WriteSet(), inherited=())
    without = operation_attributes(operation)
    empty = {**without, semconv.WRITE_KEYS: [], semconv.WRITE_EPOCHS: []}

    assert semconv.WRITE_KEYS not in without
    assert lift("commit", without, end=1).operations == (operation,)
    assert lift("commit", empty, end=1).operations == (operation,)


def test_a_write_set_of_which_the_cap_left_out_everything_is_read_back():
    operation = replace(COMMIT, writes=WriteSet((), 2))

    assert lift("commit", operation_attributes(operation), end=1).operations == (
        operation,
    )


def test_keys_that_were_counted_and_are_neither_listed_nor_omitted_were_lost():
    attributes = operation_attributes(replace(COMMIT, writes=WriteSet((), 2)))
    attributes[semconv.WRITE_COUNT] = 3

    assert lift("commit", attributes, end=1).unreadable == (semconv.WRITE_KEYS,)


@pytest.mark.parametrize(
    "missing", [semconv.CHECKPOINT_PARTS, semconv.CHECKPOINT_EPOCHS]
)
def test_parts_without_epochs_and_epochs_without_parts_are_unreadable(missing):
    saved = CheckpointSave(
        run=RUN, seq=1, owner=None, checkpoint="c", parts=(("w", 1),)
    )
    attributes = operation_attributes(saved)
    del attributes[missing]

    assert lift("checkpoint save", attributes, end=1).operations == ()


def test_a_foreign_read_of_two_keys_is_unreadable():
    read = ForeignRead(run=RUN, seq=1, owner=None, key="k", writer=1)
    attributes = {**operation_attributes(read), semconv.READ_KEYS: ("k", "l")}

    assert lift("foreign read", attributes, end=1).unreadable == (semconv.READ_KEYS,)


def test_a_late_span_of_an_unknown_kind_is_unreadable():
    late = Late(run=RUN, seq=1, owner=None, kind=LateKind.SEND)
    lifted = lift("late whisper", operation_attributes(late), end=1)

    assert lifted.unreadable == ("name",)
