"""Laws that every store keeps, asked without an engine."""

import asyncio
import itertools
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.runtime import (
    Checkpoint,
    CheckpointNotFoundError,
    Claimed,
    Epoch,
    Held,
    MemoryStore,
    OwnershipLostError,
    PendingRequest,
    RunId,
    SqliteStore,
    StateTypeError,
    Store,
)
from tenure.runtime._checkpoint import Standing

KINDS = ["memory", "sqlite"]
NAME = "press/default"


@pytest.fixture
def store(any_store: Store) -> Store:
    return any_store


class Tree:
    """Makes checkpoints, and knows the state that each of them must have."""

    def __init__(self) -> None:
        self.states: dict[str | None, dict[str, Any]] = {None: {}}
        self.numbers = itertools.count(1)

    def grow(
        self,
        claimed: Claimed,
        run_id: str,
        parent: str | None,
        position: int,
        writes: dict[str, Any] | None = None,
        deleted: tuple[str, ...] = (),
        **standing: Any,
    ) -> tuple[Checkpoint, dict[str, Any]]:
        writes = writes or {}
        state = {**self.states[parent], **writes}
        for key in deleted:
            state.pop(key, None)
        name = f"c{next(self.numbers)}"
        self.states[name] = state
        checkpoint = Checkpoint(
            checkpoint_id=name,
            parent_id=parent,
            workflow="press",
            instance="default",
            signature="s",
            run_id=RunId(run_id),
            epoch=claimed.epoch,
            position=position,
            superstep=1,
            kind="superstep",
            writes=writes,
            deleted=list(deleted),
            standing=Standing(**standing),
        )
        return checkpoint, state


async def claimed(store: Store, run_id: str, **how: Any) -> Claimed:
    answer = await store.claim(NAME, RunId(run_id), **how)
    assert isinstance(answer, Claimed)
    return answer


async def test_epochs_count_from_one_and_every_claim_takes_over(store: Store) -> None:
    for number in range(1, 5):
        one = await claimed(store, f"r{number}", holder=f"h{number}")
        assert one == Claimed(Epoch(number), 0, None)


async def test_instances_know_nothing_of_each_other(store: Store) -> None:
    tree = Tree()
    one = await claimed(store, "a")
    await store.commit(NAME, *tree.grow(one, "a", None, 1, {"k": 1}))
    for other in ("press/Default", "press/default ", "pres/sdefault", "x" * 500):
        answer = await store.claim(other, RunId("b"))
        assert answer == Claimed(Epoch(1), 0, None)
        assert await store.history(other) == []
        with pytest.raises(CheckpointNotFoundError):
            await store.load(other, "c1")


async def test_a_claim_learns_how_far_the_instance_has_come(store: Store) -> None:
    tree = Tree()
    one = await claimed(store, "a")
    checkpoint, state = tree.grow(one, "a", None, 1, {"k": 1})
    await store.commit(NAME, checkpoint, state)
    assert await claimed(store, "b") == Claimed(Epoch(2), 1, checkpoint.checkpoint_id)


@pytest.mark.parametrize("off", ["epoch", "run", "position before", "position after"])
async def test_a_commit_is_refused_unless_epoch_run_and_position_are_the_expected(
    store: Store, off: str
) -> None:
    tree = Tree()
    first = await claimed(store, "a")
    await store.commit(NAME, *tree.grow(first, "a", None, 1, {"k": 1}))
    second = await claimed(store, "b")
    run, epoch, position = "b", second, 2
    if off == "epoch":
        epoch = first
    elif off == "run":
        run = "a"
    else:
        position = {"position before": 1, "position after": 3}[off]
    with pytest.raises(OwnershipLostError) as caught:
        await store.commit(NAME, *tree.grow(epoch, run, "c1", position, {"k": 2}))
    assert caught.value.owner == 2
    assert [one.checkpoint_id for one in await store.history(NAME)] == ["c1"]
    assert (await store.load(NAME))[1] == {"k": 1}
    # Whoever is the owner goes on as if nothing had been.
    await store.commit(NAME, *tree.grow(second, "b", "c1", 2, {"k": 3}))
    assert (await store.load(NAME))[1] == {"k": 3}


async def test_a_commit_to_an_instance_that_nobody_claimed_is_refused(
    store: Store,
) -> None:
    stray = Claimed(Epoch(1), 0, None)
    with pytest.raises(OwnershipLostError):
        await store.commit(NAME, *Tree().grow(stray, "a", None, 1))
    assert await store.history(NAME) == []
    assert (await claimed(store, "b")).epoch == 1


