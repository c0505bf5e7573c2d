"""How a run enters: what its mailbox holds before the first superstep."""

from collections.abc import Mapping

from tenure.runtime._beginning import FreshMessage, Responses, Resumption, Withdrawal
from tenure.runtime._checkpoint import CheckpointKind, Claimed, Standing
from tenure.runtime._dispatch import Dispatch
from tenure.runtime._holding import Change, Holding
from tenure.runtime._keeper import Keeper, give_back_snapshots
from tenure.runtime._mailbox import Delivery
from tenure.runtime._requests import Answer, answers_to, find_requests
from tenure.runtime._run import Run
from tenure.runtime.errors import CheckpointNotFoundError


def enter(run: Run) -> Change:
    """Fill the mailbox of a run from what it begins with.

    Args:
        run: A run that owns its instance.

    Returns:
        What changes in the instance before the first superstep.

    Raises:
        UnknownRequestError: No such request waits for an answer.
        ResponseTypeError: An answer is not of the type that was asked for.
    """
    requests = run.instance.requests
    match run.beginning:
        case FreshMessage(message):
            run.mailbox.deliver(run.instance.graph.start, Delivery(message))
        case Responses(values):
            for answer in answers_to(values, requests):
                run.mailbox.deliver(answer.request.executor_id, Delivery(answer))
        case Withdrawal(ids):
            find_requests(ids, requests)
            return Change(settled=tuple(ids))
        case Resumption():
            pass
    return Change()


async def enter_from_store(
    run: Run, claimed: Claimed, dispatches: Mapping[str, Dispatch]
) -> None:
    """Bring the instance to where the store has it, enter, and save the entry.

    Args:
        run: A run whose claim the store has answered.
        claimed: The store's answer.
        dispatches: The run's executors.

    Raises:
        CheckpointError: There is nothing to resume, or it cannot be read.
        OwnershipLostError: Another run owns the instance in the store by now.
    """
    holding, keeper = run.instance, run.instance.keeper
    assert keeper is not None
    if isinstance(run.beginning, Resumption):
        wanted = run.beginning.checkpoint_id or claimed.head
        if wanted is None:
            raise CheckpointNotFoundError(keeper.name, "(any)")
        await _restore(run, keeper, wanted, dispatches, resume=True)
        return
    if claimed.head is not None and claimed.head != keeper.head:
        await _restore(run, keeper, claimed.head, dispatches, resume=False)
    change = enter(run)
    kind: CheckpointKind = "entry"
    if isinstance(run.beginning, Responses):
        kind = "responses"
    elif isinstance(run.beginning, Withdrawal):
        kind = "cancellation"
    requests = holding.requests_after(change)
    await keeper.keep(run, kind, holding.state_values, requests)
    holding.commit(run, change)


def enter_without_store(run: Run) -> None:
    """Enter, and commit what changes by that."""
    change = enter(run)
    if change.settled:
        run.instance.commit(run, change)


async def _restore(
    run: Run,
    keeper: Keeper,
    checkpoint_id: str,
    dispatches: Mapping[str, Dispatch],
    *,
    resume: bool,
) -> None:
    restored = await keeper.restore(checkpoint_id, strict=resume)
    run.instance.replace(restored.state, restored.requests)
    keeper.head = checkpoint_id
    standing = restored.checkpoint.standing
    if resume or standing.snapshots:
        known = {
            name: one for name, one in standing.snapshots.items() if name in dispatches
        }
        await give_back_snapshots(known, dispatches)
    if resume:
        _refill(run, run.instance, standing)
    run.voice.checkpoint_restored(
        run.owner,
        checkpoint_id,
        restored.checkpoint.parent_id,
        dict.fromkeys(standing.snapshots, int(restored.checkpoint.epoch)),
    )


def _refill(run: Run, holding: Holding, standing: Standing) -> None:
    """Put back what was on its way when the checkpoint was taken."""
    mailbox = run.mailbox
    for target, message in standing.messages:
        mailbox.deliver(target, Delivery(message))
    for target, request_id, response in standing.answers:
        answer = Answer(holding.requests[request_id], response)
        mailbox.deliver(target, Delivery(answer))
    for position, source, message in standing.fan_ins:
        edge = holding.graph.fan_ins[position]
        mailbox.collect(edge, source, Delivery(message))
