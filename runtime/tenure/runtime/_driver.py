"""The loop that drives a run from its claim to its end."""

from anyio import move_on_after

from tenure.instrumentation.operations import DiscardCause, Outcome, Owner
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

_PATIENCE = 1.0
"""For how many seconds a run may clean up after its deadline, and after each further
cancellation."""

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


class _Deadline:
    """Cancels a run that takes too long, and again if it goes on all the same.

    Not a cancel scope of anyio, which would cancel every await of clean-up code too.

    Args:
        run: A run; its task is the current one.
        seconds: After how many seconds.
    """

    __slots__ = ("_cancelled", "_run", "_timer")

    def __init__(self, run: Run, seconds: float) -> None:
        self._run = run
        # How often it has cancelled and not taken that back.
        self._cancelled = 0
        self._timer = _spawn.Timer(seconds, self._pass)

    def _pass(self) -> None:
        self._run.overdue = True
        self._cancelled += self._run.interrupt()
        self._timer = _spawn.Timer(_PATIENCE, self._pass)

    def alone(self) -> bool:
        """Say whether the run was cancelled by this deadline and by nobody else."""
        return 0 < self._cancelled >= _spawn.cancellations()

    def stop(self) -> None:
        """Cancel no more, and let the task wait again for whatever it has to."""
        self._timer.stop()
        _spawn.take_back_cancellations(self._cancelled)
        self._cancelled = 0


async def _go(run: Run) -> None:
    """Go to the run's end, within its deadline if it has one."""
    if run.deadline is None:
        await _go_on(run)
        return
    if run.deadline <= 0:
        raise DeadlineError(run.deadline, run.index)
    deadline = _Deadline(run, run.deadline)
    try:
        await _go_on(run)
    except _spawn.CANCELLED as exc:
        if deadline.alone():
            raise DeadlineError(run.deadline, run.index) from exc
        raise
    finally:
        deadline.stop()


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
        if run.overdue:  # and has swallowed its cancellation
            raise DeadlineError(run.deadline or 0.0, run.index)
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
        _discard(run, _ending(run, exc)[1], exc)
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


def _discard(run: Run, cause: DiscardCause, error: BaseException) -> None:
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
        _newer(owner, error),
        thrown,
        cause=cause,
        fenced=fenced,
        ledger=int(run.epoch),
        trigger=run.abandoned,
        index=run.index or None,
        detached=fenced or run.abandoned is not None,
    )


def _newer(owner: Owner, error: BaseException) -> Owner:
    """Return who owns an instance, by a store's refusal if that knows better.

    Another process's claim is not known here before the store has refused something.
    """
    if isinstance(error, OwnershipLostError) and error.owner > owner.epoch:
        return Owner(error.owner)
    return owner


def _conclude(run: Run, error: BaseException | None) -> None:
    """End the run: discard, release, and only then tell the consumer."""
    if error is None:
        waiting = bool(run.requests)
        outcome = Outcome.PENDING_REQUESTS if waiting else Outcome.COMPLETED
    else:
        outcome, cause = _ending(run, error)
        if run.epoch:
            _discard(run, cause, error)
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