async def test_of_many_who_expect_one_epoch_one_wins(store: Store) -> None:
    await claimed(store, "dead")

    async def contend(number: int) -> bool:
        try:
            await claimed(store, f"r{number}", expected=Epoch(1))
        except OwnershipLostError:
            return False
        return True

    assert sum(await asyncio.gather(*map(contend, range(20)))) == 1


async def test_a_claim_of_a_new_instance_expects_epoch_zero(store: Store) -> None:
    assert (await claimed(store, "a", expected=Epoch(0))).epoch == 1
    with pytest.raises(OwnershipLostError):
        await claimed(store, "b", expected=Epoch(0))
    assert (await claimed(store, "c")).epoch == 2


# Politeness.


async def test_who_is_polite_leaves_a_live_owner_alone(store: Store) -> None:
    owner = await claimed(store, "a", holder="one")
    answer = await store.claim(NAME, RunId("b"), holder="two", takeover=False)
    assert isinstance(answer, Held)
    assert (answer.run_id, answer.epoch) == ("a", 1)
    assert 0 < answer.seconds <= store.lease
    # Nothing has changed: the owner goes on.
    await store.commit(NAME, *Tree().grow(owner, "a", None, 1))


async def test_a_holder_replaces_its_own_runs(store: Store) -> None:
    await claimed(store, "a", holder="one")
    assert (await claimed(store, "b", holder="one", takeover=False)).epoch == 2


async def test_a_claim_that_was_overtaken_by_its_holders_next_is_refused(
    store: Store,
) -> None:
    await claimed(store, "a", holder="one", rank=1)
    owner = await claimed(store, "c", holder="one", rank=3)
    with pytest.raises(OwnershipLostError):
        await claimed(store, "b", holder="one", rank=2)
    await store.commit(NAME, *Tree().grow(owner, "c", None, 1))
    # Ranks of another holder say nothing.
    assert (await claimed(store, "d", holder="two", rank=1)).epoch == 3
    assert (await claimed(store, "e", holder="one", rank=2)).epoch == 4


@pytest.mark.parametrize("how", ["final commit", "extend"])
async def test_an_instance_that_was_given_back_is_free(store: Store, how: str) -> None:
    owner = await claimed(store, "a", holder="one")
    if how == "extend":
        assert await store.extend(NAME, RunId("a"), owner.epoch, final=True)
    else:
        await store.commit(NAME, *Tree().grow(owner, "a", None, 1), final=True)
    assert (await claimed(store, "b", holder="two", takeover=False)).epoch == 2


@pytest.mark.parametrize("how", ["final commit", "extend"])
async def test_a_heartbeat_that_comes_late_does_not_take_back_what_was_given_back(
    store: Store, how: str
) -> None:
    owner = await claimed(store, "a", holder="one")
    if how == "extend":
        assert await store.extend(NAME, RunId("a"), owner.epoch, final=True)
    else:
        await store.commit(NAME, *Tree().grow(owner, "a", None, 1), final=True)
    # It is still the newest owner, but it holds nothing any more.
    assert await store.extend(NAME, RunId("a"), owner.epoch)
    assert (await claimed(store, "b", holder="two", takeover=False)).epoch == 2


async def test_a_lease_that_ran_out_frees_the_instance_and_proves_nothing(
    tmp_path: Path,
) -> None:
    for store in (MemoryStore(lease=0.0), SqliteStore(tmp_path, lease=0.0)):
        owner = await claimed(store, "a", holder="one")
        # It is late, but nobody has come: its commit counts.
        await store.commit(NAME, *Tree().grow(owner, "a", None, 1))
        assert (await claimed(store, "b", holder="two", takeover=False)).epoch == 2
        with pytest.raises(OwnershipLostError):
            await store.commit(NAME, *Tree().grow(owner, "a", None, 2))


async def test_only_the_owner_can_extend_or_give_back(store: Store) -> None:
    first = await claimed(store, "a", holder="one")
    assert await store.extend(NAME, RunId("a"), first.epoch)
    second = await claimed(store, "b", holder="two")
    for final in (False, True):
        assert not await store.extend(NAME, RunId("a"), first.epoch, final=final)
        assert not await store.extend(NAME, RunId("a"), second.epoch, final=final)
        assert not await store.extend(NAME, RunId("b"), first.epoch, final=final)
    assert isinstance(
        await store.claim(NAME, RunId("c"), holder="three", takeover=False), Held
    )
    assert not await store.extend("press/other", RunId("b"), second.epoch)


