"""Staged writes: laws of pages and ledgers, whatever is staged and by whom."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.runtime import ReducerError, WriteConflictError, append, last
from tenure.runtime._epoch import Epoch
from tenure.runtime._keys import DELETED, MISSING, Reducer
from tenure.runtime._ledger import Ledger, Page

KEYS = st.sampled_from(["a", "b", "c"])
Write = tuple[str, str, int]  # verb, key, value


def add(so_far: int | None, staged: int) -> int:
    return (so_far or 0) + staged


def collect(so_far: list[int] | None, staged: int) -> list[int]:
    """A fold whose parts are of another type than its result."""
    return [*(so_far or []), staged]


def collect_in_place(so_far: list[int] | None, staged: int) -> list[int]:
    so_far = [] if so_far is None else so_far
    so_far.append(staged)
    return so_far


REDUCERS: dict[str, Reducer | None] = {"set": None, "add": add, "last": last}
writes = st.lists(
    st.tuples(st.sampled_from([*REDUCERS, "delete"]), KEYS, st.integers(0, 9)),
    max_size=6,
)
executors = st.lists(writes, min_size=1, max_size=4)
states = st.dictionaries(KEYS, st.integers(0, 9))


def stage(page: Page, write: Write) -> None:
    verb, key, value = write
    if verb == "delete":
        page.stage(key, DELETED)
    else:
        page.stage(key, value, REDUCERS[verb])


def fill(ledger: Ledger, base: dict[str, Any], plan: list[list[Write]]) -> list[Page]:
    """Open a page for each executor and stage what is planned for it."""
    pages = [ledger.page(f"e{at}", base) for at in range(len(plan))]
    for page, planned in zip(pages, plan, strict=True):
        for write in planned:
            stage(page, write)
    return pages


def reducer_declared_by(planned: list[Write], key: str) -> object:
    """Return what an executor declares for a key: nothing, one reducer, or "plain"."""
    declared: object = MISSING
    for verb, name, _ in planned:
        if name != key:
            continue
        reducer = REDUCERS.get(verb)
        if reducer is None:
            declared = "plain"
        elif declared is MISSING or declared is reducer:
            declared = reducer
        else:
            declared = "plain"  # it has replaced the committed value itself
    return declared


@given(executors, states)
def test_siblings_conflict_exactly_if_they_declare_no_common_reducer(
    plan: list[list[Write]], base: dict[str, Any]
) -> None:
    ledger = Ledger(Epoch(1))
    fill(ledger, base, plan)
    conflict = False
    for key in "abc":
        declared = [reducer_declared_by(planned, key) for planned in plan]
        declared = [one for one in declared if one is not MISSING]
        conflict |= len(declared) > 1 and (
            "plain" in declared or any(one is not declared[0] for one in declared)
        )
    try:
        ledger.merge(base)
    except WriteConflictError:
        assert conflict
    else:
        assert not conflict


@given(executors, states)
def test_reducers_are_applied_in_graph_order(
    plan: list[list[Write]], base: dict[str, Any]
) -> None:
    only_sums = [[("add", key, value) for _, key, value in one] for one in plan]
    ledger = Ledger(Epoch(1))
    pages = [ledger.page(f"e{at}", base) for at in range(len(plan))]
    # Scheduling: the last executor stages first. Its page still comes last.
    for page, planned in reversed(list(zip(pages, only_sums, strict=True))):
        for _, key, value in planned:
            page.stage(key, value, collect)
    lists = {key: [value] for key, value in base.items()}
    expected: dict[str, list[int]] = {}
    for planned in only_sums:
        for _, key, value in planned:
            expected.setdefault(key, list(lists.get(key, []))).append(value)
    assert ledger.merge(lists) == expected


@given(writes, states)
def test_one_executor_reads_what_a_commit_would_make_of_its_own_writes(
    planned: list[Write], base: dict[str, Any]
) -> None:
    ledger = Ledger(Epoch(1))
    [page] = fill(ledger, base, [planned])
    seen = {key: page.read(key) for key in "abc"}
    after = base | ledger.merge(base)
    for key, value in seen.items():
        committed = after.get(key, MISSING)
        assert value == (MISSING if committed is DELETED else committed)


@given(st.lists(st.integers(), max_size=5), st.lists(st.integers(), max_size=5))
def test_staging_twice_is_what_two_siblings_would_have_staged(
    first: list[int], second: list[int]
) -> None:
    alone, together = Ledger(Epoch(1)), Ledger(Epoch(1))
    one = alone.page("one", {})
    left, right = together.page("left", {}), together.page("right", {})
    for value in first:
        one.stage("key", value, collect)
        left.stage("key", value, collect)
    for value in second:
        one.stage("key", value, collect)
        right.stage("key", value, collect)
    assert alone.merge({"key": [0]}) == together.merge({"key": [0]})


@pytest.mark.parametrize("reducer", [operator.iadd, collect_in_place])
@pytest.mark.parametrize("reads", [0, 3])
@pytest.mark.parametrize("siblings", [1, 2])
def test_a_reducer_that_works_in_place_changes_no_committed_value(
    reducer: Reducer, reads: int, siblings: int
) -> None:
    staged: Any = [2] if reducer is operator.iadd else 2
    base = {"key": [1]}
    ledger = Ledger(Epoch(1))
    for at in range(siblings):
        page = ledger.page(f"e{at}", base)
        page.stage("key", staged, reducer)
        for _ in range(reads):
            assert page.read("key") == [1, 2]
    assert base == {"key": [1]}
    assert ledger.merge(base) == {"key": [1] + [2] * siblings}
    assert base == {"key": [1]}


@pytest.mark.parametrize("reads", [0, 3])
def test_a_reducer_that_changes_what_was_staged_may_be_asked_again_and_again(
    reads: int,
) -> None:
    def newest_first(so_far: list[int] | None, staged: list[int]) -> list[int]:
        staged.extend(so_far or [])
        return staged

    ledger = Ledger(Epoch(1))
    page = ledger.page("x", {"key": [1]})
    page.stage("key", [2], newest_first)
    for _ in range(reads):
        assert page.read("key") == [2, 1]
    assert ledger.merge({"key": [1]}) == {"key": [2, 1]}


def test_a_conflict_names_the_key_and_both_executors_in_graph_order() -> None:
    ledger = Ledger(Epoch(1))
    pages = [ledger.page(name, {}) for name in ("x", "y", "z")]
    pages[2].stage("key", 1)
    pages[1].stage("key", 2)
    with pytest.raises(WriteConflictError) as caught:
        ledger.merge({})
    assert (caught.value.key, caught.value.first, caught.value.second) == (
        "key",
        "y",
        "z",
    )
    assert ledger.discard(Epoch(1)) == {"key": 1}


@pytest.mark.parametrize(
    ("first", "second"),
    [(None, None), (None, append), (append, None), (append, last)],
)
def test_a_write_is_never_lost_to_a_sibling_that_joins_otherwise(
    first: Reducer | None, second: Reducer | None
) -> None:
    ledger = Ledger(Epoch(1))
    ledger.page("x", {}).stage("key", [1], first)
    ledger.page("y", {}).stage("key", [2], second)
    with pytest.raises(WriteConflictError):
        ledger.merge({})


def test_two_deletions_conflict_and_a_deletion_conflicts_with_a_write() -> None:
    for value in (DELETED, 1):
        ledger = Ledger(Epoch(1))
        ledger.page("x", {"key": 0}).stage("key", DELETED)
        ledger.page("y", {"key": 0}).stage("key", value)
        with pytest.raises(WriteConflictError):
            ledger.merge({"key": 0})


def test_what_is_joined_to_a_plain_write_replaces_the_committed_value() -> None:
    ledger = Ledger(Epoch(1))
    page = ledger.page("x", {"key": [1], "gone": [1]})
    page.stage("key", [2])
    page.stage("key", [3], append)
    page.stage("gone", DELETED)
    page.stage("gone", [4], append)
    assert page.read("key") == [2, 3]
    assert ledger.merge({"key": [1], "gone": [1]}) == {"key": [2, 3], "gone": [4]}


def test_a_plain_write_replaces_what_was_joined_before() -> None:
    ledger = Ledger(Epoch(1))
    page = ledger.page("x", {"key": [1]})
    page.stage("key", [2], append)
    page.stage("key", [3])
    assert page.read("key") == [3]
    assert ledger.merge({"key": [1]}) == {"key": [3]}


def test_changing_the_reducer_on_the_way_loses_nothing() -> None:
    ledger = Ledger(Epoch(1))
    page = ledger.page("x", {"key": [1]})
    page.stage("key", [2], append)
    page.stage("key", 3, collect)
    assert page.read("key") == [1, 2, 3]
    assert ledger.merge({"key": [1]}) == {"key": [1, 2, 3]}


@pytest.mark.parametrize("siblings", [1, 2])
def test_a_reducer_that_fails_is_named_with_its_key_and_executor(siblings: int) -> None:
    ledger = Ledger(Epoch(1))
    for at in range(siblings - 1):
        ledger.page(f"fine{at}", {}).stage("key", [1], append)
    page = ledger.page("x", {})
    page.stage("key", 5, append)
    with pytest.raises(ReducerError) as caught:
        ledger.merge({})
    assert (caught.value.key, caught.value.executor) == ("key", "x")
    assert isinstance(caught.value.__cause__, TypeError)
    assert ledger.discard(Epoch(1)) == {"key": 1}


@given(executors, st.integers(0, 5).filter(lambda epoch: epoch != 3))
def test_a_discard_by_another_epoch_changes_nothing(
    plan: list[list[Write]], other: int
) -> None:
    ledger = Ledger(Epoch(3))
    pages = fill(ledger, {}, plan)
    before = ledger.staged()
    assert ledger.discard(Epoch(other)) == {}
    assert ledger.staged() == before
    assert all(page.open for page in pages)


@given(executors)
def test_a_discard_by_the_owner_names_what_it_threw_away_and_happens_once(
    plan: list[list[Write]],
) -> None:
    ledger = Ledger(Epoch(3))
    pages = fill(ledger, {}, plan)
    keys = {key for planned in plan for _, key, _ in planned}
    assert ledger.discard(Epoch(3)) == dict.fromkeys(keys, 3)
    assert ledger.discard(Epoch(3)) == {}
    assert ledger.staged() == {}
    assert ledger.merge({}) == {}
    assert not any(page.open for page in pages)


@given(executors)
def test_a_closed_ledger_stays_closed(plan: list[list[Write]]) -> None:
    ledger = Ledger(Epoch(3))
    fill(ledger, {}, plan)
    keys = {key for planned in plan for _, key, _ in planned}
    assert ledger.close() == dict.fromkeys(keys, 3)
    assert ledger.closed
    assert ledger.close() == {}
    assert not ledger.page("late", {}).open
    ledger.merge({})
    assert ledger.closed
    assert not ledger.page("later", {}).open


@given(executors, states)
def test_a_merge_begins_the_next_superstep_with_nothing_staged(
    plan: list[list[Write]], base: dict[str, Any]
) -> None:
    ledger = Ledger(Epoch(1))
    plan = [[("add", key, value) for _, key, value in one] for one in plan]
    pages = fill(ledger, base, plan)
    ledger.merge(base)
    assert ledger.staged() == {}
    assert not any(page.open for page in pages)
    assert ledger.page("next", base).open


def test_a_deleted_key_reads_as_missing_and_a_missing_one_as_well() -> None:
    page = Ledger(Epoch(1)).page("x", {"key": 1})
    assert page.read("key") == 1
    page.stage("key", DELETED)
    assert page.read("key") is MISSING
    assert page.read("other") is MISSING
