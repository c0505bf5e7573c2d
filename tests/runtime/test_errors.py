"""Errors: each survives pickling, keeps its facts, and says what to do."""

import copy
import inspect
import pickle

import pytest

from tenure.runtime import errors
from tenure.runtime.errors import (
    CheckpointError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    ConvergenceError,
    DeadlineError,
    DefinitionError,
    EventLoopError,
    EventsMissedError,
    ExecutorError,
    IsolationError,
    MessageTypeError,
    OwnershipLostError,
    ReducerError,
    ResponseTypeError,
    RunError,
    RunNotFoundError,
    StateTypeError,
    StreamConsumedError,
    UnknownRequestError,
    UnknownTargetError,
    WorkflowBusyError,
    WorkflowError,
    WriteConflictError,
)

EXAMPLES: list[tuple[WorkflowError, tuple[str, ...]]] = [
    (
        DefinitionError("press", "'a' sends int, but 'b' takes str", "Let 'a' send it"),
        ("'press'", "'a' sends int, but 'b' takes str", "Let 'a' send it."),
    ),
    (
        WorkflowBusyError("press", "c42", "r7", 3),
        ("'press'", "'c42'", "r7", "epoch 3", "Await that run", '"supersede"'),
    ),
    (
        WorkflowBusyError("press", "c42", "r7", 0),
        ("run r7", "in this process", "no epoch from the store yet", '"supersede"'),
    ),
    (ExecutorError("writer", 2, "ValueError: no"), ("'writer'", "superstep 2", "no")),
    (
        ConvergenceError(100, ("a", "b")),
        ("100 supersteps", "a, b", "condition that ends it", "max_supersteps"),
    ),
    (
        WriteConflictError("draft", "a", "b"),
        ("'draft'", "'a' and 'b'", "StateKey('draft', reduce="),
    ),
    (
        ReducerError("draft", "a", "not iterable"),
        ("'draft'", "'a'", "not iterable", "Stage what it can join"),
    ),
    (
        MessageTypeError("a", "int", ("'b' takes str", "'c' takes bytes")),
        ("'a' sent", "int", "'b' takes str; 'c' takes bytes"),
    ),
    (MessageTypeError("a", "int", ()), ("no edge leaves it", "Use yield_output")),
    (MessageTypeError("", "int", ("'b' takes str",)), ("the run was given", "int")),
    (
        UnknownTargetError("a", "z", ("b", "c")),
        ("from 'a' to 'z'", "edges lead to b, c"),
    ),
    (UnknownTargetError("a", "z", ()), ("no executor",)),
    (
        IsolationError("state key 'cart'", "lock", "cannot pickle"),
        ("state key 'cart'", "lock", "cannot pickle", "__deepcopy__"),
    ),
    (StreamConsumedError("r7"), ("r7", "Start another run")),
    (DeadlineError(1.5, 3), ("1.5 s", "superstep 3", "are committed")),
    (
        UnknownRequestError(("q1",), ("q2", "q3")),
        ("request q1", "answered, cancelled", "waiting are q2, q3"),
    ),
    (ResponseTypeError("q1", "bool", "str"), ("q1", "asks for bool", "type str")),
    (
        ResponseTypeError("q1", "Form", "dict", "no field `name`"),
        ("cannot be converted to it: no field `name`",),
    ),
    (
        StateTypeError("state key 'cart'", "Cart"),
        ("state key 'cart'", "register_state_type(Cart)"),
    ),
    (
        StateTypeError("request of 'a'", "list[int]", "Annotate it"),
        ("request of 'a'", "list[int]. Annotate it"),
    ),
    (RunNotFoundError("r7"), ("r7", "workflow.start")),
    (EventsMissedError("r7", 3, 9), ("events 4 to 8", "after=8", "keep_events")),
    (CheckpointError("c1 cannot be read", "it is damaged"), ("c1", "it is damaged")),
    (
        CheckpointNotFoundError("press/c42", "c1"),
        ("'press/c42'", "'c1'", "may have been pruned", "history()"),
    ),
    (CheckpointNotFoundError("press/c42", "(any)"), ("no checkpoint:", "erased")),
    (
        CheckpointNotFoundError("press/c42", "(any)"),
        ("'press/c42' has no checkpoint", "erased", "Run a message"),
    ),
    (
        CheckpointMismatchError("c1", "abc", "def"),
        ("'c1'", "another graph", "signature def", "abc", "run a message"),
    ),
    (EventLoopError("r7", "its loop is closed"), ("r7", "its loop is closed")),
    (OwnershipLostError("commit", 3, 4), ("commit refused", "epoch 3", "epoch 4")),
    (OwnershipLostError("start", 0, 4), ("start refused", "no epoch", "epoch 4 owns")),
    (OwnershipLostError("start", 0, 0), ("no epoch", "another run owns")),
]
ids = [f"{type(error).__name__}-{at}" for at, (error, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("error", "phrases"), EXAMPLES, ids=ids)
def test_every_error_names_the_facts_and_the_remedy(
    error: WorkflowError, phrases: tuple[str, ...]
) -> None:
    for phrase in phrases:
        assert phrase in str(error)


@pytest.mark.parametrize(("error", "_phrases"), EXAMPLES, ids=ids)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_survives_pickling(
    error: WorkflowError, _phrases: tuple[str, ...], protocol: int
) -> None:
    twin = pickle.loads(pickle.dumps(error, protocol))
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)
    assert twin.args == error.args


@pytest.mark.parametrize(("error", "_phrases"), EXAMPLES, ids=ids)
def test_every_error_can_be_copied(
    error: WorkflowError, _phrases: tuple[str, ...]
) -> None:
    assert str(copy.deepcopy(error)) == str(error)


def test_no_error_speaks_of_an_epoch_that_there_is_not() -> None:
    assert [str(error) for error, _ in EXAMPLES if "epoch 0" in str(error)] == []


def test_every_class_of_error_stands_in_the_examples_and_in_the_drawn_tree() -> None:
    classes = {
        found
        for found in vars(errors).values()
        if inspect.isclass(found) and issubclass(found, WorkflowError)
    }
    assert {type(error) for error, _ in EXAMPLES} == classes - {WorkflowError, RunError}
    assert errors.__doc__ is not None
    for found in classes:
        assert found.__name__ in errors.__doc__


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (DefinitionError, ValueError),
        (MessageTypeError, TypeError),
        (UnknownTargetError, LookupError),
        (IsolationError, TypeError),
    ],
)
def test_errors_are_kin_to_the_builtin_that_people_expect(
    error: type[WorkflowError], builtin: type[Exception]
) -> None:
    assert issubclass(error, builtin)


def test_losing_the_instance_is_not_a_failure_of_the_run() -> None:
    assert not issubclass(OwnershipLostError, RunError)
    assert issubclass(WorkflowBusyError, RunError)