# What is kept.


async def test_a_checkpoint_comes_back_with_all_that_it_holds(store: Store) -> None:
    one = await claimed(store, "a")
    request = PendingRequest("q1", "ask", {"question": (1, 2)}, bool, "r0")
    checkpoint, state = Tree().grow(
        one,
        "a",
        None,
        1,
        {"k": {"deep": [1, (2, 3)]}},
        messages=[("b", "hello", "a"), ("c", [1, 2], "r0"), ("b", {"x"}, "a")],
        answers=[("ask", "q0", (True, None))],
        fan_ins=[(0, "b", 1, "a"), (0, "b", 2, "r0"), (1, "c", "x", "a")],
        requests=(request,),
        snapshots={"b": {"seen": 3}, "c": None},
    )
    await store.commit(NAME, checkpoint, state)
    loaded, whole = await store.load(NAME, "c1")
    assert whole == state
    for field in ("checkpoint_id", "parent_id", "run_id", "epoch", "position", "kind"):
        assert getattr(loaded, field) == getattr(checkpoint, field)
    assert loaded.writes == checkpoint.writes
    standing, before = loaded.standing, checkpoint.standing
    assert list(standing.messages) == list(before.messages)
    assert list(standing.answers) == list(before.answers)
    assert list(standing.fan_ins) == list(before.fan_ins)
    assert list(standing.requests) == [request]
    assert dict(standing.snapshots) == dict(before.snapshots)


async def test_nobody_can_change_what_is_kept(store: Store) -> None:
    one = await claimed(store, "a")
    message, snapshot, question = ["m"], {"seen": []}, {"q": []}
    checkpoint, state = Tree().grow(
        one,
        "a",
        None,
        1,
        {"history": [{"by": ["a"]}]},
        messages=[("b", message, "a")],
        requests=(PendingRequest("q1", "ask", question, bool),),
        snapshots={"b": snapshot},
    )
    await store.commit(NAME, checkpoint, state)
    for _ in range(2):
        message.append("later")
        snapshot["seen"].append("later")
        question["q"].append("later")
        loaded, whole = await store.load(NAME, "c1")
        assert whole == loaded.writes == {"history": [{"by": ["a"]}]}
        whole["history"][0]["by"].append("later")
        loaded.writes["history"].append("later")
        assert list(loaded.standing.messages) == [("b", ["m"], "a")]
        assert loaded.standing.snapshots == {"b": {"seen": []}}
        assert loaded.standing.requests[0].data == {"q": []}
        message, snapshot = (
            loaded.standing.messages[0][1],
            loaded.standing.snapshots["b"],
        )
        question = loaded.standing.requests[0].data


STEADY = {"steady": "x" * 5_000}
"""Beside it changes are small, so that few checkpoints hold the whole state."""

steps = st.lists(
    st.tuples(
        st.integers(0, 3),  # how far back the parent is; 0 is the head
        st.dictionaries(st.sampled_from("abcdef"), st.integers(), max_size=3),
        st.lists(st.sampled_from("abcdef"), max_size=2),
    ),
    max_size=130,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=steps, claims=st.sets(st.integers(0, 130)))
def test_every_checkpoint_has_its_whole_state_whatever_was_deleted_or_gone_back_to(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[int, dict[str, int], list[str]]],
    claims: set[int],
) -> None:
    async def go() -> None:
        make: dict[str, Callable[[], Store]] = {
            "memory": lambda: MemoryStore(keep=None),
            "sqlite": lambda: SqliteStore(tmp_path_factory.mktemp("s")),
        }
        store, tree = make[kind](), Tree()
        line: list[str | None] = [None]
        owner, run = await claimed(store, "r"), "r"
        for position, (back, writes, deleted) in enumerate(steps, 1):
            if position in claims:
                run = f"r{position}"
                owner = await claimed(store, run)
                assert owner.head == line[-1]
                assert owner.position == position - 1
            parent = line[-1 - min(back, len(line) - 1)]
            gone = tuple(key for key in deleted if key not in writes)
            if position == 1:
                writes = {**writes, **STEADY}
            one, state = tree.grow(owner, run, parent, position, writes, gone)
            await store.commit(NAME, one, state)
            line.append(one.checkpoint_id)
        for name in line[1:]:
            assert name is not None
            assert (await store.load(NAME, name))[1] == tree.states[name]
        history = await store.history(NAME)
        assert [one.checkpoint_id for one in history] == line[:0:-1]
        assert [one.position for one in history] == list(range(len(steps), 0, -1))
        if isinstance(store, SqliteStore):
            await store.aclose()

    asyncio.run(go())


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    assert await store.history(NAME) == []
    for wanted in (None, "c1"):
        with pytest.raises(CheckpointNotFoundError):
            await store.load(NAME, wanted)
    await claimed(store, "a")
    with pytest.raises(CheckpointNotFoundError):
        await store.load(NAME)


