"""Operations as span attributes, and the names that they use."""

import ast
import inspect
import re
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise

import pytest
from opentelemetry.sdk.trace import TracerProvider

from tenure.instrumentation import operations, semconv
from tenure.instrumentation.attributes import (
    operation_attributes,
    run_attributes,
    span_name,
)
from tenure.instrumentation.building import builder
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
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

RUN = RunRef("engine/1.2", "press", "default", "r1", 3, "host-1-a")
HEAD = {"run": RUN, "seq": 7, "owner": Owner(4, "r2")}
WRITES = WriteSet((("stolen", 2), ("draft", 3)), omitted=5)
FULL = [
    (Claim(**HEAD, superseded=2), "own press", {"tenure.superseded.epoch": 2}),
    (
        Release(**HEAD, outcome=Outcome.SUPERSEDED),
        "own press",
        {"tenure.run.outcome": "superseded"},
    ),
    (SuperstepStart(**HEAD, index=2), "superstep", {"tenure.superstep.index": 2}),
    (SuperstepEnd(**HEAD, index=2), "superstep", {"tenure.superstep.index": 2}),
    (
        Execute(
            **HEAD,
            executor="writer",
            index=2,
            reads=("title",),
            writes=WRITES,
            error="ValueError",
        ),
        "execute writer",
        {
            "tenure.executor.id": "writer",
            "tenure.superstep.index": 2,
            "tenure.read.keys": ("title",),
            "tenure.write.keys": ("stolen", "draft"),
            "tenure.write.epochs": (2, 3),
            "tenure.write.count": 7,
            "tenure.write.omitted": 5,
            "error.type": "ValueError",
        },
    ),
    (
        Commit(
            **HEAD,
            writes=WRITES,
            cause=CommitCause.CHECKPOINT,
            index=2,
            inherited=(1, 2),
        ),
        "commit",
        {
            "tenure.write.keys": ("stolen", "draft"),
            "tenure.write.epochs": (2, 3),
            "tenure.write.count": 7,
            "tenure.write.omitted": 5,
            "tenure.commit.cause": "checkpoint",
            "tenure.superstep.index": 2,
            "tenure.inherited.epochs": (1, 2),
        },
    ),
    (
        Discard(
            **HEAD,
            writes=WriteSet(),
            cause=DiscardCause.FINALIZER,
            fenced=True,
            ledger=3,
            trigger=Trigger.GC,
            index=2,
        ),
        "discard",
        {
            "tenure.write.count": 0,
            "tenure.write.omitted": 0,
            "tenure.discard.cause": "finalizer",
            "tenure.discard.fenced": True,
            "tenure.ledger.epoch": 3,
            "tenure.finalizer.trigger": "gc",
            "tenure.superstep.index": 2,
        },
    ),
    *(
        (
            kind(**HEAD, checkpoint="c2", parent="c1", parts=(("writer", 3),)),
            kind.name,
            {
                "tenure.checkpoint.id": "c2",
                "tenure.checkpoint.parent_id": "c1",
                "tenure.checkpoint.parts": ("writer",),
                "tenure.checkpoint.epochs": (3,),
            },
        )
        for kind in (CheckpointSave, CheckpointRestore)
    ),
    (
        CheckpointSave(**HEAD, checkpoint="c9", parent="c1", previous="c8"),
        "checkpoint save",
        {
            "tenure.checkpoint.id": "c9",
            "tenure.checkpoint.parent_id": "c1",
            "tenure.checkpoint.previous_id": "c8",
        },
    ),
    (
        Late(**HEAD, kind=LateKind.STAGE, ledger=4, executor="writer"),
        "late stage",
        {"tenure.ledger.epoch": 4, "tenure.executor.id": "writer"},
    ),
    (
        Send(**HEAD, message="m1", executor="writer", target="reader", index=2),
        "send",
        {
            "tenure.message.id": "m1",
            "tenure.message.target": "reader",
            "tenure.executor.id": "writer",
            "tenure.superstep.index": 2,
        },
    ),
    (
        Receive(**HEAD, message="m1", executor="reader", index=3),
        "receive",
        {
            "tenure.message.id": "m1",
            "tenure.executor.id": "reader",
            "tenure.superstep.index": 3,
        },
    ),
    (
        ForeignRead(**HEAD, key="draft", writer=2, executor="writer"),
        "foreign read",
        {
            "tenure.read.keys": ("draft",),
            "tenure.read.writer_epoch": 2,
            "tenure.executor.id": "writer",
        },
    ),
    (
        ForeignDelivery(
            **HEAD,
            kind=DeliveryKind.FAN_IN,
            origin=2,
            message="m1",
            executor="writer",
        ),
        "foreign delivery",
        {
            "tenure.delivery.kind": "fan_in",
            "tenure.origin.epoch": 2,
            "tenure.message.id": "m1",
            "tenure.executor.id": "writer",
        },
    ),
]
KINDS = [
    kind
    for _, kind in inspect.getmembers(operations, inspect.isclass)
    if issubclass(kind, Operation) and kind is not Operation
]


def ids(case: object) -> str | None:
    return type(case).__name__ if isinstance(case, Operation) else None


