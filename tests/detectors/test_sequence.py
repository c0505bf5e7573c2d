"""Positions of one process: received once, gaps known, memory bounded."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.detectors._sequence import MAX_INTERVALS, Sequence


@given(st.lists(st.integers(1, 9), max_size=24) | st.permutations(range(1, 10)))
def test_it_agrees_with_a_plain_set_in_any_order(positions):
    sequence, seen = Sequence(), set()
    for seq in positions:
        assert sequence.take(seq) is (seq not in seen)
        seen.add(seq)

    newest = max(seen, default=0)
    missing = {seq for low, high in sequence.gaps() for seq in range(low, high + 1)}
    assert missing == set(range(1, newest + 1)) - seen
    assert sequence.complete is (not missing)


@given(st.sets(st.integers(1, 30), min_size=1), st.integers(1, 30), st.integers(1, 30))
def test_gaps_between_two_positions_are_those_of_that_stretch(seen, one, other):
    first, last = sorted((one, other))
    sequence = Sequence()
    for seq in seen:
        sequence.take(seq)

    missing = {
        seq for low, high in sequence.gaps(first, last) for seq in range(low, high + 1)
    }
    assert missing == set(range(first, last + 1)) - seen


def test_nothing_received_is_nothing_missing():
    assert Sequence().complete
    assert Sequence().gaps() == []


def test_a_first_position_above_one_leaves_a_gap_before_it():
    sequence = Sequence()
    sequence.take(4)

    assert sequence.gaps() == [(1, 3)]


def test_beyond_its_bound_it_forgets_the_oldest_gaps_and_says_so():
    sequence = Sequence()
    for seq in range(1, 4 * MAX_INTERVALS, 2):
        sequence.take(seq)

    assert len(sequence.gaps()) <= MAX_INTERVALS + 1
    assert sequence.blurred_at(1)
    assert not sequence.blurred_at(4 * MAX_INTERVALS - 10)
    assert not sequence.complete


def test_its_bound_holds_for_positions_that_come_backwards():
    sequence = Sequence()
    for seq in range(6 * MAX_INTERVALS, 0, -2):
        sequence.take(seq)

    assert len(sequence.gaps()) <= MAX_INTERVALS + 1
    assert not sequence.complete