async def test_a_value_that_cannot_be_kept_is_refused_before_and_keeps_nothing(
    store: Store,
) -> None:
    with pytest.raises(StateTypeError, match="message of 'a'"):
        store.check({"a": [threading.Lock()]}, "message of 'a'")
    store.check({"a": [1, (2, {3})]}, "message of 'a'")


async def test_two_stores_are_told_apart_and_one_is_itself(tmp_path: Path) -> None:
    assert MemoryStore().id != MemoryStore().id
    one, same = SqliteStore(tmp_path / "x"), SqliteStore(tmp_path / "x")
    other = SqliteStore(tmp_path / "y")
    assert one.id == same.id != other.id


@pytest.mark.parametrize(
    "name", ["9.r", "1.other", "1", ".", "one.r", "²", f"{'9' * 40}.r", "٣.r", "-1.r"]
)
async def test_a_checkpoint_is_found_whatever_its_id_looks_like(
    store: Store, name: str
) -> None:
    tree = Tree()
    one = await claimed(store, "a")
    checkpoint, state = tree.grow(one, "a", None, 1, {"k": 1})
    named = replace(checkpoint, checkpoint_id=name)
    await store.commit(NAME, named, state)
    child, _ = tree.grow(one, "a", checkpoint.checkpoint_id, 2, {"j": 2})
    await store.commit(NAME, replace(child, parent_id=name), {**state, "j": 2})
    assert (await store.load(NAME, name))[1] == {"k": 1}
    assert (await store.load(NAME))[1] == {"k": 1, "j": 2}
    with pytest.raises(CheckpointNotFoundError):
        await store.load(NAME, f"{name}.")


async def test_threads_that_share_a_store_never_get_one_epoch_twice(
    store: Store,
) -> None:
    epochs: list[int] = []
    begun = threading.Barrier(4)

    async def claims() -> None:
        count = 3000 if isinstance(store, MemoryStore) else 100
        epochs.extend([(await claimed(store, "run")).epoch for _ in range(count)])

    def work() -> None:
        begun.wait(20)
        asyncio.run(claims())

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))
    finally:
        sys.setswitchinterval(before)
    assert sorted(epochs) == list(range(1, len(epochs) + 1))


# What goes: old checkpoints.


async def grown(store: Store, tree: Tree, count: int) -> Claimed:
    """Commit a line of `count` checkpoints, and return the claim of its run `a`."""
    owner = await claimed(store, "a")
    parent = None
    for position in range(1, count + 1):
        writes: dict[str, Any] = {"abcdefg"[position % 7]: position}
        if position == 1:
            writes |= STEADY
        gone = ("abcdefg"[(position + 3) % 7],)
        one, state = tree.grow(owner, "a", parent, position, writes, gone)
        await store.commit(NAME, one, state)
        parent = one.checkpoint_id
    return owner


async def names(store: Store) -> list[str]:
    return [one.checkpoint_id for one in await store.history(NAME)]


@pytest.mark.parametrize("keep", [1, 2, 7, 49, 50, 51, 52, 119, 120, 121])
async def test_pruning_keeps_the_newest_and_all_that_they_hold(
    store: Store, keep: int
) -> None:
    tree = Tree()
    await grown(store, tree, 120)
    before = {name: await store.load(NAME, name) for name in await names(store)}
    assert await store.prune(NAME, keep) == max(0, 120 - keep)
    kept = [f"c{number}" for number in range(120, max(0, 120 - keep), -1)]
    assert await names(store) == kept
    for name in kept:
        assert await store.load(NAME, name) == before[name]
    assert await store.load(NAME) == before["c120"]
    for name in set(before) - set(kept):
        with pytest.raises(CheckpointNotFoundError, match="may have been pruned"):
            await store.load(NAME, name)
    assert await store.prune(NAME, keep) == 0


async def test_pruning_what_has_nothing_to_prune_does_nothing(store: Store) -> None:
    assert await store.prune(NAME, 1) == 0
    assert (await claimed(store, "a")).epoch == 1
    assert await store.prune(NAME, 1) == 0
    assert await names(store) == []


