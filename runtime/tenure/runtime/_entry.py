"""How a run enters: what its mailbox holds before the first superstep."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tenure.runtime._answers import finished
from tenure.runtime._beginning import (
    Branch,
    Erasure,
    FreshMessage,
    Responses,
    Resumption,
    Withdrawal,
)
from tenure.runtime._change import UNCHANGED, Change
from tenure.runtime._checkpoint import (
    EMPTY,
    CheckpointKind,
    PendingRequest,
    Standing,
    Store,
)
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._keeper import (
    Keeper,
    Restored,
    give_back_snapshots,
    save_snapshots,
    savers,
)
from tenure.runtime._keys import DELETED
from tenure.runtime._mailbox import Delivery
from tenure.runtime._requests import Answer, answers_to, awaited, find_requests
from tenure.runtime._run import Run
from tenure.runtime._saving import save
from tenure.runtime.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    OwnershipLostError,
)


def enter_without_store(run: Run) -> None:
    """Fill the mailbox of a run, and commit what changes by that."""
    change = _enter(run, None)
    if change is not UNCHANGED:
        run.instance.commit(run, change)
    run.requests = run.instance.requests


async def enter_from_store(run: Run, dispatches: Mapping[str, Dispatch]) -> None:
    """Bring the instance to where the store has it, enter, and save the entry.

    Args:
        run: A run that has its epoch.
        dispatches: The run's executors.

    Raises:
        CheckpointError: There is nothing to resume, or it cannot be read or kept.
        OwnershipLostError: Another run owns the instance in the store by now.
        UnknownRequestError: No such request waits for an answer.
        ResponseTypeError: An answer is not of the type that was asked for.
    """
    keeper = run.instance.keeper
    assert keeper is not None
    match run.beginning:
        case Resumption(checkpoint_id, values):
            await _go_back(run, keeper, checkpoint_id, values, dispatches)
        case Branch(source, checkpoint_id):
            await _branch_off(run, keeper, source, checkpoint_id, dispatches)
        case Erasure():
            await _erase(run, keeper)
        case _:
            await _go_on(run, keeper, dispatches)
    run.requests = run.instance.requests


def _enter(run: Run, store: Store | None) -> Change:
    """Fill the mailbox from what the run begins with; return what changes by that."""
    requests = run.instance.requests
    _hand_on(run)
    match run.beginning:
        case FreshMessage(message):
            start = run.instance.graph.start
            run.mailbox.deliver(start, Delivery(message, begun_by=run.run_id))
        case Responses(values):
            _deliver(run, values, requests, store)
        case Withdrawal(ids):
            find_requests(ids, requests)
            return Change(settled=tuple(ids))
        case Erasure():
            return _all_gone(run)
        case _:
            pass
    return UNCHANGED


def _deliver(
    run: Run,
    values: Mapping[str, Any],
    requests: Mapping[str, PendingRequest],
    store: Store | None,
) -> None:
    """Put answers into the mailbox, for those who asked."""
    for answer in answers_to(values, requests, run.instance.graph.shared):
        asker = answer.request.executor_id
        if store is not None:
            store.check(answer.response, f"answer to {asker!r}")
        run.mailbox.deliver(asker, _of(answer))


def _of(answer: Answer) -> Delivery:
    return Delivery(answer, begun_by=answer.request.begun_by)


def _hand_on(run: Run) -> None:
    """Put back what fan-ins hold for answers that are yet to come, or come now."""
    holding = run.instance
    waited_for = awaited(holding.requests)
    for position, source, message, begun_by in holding.collected:
        if begun_by in waited_for:
            edge = holding.graph.fan_ins[position]
            run.mailbox.collect(edge, source, Delivery(message, begun_by=begun_by))


async def _go_on(run: Run, keeper: Keeper, dispatches: Mapping[str, Dispatch]) -> None:
    """Enter an instance as its last committed run has left it."""
    holding = run.instance
    if run.head is None and holding.head is not None:
        holding.empty(run)
    elif run.head is not None and not holding.reflects(run.head):
        answering = isinstance(run.beginning, Responses)
        restored = await _restored(run, keeper, run.head, strict=answering)
        holding.replace(run, restored)
        # What belongs to a run is made anew for each; what they share goes on.
        shared = {
            name: dispatch
            for name, dispatch in dispatches.items()
            if holding.graph.executors[name].factory is None
        }
        await _take_over(run, restored, shared)
    change = _enter(run, keeper.store)
    kind: CheckpointKind = "entry"
    if isinstance(run.beginning, Responses):
        kind = "responses"
    elif isinstance(run.beginning, Withdrawal):
        kind = "cancellation"
    await _save(run, keeper, kind, dispatches, change)


async def _go_back(
    run: Run,
    keeper: Keeper,
    checkpoint_id: str | None,
    values: Mapping[str, Any] | None,
    dispatches: Mapping[str, Dispatch],
) -> None:
    """Go on from a checkpoint; going back to an earlier one is a change of its own."""
    wanted = checkpoint_id or run.head
    if wanted is None:
        raise CheckpointNotFoundError(keeper.name, "(any)")
    restored = await _restored(run, keeper, wanted, strict=True)
    run.instance.replace(run, restored)
    await _take_over(run, restored, dispatches)
    standing = restored.checkpoint.standing
    _refill(run, standing)
    if values:
        answered = {request_id for _, request_id, _ in standing.answers}
        waiting = {
            key: one for key, one in restored.requests.items() if key not in answered
        }
        _deliver(run, values, waiting, keeper.store)
    if wanted != run.head:
        run.previous, run.head = run.head, wanted
        await _save(run, keeper, "restore", dispatches)
    elif values:
        await _save(run, keeper, "responses", dispatches)


async def _branch_off(
    run: Run,
    keeper: Keeper,
    source: str,
    checkpoint_id: str | None,
    dispatches: Mapping[str, Dispatch],
) -> None:
    """Begin an instance with what a checkpoint of another one holds; run nothing."""
    restored = await keeper.restore(checkpoint_id, strict=True, source=source)
    run.instance.replace(run, restored)
    await _take_over(run, restored, dispatches)
    _refill(run, restored.checkpoint.standing)
    run.head = restored.checkpoint.checkpoint_id
    try:
        await _save(run, keeper, "fork", dispatches)
    finally:
        run.mailbox.take()


async def _erase(run: Run, keeper: Keeper) -> None:
    """Remove all that an instance holds, in the store first, then in memory.

    Nothing is read, so that what cannot be read can be removed.
    """
    run.check()
    try:
        _, interruption = await finished(
            keeper.store.erase(keeper.name, run.run_id, run.epoch)
        )
    except CheckpointError:
        # All may be gone even so, with bytes of it left behind.
        with suppress(CheckpointError):
            if not await keeper.store.history(keeper.name):
                _forget(run)
        raise
    run.final = True
    _forget(run)
    if interruption is not None:
        raise interruption


def _forget(run: Run) -> None:
    """Hold nothing any more, because the store does not; no await in here."""
    run.head = None
    run.instance.unsaved = EMPTY
    run.instance.commit(run, _all_gone(run))


def _all_gone(run: Run) -> Change:
    """Return the change that leaves nothing of what the instance holds."""
    holding = run.instance
    writes = dict.fromkeys(holding.state_values, DELETED)
    return Change(writes, settled=tuple(holding.requests))


async def _restored(
    run: Run, keeper: Keeper, checkpoint_id: str, *, strict: bool
) -> Restored:
    """Load a checkpoint of the run's own instance."""
    try:
        return await keeper.restore(checkpoint_id, strict=strict)
    except CheckpointNotFoundError as exc:
        if checkpoint_id != run.head:
            raise
        # The newest is never pruned: others have gone on from it, and pruned then.
        if not await keeper.store.extend(keeper.name, run.run_id, run.epoch):
            raise OwnershipLostError("restore", run.epoch, 0) from exc
        problem = f"checkpoint {checkpoint_id!r} cannot be read"
        raise CheckpointError(problem, "it is the newest, and not there") from exc


