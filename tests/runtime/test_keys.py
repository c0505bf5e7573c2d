"""State keys and the reducers that come with the engine."""

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import StateKey, append, last
from tenure.runtime._keys import DELETED, MISSING

lists = st.lists(st.integers())


@given(lists, lists)
def test_append_joins_in_order_and_leaves_both_sides_alone(
    committed: list[int], staged: list[int]
) -> None:
    before = (list(committed), list(staged))
    joined = append(committed, staged)
    assert joined == committed + staged
    assert (committed, staged) == before
    assert joined is not committed
    assert joined is not staged


@given(lists)
def test_append_starts_from_nothing(staged: list[int]) -> None:
    assert append(None, staged) == staged


@given(st.lists(lists, min_size=1))
def test_append_does_not_mind_how_the_parts_are_grouped(parts: list[list[int]]) -> None:
    one_by_one: list[int] | None = None
    for part in parts:
        one_by_one = append(one_by_one, part)
    rest: list[int] = []
    for part in parts[1:]:
        rest = append(rest, part)
    assert append(parts[0], rest) == one_by_one


@given(st.integers(), st.integers())
def test_last_keeps_what_was_staged_last(committed: int, staged: int) -> None:
    assert last(committed, staged) == staged


def test_a_key_is_a_value_that_can_be_shared_hashed_and_pickled() -> None:
    key = StateKey[list[str]]("history", reduce=append)
    assert key == StateKey("history", reduce=append)
    assert key != StateKey("history")
    assert {key: 1}[StateKey("history", reduce=append)] == 1
    assert pickle.loads(pickle.dumps(key)) == key


def test_the_marks_of_a_ledger_keep_their_identity_when_copied() -> None:
    assert copy.deepcopy(DELETED) is DELETED
    assert copy.deepcopy(MISSING) is MISSING
    assert DELETED is not MISSING