@pytest.mark.parametrize("keep", [0, -1])
async def test_the_newest_checkpoint_is_never_pruned(store: Store, keep: int) -> None:
    await grown(store, Tree(), 2)
    with pytest.raises(ValueError, match="always kept"):
        await store.prune(NAME, keep)
    with pytest.raises(ValueError, match="always kept"):
        MemoryStore(keep=keep)
    assert await names(store) == ["c2", "c1"]


@pytest.mark.parametrize("keep", [1, 3])
async def test_an_owner_goes_on_whoever_prunes_meanwhile(
    store: Store, keep: int
) -> None:
    tree = Tree()
    owner = await grown(store, tree, 60)
    parent = "c60"
    for position in range(61, 200):
        if position % 3 == 0:
            await store.prune(NAME, keep)
        one, state = tree.grow(owner, "a", parent, position, {"k": position})
        await store.commit(NAME, one, state)
        parent = one.checkpoint_id
        assert (await store.load(NAME))[1] == tree.states[parent]
    assert await claimed(store, "b") == Claimed(Epoch(2), 199, parent)


async def test_a_run_may_go_back_to_what_is_left_and_its_branch_is_pruned_too(
    store: Store,
) -> None:
    tree = Tree()
    owner = await grown(store, tree, 10)
    await store.prune(NAME, 4)
    one, state = tree.grow(owner, "a", "c7", 11, {"back": 1})
    await store.commit(NAME, one, state)
    other, state = tree.grow(owner, "a", "c11", 12, {"back": 2})
    await store.commit(NAME, other, state)
    assert await store.prune(NAME, 2) == 4
    for name in ("c11", "c12"):
        assert (await store.load(NAME, name))[1] == tree.states[name]
    # Of its parent only the name is left.
    assert (await store.load(NAME, "c11"))[0].parent_id == "c7"


async def test_a_store_that_is_to_keep_some_keeps_those_and_never_many_more(
    tmp_path: Path,
) -> None:
    for keep in (1, 30):
        for store in (MemoryStore(keep=keep), SqliteStore(tmp_path, keep=keep)):
            tree = Tree()
            owner = await claimed(store, "a")
            parent, most = None, 0
            for position in range(1, 400):
                one, state = tree.grow(owner, "a", parent, position, {"k": position})
                await store.commit(NAME, one, state)
                parent = one.checkpoint_id
                kept = await names(store)
                most = max(most, len(kept))
                assert kept[0] == parent
                assert len(kept) >= min(keep, position)
            assert most <= keep + 102
            for name in await names(store):
                assert (await store.load(NAME, name))[1] == tree.states[name]
            if isinstance(store, SqliteStore):
                await store.aclose()
                store.path_of(NAME).unlink()


verbs = st.lists(
    st.one_of(
        st.tuples(
            st.just("commit"),
            st.sampled_from([0, 0, 0, 0, 1, 5]),  # how far back the parent is
            st.dictionaries(st.sampled_from("abcdef"), st.integers(), max_size=3),
            st.lists(st.sampled_from("abcdef"), max_size=2),
        ),
        st.tuples(st.just("run"), st.integers(10, 60)),
        st.tuples(st.just("claim")),
        st.tuples(st.just("prune"), st.integers(1, 20)),
        st.sampled_from([("erase",), ("claim",), ("claim",)]),
    ),
    min_size=10,
    max_size=40,
)


