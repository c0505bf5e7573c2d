"""The loop that drives a run from its claim to its end."""

from anyio import move_on_after

from tenure.instrumentation.operations import DiscardCause, Outcome
from tenure.runtime import _spawn
from tenure.runtime._claiming import Heartbeat, claim_in_store, give_back
from tenure.runtime._entry import enter_from_store, enter_without_store
from tenure.runtime._events import ExecutorFailed, RunFailed, RunStarted
from tenure.runtime._run import Run
from tenure.runtime._superstep import Supersteps
from tenure.runtime.errors import (
    ConvergenceError,
    DeadlineError,
    ExecutorError,
    OwnershipLostError,
)

_TURNS = 8
"""How many supersteps a run may take before other tasks of the loop get a turn."""


_GONE_AFTER = 1.0
"""Seconds after which a waiting run looks whether the owner is still there."""

_FINE = (type(None), Exception, _spawn.CANCELLED)
"""What a run may end with and go on to clean up; else its coroutine, or the process, is
being destroyed."""


async def drive(run: Run) -> None:
    """Drive `run` to its end; it stores its result or its error and never raises it.

    Args:
        run: A run that has claimed, or that waits for its turn.

    Raises:
        BaseException: The task was cancelled from outside, or the process ends.
    """
    error: BaseException | None = None
    try:
        await _spawn.BEGINNING
        await _go(run)
    except BaseException as exc:  # noqa: BLE001 - kept, and raised to the consumer
        error = exc
    if run.instance.keeper is not None and isinstance(error, _FINE):
        error = await give_back(run) or error
    _conclude(run, error)
    if error is None or isinstance(error, Exception):
        return
    if run.outcome in (Outcome.CANCELLED, Outcome.FAILED):
        raise error


async def _go(run: Run) -> None:
    """Go to the run's end, within its deadline if it has one."""
    deadline = run.deadline
    if deadline is None:
        await _go_on(run)
        return
    if deadline <= 0:
        raise DeadlineError(deadline, run.index)
    with move_on_after(deadline) as scope:
        await _go_on(run)
    if scope.cancelled_caught:
        raise DeadlineError(deadline, run.index)


async def _go_on(run: Run) -> None:
    """Wait for the run's turn, claim in the store if there is one, and run."""
    while (turn := run.turn) is not None:  # another thread may grant it now
        with move_on_after(_GONE_AFTER):
            await turn.wait()
        run.instance.take_from_gone(run)
    if run.voice.recording:
        run.voice.make_current(None)
    keeper = run.instance.keeper
    if keeper is None:
        await _run_supersteps(run)
        return
    await claim_in_store(run)
    heartbeat = Heartbeat(run, keeper)
    try:
        await _run_supersteps(run)
    finally:
        heartbeat.stop()


async def _run_supersteps(run: Run) -> None:
    graph = run.instance.graph
    dispatches = graph.dispatches()
    supersteps = Supersteps(run, dispatches)
    mailbox = run.mailbox
    if run.instance.keeper is None:
        enter_without_store(run)
    else:
        await enter_from_store(run, dispatches)
    # With a store, whoever hears this knows that the run cannot get lost any more.
    run.note(RunStarted)
    while mailbox:
        if run.index >= graph.max_supersteps:
            raise ConvergenceError(graph.max_supersteps, mailbox.waiting)
        if run.buffer is not None and run.buffer.full:
            await run.buffer.room()
        if run.index % _TURNS == _TURNS - 1:
            await _spawn.let_others_run()
        run.check()
        run.index += 1
        await _run_superstep(run, supersteps)


async def _run_superstep(run: Run, supersteps: Supersteps) -> None:
    voice = run.voice
    batch = run.mailbox.take()
    told = voice.telling or voice.measuring
    if told:
        voice.superstep_started(run.owner, run.index)
    try:
        await supersteps.execute(batch)
    except BaseException as exc:
        _discard(run, _ending(run, exc)[1])
        raise
    finally:
        if told:
            voice.superstep_ended(run.instance.owner, run.index)


def _ending(run: Run, error: BaseException | None) -> tuple[Outcome, DiscardCause]:
    """Say how a run ends that ends with `error`. Pure."""
    if run.abandoned is not None or run.stalled:
        return Outcome.ABANDONED, DiscardCause.ABANDONED
    if run.successor is not None:
        return Outcome.SUPERSEDED, DiscardCause.SUPERSEDED
    if run.lost or isinstance(error, OwnershipLostError):
        return Outcome.LOST, DiscardCause.SUPERSEDED
    if isinstance(error, _spawn.CANCELLED):
        return Outcome.CANCELLED, DiscardCause.CANCELLED
    return Outcome.FAILED, DiscardCause.FAILED


def _discard(run: Run, cause: DiscardCause) -> None:
    """Throw away what the run has staged, unless its successor has done so."""
    if run.discarded:
        return
    run.discarded = True
    owner = run.instance.owner
    thrown = run.ledger.close()
    fenced = run.successor is not None
    if fenced and run.instance.keeper is not None:
        # A successor without an epoch has told nothing yet of what it swept.
        fenced = owner.epoch != run.epoch
        thrown = {} if fenced else {**(run.take_swept() or {}), **thrown}
    run.voice.discard(
        owner,
        thrown,
        cause=cause,
        fenced=fenced,
        ledger=int(run.epoch),
        trigger=run.abandoned,
        index=run.index or None,
        detached=fenced or run.abandoned is not None,
    )


def _conclude(run: Run, error: BaseException | None) -> None:
    """End the run: discard, release, and only then tell the consumer."""
    if error is None:
        waiting = bool(run.requests)
        outcome = Outcome.PENDING_REQUESTS if waiting else Outcome.COMPLETED
    else:
        outcome, cause = _ending(run, error)
        if run.epoch:
            _discard(run, cause)
    run.ledger.close()
    run.outcome = outcome
    run.error = _reported(run, outcome, error)
    run.ended = True
    run.instance.release(run, outcome)
    run.voice.ended(outcome, error if outcome is Outcome.FAILED else None)
    _tell_consumer(run, outcome, error)
    _spawn.forget(run.task)


def _reported(
    run: Run, outcome: Outcome, error: BaseException | None
) -> BaseException | None:
    """Return what the consumer is raised, if it is still there."""
    if outcome is Outcome.FAILED:
        return error
    if outcome is Outcome.LOST:
        if isinstance(error, OwnershipLostError):
            return error
        return OwnershipLostError("going on", run.epoch, 0)
    if run.successor is not None and run.abandoned is None:
        return OwnershipLostError("going on", run.epoch, run.successor.epoch)
    return None


def _tell_consumer(run: Run, outcome: Outcome, error: BaseException | None) -> None:
    if isinstance(error, ExecutorError) and outcome is Outcome.FAILED:
        run.note(
            ExecutorFailed, error.superstep, error.executor, error.__cause__ or error
        )
    if error is None or outcome is not Outcome.FAILED:
        run.tell_end(outcome)
        return
    run.note(RunFailed, error)
    if run.buffer is not None:
        run.buffer.close()
