"""The loop that drives a run from its claim to its end."""

from tenure.instrumentation.operations import DiscardCause, Outcome
from tenure.runtime import _spawn
from tenure.runtime._events import ExecutorFailed, RunEnded, RunFailed, RunStarted
from tenure.runtime._mailbox import Delivery
from tenure.runtime._run import Run
from tenure.runtime._superstep import Supersteps
from tenure.runtime.errors import (
    ConvergenceError,
    ExecutorError,
    OwnershipLostError,
)

_TURNS = 8
"""How many supersteps a run may take before other tasks of the loop get a turn."""


async def drive(run: Run) -> None:
    """Drive `run` to its end; it stores its result or its error and never raises it.

    Args:
        run: A run that has claimed, or that waits for its turn.

    Raises:
        BaseException: The task was cancelled from outside, or the process ends.
    """
    voice = run.voice
    try:
        await _spawn.BEGINNING
        turn = run.turn  # read once: another thread may grant it now
        if turn is not None:
            await turn.wait()
        if voice.recording:
            voice.make_current(None)
        run.note(RunStarted)
        await _run_supersteps(run)
    except Exception as exc:  # noqa: BLE001 - kept, and raised to the consumer
        _conclude(run, exc)
    except BaseException as exc:
        _conclude(run, exc)
        if run.outcome in (Outcome.CANCELLED, Outcome.FAILED):
            raise
    else:
        _conclude(run, None)


async def _run_supersteps(run: Run) -> None:
    graph = run.instance.graph
    supersteps = Supersteps(run, graph.dispatches())
    mailbox = run.mailbox
    mailbox.deliver(graph.start, Delivery(run.message))
    run.message = None
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
    if isinstance(error, _spawn.CANCELLED):
        return Outcome.CANCELLED, DiscardCause.CANCELLED
    return Outcome.FAILED, DiscardCause.FAILED


def _discard(run: Run, cause: DiscardCause) -> None:
    """Throw away what the run has staged, unless its successor has done so."""
    if run.discarded:
        return
    run.discarded = True
    fenced = run.successor is not None
    thrown = run.ledger.close()
    run.voice.discard(
        run.instance.owner,
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
        outcome = Outcome.COMPLETED
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
    if run.successor is not None and run.abandoned is None:
        return OwnershipLostError("going on", run.epoch, run.successor.epoch)
    return None


def _tell_consumer(run: Run, outcome: Outcome, error: BaseException | None) -> None:
    if isinstance(error, ExecutorError) and outcome is Outcome.FAILED:
        run.note(
            ExecutorFailed, error.superstep, error.executor, error.__cause__ or error
        )
    if error is not None and outcome is Outcome.FAILED:
        run.note(RunFailed, error)
    else:
        run.note(RunEnded, outcome, run.mailbox.undelivered)
    if run.buffer is not None:
        run.buffer.close()