class Twin:
    """A store and what it must hold: nothing goes but what was pruned or erased."""

    def __init__(self, store: Store) -> None:
        self.store, self.tree = store, Tree()
        self.line: list[tuple[str, tuple[Checkpoint, dict[str, Any]]]] = []
        self.gone: set[str] = set()
        self.position, self.epoch = 0, 0

    async def claim(self) -> None:
        self.epoch += 1
        self.owner = await claimed(self.store, f"r{self.epoch}")
        head = self.line[-1][0] if self.line else None
        assert self.owner == Claimed(Epoch(self.epoch), self.position, head)

    async def commit(self, back: int, writes: Any, deleted: Any) -> None:
        parent = None
        if self.line:
            parent = self.line[-1 - min(back, len(self.line) - 1)][0]
        self.position += 1
        gone = tuple(key for key in deleted if key not in writes)
        if not self.line:
            writes = {**writes, **STEADY}
        one, state = self.tree.grow(
            self.owner,
            f"r{self.epoch}",
            parent,
            self.position,
            writes,
            gone,
            messages=[("b", self.position, "r1")],
        )
        await self.store.commit(NAME, one, state)
        self.line.append((one.checkpoint_id, await self.store.load(NAME)))
        assert self.line[-1][1][1] == state

    async def run(self, count: int) -> None:
        for number in range(count):
            key, gone = "abcdef"[number % 6], "abcdef"[number * 5 % 6]
            await self.commit(0, {key: number}, (gone,))

    async def prune(self, keep: int) -> None:
        self.gone |= {name for name, _ in self.line[:-keep]}
        self.line = self.line[-keep:]
        await self.store.prune(NAME, keep)

    async def erase(self) -> None:
        self.gone |= {name for name, _ in self.line}
        self.line = []
        await self.store.erase(NAME, RunId(f"r{self.epoch}"), self.owner.epoch)
        with pytest.raises(CheckpointNotFoundError):
            await self.store.load(NAME)
        await self.claim()

    async def holds(self) -> None:
        there = (await names(self.store))[::-1]
        assert there[len(there) - len(self.line) :] == [name for name, _ in self.line]
        for name, before in self.line:
            assert await self.store.load(NAME, name) == before
        for name in self.gone - set(there):
            with pytest.raises(CheckpointNotFoundError):
                await self.store.load(NAME, name)


@pytest.mark.parametrize("kind", KINDS)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(verbs=verbs, keep=st.none() | st.integers(1, 20))
def test_whatever_is_pruned_what_is_kept_is_read_as_before(
    kind: str,
    tmp_path_factory: pytest.TempPathFactory,
    verbs: list[tuple[Any, ...]],
    keep: int | None,
) -> None:
    async def go() -> None:
        make: dict[str, Callable[[], Store]] = {
            "memory": lambda: MemoryStore(keep=keep),
            "sqlite": lambda: SqliteStore(tmp_path_factory.mktemp("s"), keep=keep),
        }
        twin = Twin(make[kind]())
        await twin.claim()
        for verb, *how in verbs:
            await getattr(twin, verb)(*how)
            if keep is not None and len(twin.line) > keep:
                twin.gone |= {name for name, _ in twin.line[:-keep]}
                twin.line = twin.line[-keep:]
            await twin.holds()
        if isinstance(twin.store, SqliteStore):
            await twin.store.aclose()

    asyncio.run(go())


# What goes: everything.


async def test_what_was_erased_is_gone_and_the_word_of_ownership_goes_on(
    store: Store,
) -> None:
    tree = Tree()
    owner = await grown(store, tree, 60)
    await store.erase(NAME, RunId("a"), owner.epoch)
    assert await names(store) == []
    for wanted in (None, "c1", "c60"):
        with pytest.raises(CheckpointNotFoundError):
            await store.load(NAME, wanted)
    # It was given back, so that who is polite may have it.
    second = await store.claim(NAME, RunId("b"), holder="two", takeover=False)
    assert second == Claimed(Epoch(2), 60, None)
    tree.states[None] = {}
    one, state = tree.grow(second, "b", None, 61, {"anew": 1})
    await store.commit(NAME, one, state)
    other, state = tree.grow(second, "b", one.checkpoint_id, 62, {"more": 2})
    await store.commit(NAME, other, state)
    assert (await store.load(NAME))[1] == {"anew": 1, "more": 2}


@pytest.mark.parametrize("off", ["epoch", "run", "nobody"])
async def test_only_the_owner_can_erase(store: Store, off: str) -> None:
    first = await grown(store, Tree(), 3)
    second = await claimed(store, "b", holder="two")
    epoch = first.epoch if off == "epoch" else second.epoch
    instance = "press/other" if off == "nobody" else NAME
    with pytest.raises(OwnershipLostError) as caught:
        await store.erase(instance, RunId("b" if off != "run" else "a"), epoch)
    assert caught.value.owner == (0 if off == "nobody" else 2)
    assert await names(store) == ["c3", "c2", "c1"]
    held = await store.claim(NAME, RunId("c"), holder="three", takeover=False)
    assert isinstance(held, Held)


async def test_a_commit_that_comes_after_the_erasure_is_refused(store: Store) -> None:
    tree = Tree()
    first = await grown(store, tree, 3)
    second = await claimed(store, "b")
    await store.erase(NAME, RunId("b"), second.epoch)
    with pytest.raises(OwnershipLostError):
        await store.commit(NAME, *tree.grow(first, "a", "c3", 4, {"late": 1}))
    assert await names(store) == []
