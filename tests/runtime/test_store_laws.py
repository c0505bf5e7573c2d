"""Laws that every store keeps, asked without an engine."""

import asyncio
import itertools
import sys
import threading
from collections.abc import AsyncIterator, Callable
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


@pytest.fixture(params=[*KINDS, "blocking"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    async with SqliteStore(tmp_path, blocking=request.param == "blocking") as made:
        yield made


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
    request = PendingRequest("q1", "ask", {"question": (1, 2)}, bool)
    checkpoint, state = Tree().grow(
        one,
        "a",
        None,
        1,
        {"k": {"deep": [1, (2, 3)]}},
        messages=[("b", "hello"), ("c", [1, 2]), ("b", {"x"})],
        answers=[("ask", "q0", (True, None))],
        fan_ins=[(0, "b", 1), (0, "b", 2), (1, "c", "x")],
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
        messages=[("b", message)],
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
        assert list(loaded.standing.messages) == [("b", ["m"])]
        assert loaded.standing.snapshots == {"b": {"seen": []}}
        assert loaded.standing.requests[0].data == {"q": []}
        message, snapshot = (
            loaded.standing.messages[0][1],
            loaded.standing.snapshots["b"],
        )
        question = loaded.standing.requests[0].data


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
            "memory": MemoryStore,
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
