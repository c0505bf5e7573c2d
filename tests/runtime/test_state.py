"""Committed state: snapshots stay as they are, and commits cost what they write."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime._keys import DELETED
from tenure.runtime._state import CommittedState, StateSnapshot

KEYS = st.sampled_from("abcd")
VALUES = st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2)
commits = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=8)


@given(commits, st.sets(st.integers(0, 8)))
def test_a_snapshot_does_not_change_whatever_is_committed_later(
    plan: list[dict[str, Any]], taken_before: set[int]
) -> None:
    state = CommittedState()
    expected: dict[str, Any] = {}
    kept: list[tuple[StateSnapshot, dict[str, Any]]] = []
    for at, writes in enumerate(plan):
        if at in taken_before:
            kept.append((state.snapshot(), dict(expected)))
        state.commit(writes)
        expected |= writes
    assert dict(state.snapshot()) == expected
    for snapshot, then in kept:
        assert dict(snapshot) == then
        assert snapshot == then


@given(commits)
def test_what_a_stale_run_looks_at_does_not_change_after_a_branch(
    plan: list[dict[str, Any]],
) -> None:
    state = CommittedState()
    state.commit({"a": 0, "b": [1]})
    stale = state.values
    state.branch()
    for writes in plan:
        state.commit(writes)
    assert stale == {"a": 0, "b": [1]}


def test_a_deletion_takes_the_key_away() -> None:
    state = CommittedState()
    state.commit({"a": 1, "b": 2})
    before = state.snapshot()
    state.commit({"a": DELETED, "c": 3, "never": DELETED})
    assert dict(state.snapshot()) == {"b": 2, "c": 3}
    assert dict(before) == {"a": 1, "b": 2}
    assert "a" not in state.snapshot()
    assert len(state.snapshot()) == 2


def test_a_snapshot_hands_out_values_of_its_own() -> None:
    state = CommittedState()
    state.commit({"cart": [["pen"]]})
    snapshot = state.snapshot()
    snapshot["cart"][0].append("changed")
    for value in snapshot.values():
        value.clear()
    assert snapshot["cart"] == [["pen"]]
    assert state.values["cart"] == [["pen"]]


def test_a_snapshot_cannot_be_written_to() -> None:
    snapshot = CommittedState().snapshot()
    with pytest.raises(TypeError):
        snapshot["key"] = 1  # type: ignore[index]
    with pytest.raises(KeyError):
        snapshot["key"]
    assert repr(snapshot) == "StateSnapshot({})"


def test_snapshots_of_one_moment_are_one_object_while_somebody_holds_it() -> None:
    state = CommittedState()
    held = state.snapshot()
    assert state.snapshot() is held
    state.commit({"a": 1})
    assert state.snapshot() is not held


class CountingDict(dict[str, Any]):
    """Counts how often it is read as a whole: the cost that a commit must not have."""

    passes = 0

    def __iter__(self) -> Any:
        type(self).passes += 1
        return super().__iter__()

    def keys(self) -> Any:
        type(self).passes += 1
        return super().keys()


@pytest.fixture
def large() -> CommittedState:
    """A state of many keys that counts whole passes over it."""
    state = CommittedState()
    state._values = CountingDict({f"key{at}": at for at in range(10_000)})
    CountingDict.passes = 0
    return state


def test_a_commit_costs_what_it_writes_and_not_what_there_is(
    large: CommittedState,
) -> None:
    values = large.values
    for at in range(100):
        large.commit({f"key{at}": "changed", "gone": DELETED})
    assert large.values is values, "the state was copied"
    assert CountingDict.passes == 0, "the state was read as a whole"


def test_a_commit_copies_the_state_once_for_each_snapshot_that_is_held(
    large: CommittedState,
) -> None:
    held: list[Mapping[str, Any]] = [large.snapshot()]
    dictionaries: set[int] = set()
    kept_alive: list[Mapping[str, Any]] = [large.values]
    for at in range(10):
        large.commit({"key0": at})
        kept_alive.append(large.values)
        dictionaries.add(id(large.values))
    assert len(dictionaries) == 1
    assert held[0]["key0"] == 0
    held.append(large.snapshot())
    large.commit({"key0": "after"})
    assert id(large.values) not in dictionaries


def test_a_snapshot_that_nobody_holds_costs_nothing(large: CommittedState) -> None:
    values = large.values
    assert large.snapshot()["key1"] == 1
    large.commit({"key1": "changed"})
    assert large.values is values


def test_an_empty_commit_leaves_snapshots_and_state_alone() -> None:
    state = CommittedState()
    held, values = state.snapshot(), state.values
    state.commit({})
    assert state.values is values
    assert state.snapshot() is held
