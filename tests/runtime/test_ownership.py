"""The ownership word: laws that hold for every sequence of claims and releases."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.instrumentation.operations import Owner
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._ownership import NOBODY, Ownership

# Each number is a verb: 0 claims, n > 0 releases epoch n.
verbs = st.lists(st.integers(0, 8), max_size=40)


def test_nobody_owns_an_instance_at_first() -> None:
    ownership = Ownership()
    assert ownership.owner == NOBODY == Owner(0)
    assert not ownership.held
    assert not ownership.owns(Epoch(0))


@given(verbs)
def test_epochs_only_grow_and_are_never_reused(sequence: list[int]) -> None:
    ownership = Ownership()
    claimed: list[int] = []
    for verb in sequence:
        before = ownership.owner.epoch
        if verb == 0:
            claimed.append(ownership.claim(RunId(f"r{len(claimed)}")).epoch)
        else:
            ownership.release(Epoch(verb))
            assert ownership.owner.epoch == before
    assert claimed == list(range(1, len(claimed) + 1))


@given(verbs)
def test_the_newest_claim_owns_until_it_is_released_by_name(
    sequence: list[int],
) -> None:
    ownership = Ownership()
    newest, held = 0, False
    for verb in sequence:
        if verb == 0:
            newest, held = ownership.claim(RunId("r")).epoch, True
        else:
            released = ownership.release(Epoch(verb))
            assert released == (held and verb == newest)
            held = held and not released
        assert ownership.held == held
        for epoch in range(10):
            assert ownership.owns(Epoch(epoch)) == (held and epoch == newest)


@given(verbs)
def test_a_stale_release_changes_nothing(sequence: list[int]) -> None:
    ownership = Ownership()
    for verb in sequence:
        if verb == 0:
            ownership.claim(RunId("r"))
            continue
        before = (ownership.owner, ownership.held)
        if not ownership.owns(Epoch(verb)):
            assert not ownership.release(Epoch(verb))
            assert (ownership.owner, ownership.held) == before


def test_a_claim_replaces_a_live_owner_and_names_the_run() -> None:
    ownership = Ownership()
    first = ownership.claim(RunId("first"))
    second = ownership.claim(RunId("second"))
    assert (first, second) == (Owner(1, "first"), Owner(2, "second"))
    assert not ownership.owns(Epoch(1))
    assert ownership.owns(Epoch(2))