@pytest.mark.parametrize(("operation", "name", "specific"), FULL, ids=ids)
def test_an_operation_becomes_its_attributes(operation, name, specific):
    assert span_name(operation) == name
    assert operation_attributes(operation) == {
        "tenure.engine": "engine/1.2",
        "tenure.workflow.name": "press",
        "tenure.instance.id": "default",
        "tenure.run.id": "r1",
        "tenure.run.epoch": 3,
        "tenure.process.id": "host-1-a",
        "tenure.seq": 7,
        "tenure.owner.epoch": 4,
        "tenure.owner.run_id": "r2",
        **specific,
    }


def test_every_kind_of_operation_has_a_case_here():
    assert {type(operation) for operation, _, _ in FULL} == set(KINDS)


@pytest.mark.parametrize(("operation", "name", "specific"), FULL, ids=ids)
def test_an_sdk_takes_every_attribute_as_it_is(operation, name, specific, caplog):
    attributes = operation_attributes(operation)
    span = TracerProvider().get_tracer("test").start_span(name, attributes=attributes)
    assert dict(span.attributes) == attributes
    assert caplog.records == []


def test_what_is_unknown_is_left_out():
    run = RunRef("engine/1.2", "press", "default", "r1", 3, "host-1-a")
    commit = Commit(run=run, seq=None, owner=None, writes=None)
    assert operation_attributes(commit) == {
        **run_attributes(run),
        "tenure.commit.cause": "superstep",
    }


def test_an_owner_whose_run_is_unknown_has_an_epoch_all_the_same():
    late = Late(run=RUN, seq=1, owner=Owner(4), kind=LateKind.SEND)
    attributes = operation_attributes(late)
    assert attributes["tenure.owner.epoch"] == 4
    assert "tenure.owner.run_id" not in attributes


def test_common_attributes_at_hand_are_used_and_left_alone():
    common = {"tenure.engine": "other/1"}
    attributes = operation_attributes(Claim(**HEAD), common)
    assert attributes["tenure.engine"] == "other/1"
    assert common == {"tenure.engine": "other/1"}


class TestBuilder:
    @pytest.mark.parametrize(("operation", "name", "specific"), FULL, ids=ids)
    def test_it_makes_what_the_constructor_makes(self, operation, name, specific):
        given = {
            known.name: getattr(operation, known.name)
            for known in fields(operation)
            if known.default is MISSING
            or getattr(operation, known.name) != known.default
        }
        made = builder(type(operation))(**given)
        assert type(made) is type(operation)
        assert made == operation
        assert hash(made) == hash(operation)
        assert repr(made) == repr(operation)

    def test_what_it_makes_is_frozen(self):
        made = builder(Claim)(**HEAD)
        with pytest.raises(AttributeError, match="seq"):
            made.seq = 8
        with pytest.raises(AttributeError, match="seq"):
            del made.seq

    def test_it_asks_for_what_the_constructor_asks_for(self):
        with pytest.raises(TypeError, match="outcome"):
            builder(Release)(**HEAD)
        with pytest.raises(TypeError, match="surprise"):
            builder(Claim)(**HEAD, surprise=1)

    def test_it_refuses_what_it_would_build_wrongly(self):
        class Plain:
            pass

        @dataclass(frozen=True, slots=True)
        class Checked:
            number: int

            def __post_init__(self) -> None:
                assert self.number

        for kind in (Plain, Checked):
            with pytest.raises(TypeError):
                builder(kind)

    def test_a_default_that_is_computed_has_to_be_given(self):
        @dataclass(frozen=True, slots=True)
        class Computed:
            items: list[int] = field(default_factory=list)

        with pytest.raises(TypeError, match="items"):
            builder(Computed)()
        assert builder(Computed)(items=[1]) == Computed([1])


NAMES = {name: value for name, value in vars(semconv).items() if name.isupper()}


class TestNames:
    def test_every_name_is_lowercase_and_under_tenure(self):
        exempt = {"SCHEMA_URL", "ERROR_TYPE", "VIOLATION_SPAN"}
        for name, value in NAMES.items():
            if name not in exempt:
                assert re.fullmatch(r"tenure(\.[a-z]+(_[a-z]+)*)+", value), name
        assert semconv.ERROR_TYPE == "error.type"

    def test_no_name_is_used_twice(self):
        assert len(set(NAMES.values())) == len(NAMES)

    def test_no_attribute_is_a_namespace_of_another(self):
        attributes = {
            value
            for name, value in NAMES.items()
            if not name.startswith("METRIC_")
            and name != "VIOLATION_EVENT"
            and not name.endswith("_SCOPE")
        }
        for one in attributes:
            for other in attributes:
                assert not other.startswith(f"{one}."), (one, other)

    def test_every_name_has_a_docstring_and_is_final(self):
        body = ast.parse(inspect.getsource(semconv)).body
        documented = {
            statement.target.id
            for statement, following in pairwise(body)
            if isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and ast.unparse(statement.annotation) == "Final"
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
            and isinstance(following.value.value, str)
        }
        assert documented == set(NAMES)

    def test_every_attribute_of_an_operation_is_a_name_of_the_vocabulary(self):
        known = set(NAMES.values())
        for operation, _, _ in FULL:
            assert set(operation_attributes(operation)) <= known