async def _save(
    run: Run,
    keeper: Keeper,
    kind: CheckpointKind,
    dispatches: Mapping[str, Dispatch],
    change: Change = UNCHANGED,
) -> None:
    snapshots = await save_snapshots(savers(dispatches), keeper.store, run.index)
    run.check()
    interruption = await save(run, kind, change, snapshots)
    if interruption is not None:
        raise interruption


async def _take_over(
    run: Run, restored: Restored, dispatches: Mapping[str, Dispatch]
) -> None:
    """Give executors what they had saved, and tell that a checkpoint was restored."""
    checkpoint = restored.checkpoint
    snapshots = checkpoint.standing.snapshots
    await give_back_snapshots(snapshots, dispatches)
    run.voice.checkpoint_restored(
        run.owner,
        checkpoint.checkpoint_id,
        checkpoint.parent_id,
        dict.fromkeys(snapshots, int(checkpoint.epoch)),
    )


def _refill(run: Run, standing: Standing) -> None:
    """Put back what was on its way when the checkpoint was taken."""
    mailbox, requests = run.mailbox, run.instance.requests
    graph = run.instance.graph
    try:
        for target, message, begun_by in standing.messages:
            mailbox.deliver(target, Delivery(message, begun_by=begun_by))
        for target, request_id, response in standing.answers:
            mailbox.deliver(target, _of(Answer(requests[request_id], response)))
        for position, source, message, begun_by in standing.fan_ins:
            delivery = Delivery(message, begun_by=begun_by)
            mailbox.collect(graph.fan_ins[position], source, delivery)
    except (IndexError, KeyError) as exc:
        raise CheckpointError(
            "a checkpoint does not fit the graph that it was taken of",
            f"it speaks of {exc}, which is not there",
        ) from exc
