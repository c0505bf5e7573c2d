"""A run and the word of ownership in its store: claim, heartbeat, giving it back."""

from collections.abc import Awaitable
from contextlib import suppress

from anyio import sleep

from tenure.runtime import _spawn
from tenure.runtime._answers import finished
from tenure.runtime._beginning import Branch
from tenure.runtime._checkpoint import Claimed, Held
from tenure.runtime._epoch import Epoch
from tenure.runtime._keeper import Keeper
from tenure.runtime._run import Run
from tenure.runtime.errors import (
    CheckpointError,
    OwnershipLostError,
    WorkflowBusyError,
)

FIRST_PAUSE = 0.01
"""Seconds after which a waiting run asks again, at first; then twice as long."""

SHORTEST_PACE = 0.01
"""Seconds between two heartbeats at least, however short the lease."""

LONGEST_PAUSE = 1.0
"""Seconds after which it asks again at the latest."""


async def claim_in_store(run: Run) -> None:
    """Claim in the store what `run` has claimed in this process.

    Raises:
        WorkflowBusyError: A live run of another process owns the instance.
        OwnershipLostError: A successor has claimed meanwhile, in this process.
        CheckpointError: The store cannot be used; or there is an instance already where
            a new one is to be made.
    """
    keeper = run.instance.keeper
    assert keeper is not None
    expected = Epoch(0) if isinstance(run.beginning, Branch) else None
    pause = FIRST_PAUSE
    while True:
        answer, interruption = await _asked(run, keeper, expected)
        if isinstance(answer, Claimed):
            break
        if interruption is not None:
            raise interruption
        if run.policy != "wait":
            raise WorkflowBusyError(
                run.instance.graph.name, run.instance.key, answer.run_id, answer.epoch
            )
        await sleep(max(min(pause, answer.seconds), FIRST_PAUSE / 10))
        pause = min(2 * pause, LONGEST_PAUSE)
    run.instance.confirm(run, answer)
    if interruption is not None:
        raise interruption


def _asked(
    run: Run, keeper: Keeper, expected: Epoch | None
) -> Awaitable[tuple[Claimed | Held, BaseException | None]]:
    if expected is None:
        return finished(keeper.claim(run))
    return _asked_for_new(run, keeper, expected)


async def _asked_for_new(
    run: Run, keeper: Keeper, expected: Epoch
) -> tuple[Claimed | Held, BaseException | None]:
    try:
        return await finished(keeper.claim(run, expected=expected))
    except OwnershipLostError as exc:
        raise CheckpointError(
            f"instance {run.instance.key!r} exists already",
            "fork into a key that has never been used",
        ) from exc


async def give_back(run: Run) -> BaseException | None:
    """Tell the store that `run`, which has ended in some way, needs no more.

    Nothing depends on it but how long others are polite.

    Returns:
        A cancellation that came meanwhile.
    """
    keeper = run.instance.keeper
    if keeper is None or run.final or not run.epoch or run.successor or run.lost:
        return None
    try:
        _, interruption = await finished(
            keeper.store.extend(keeper.name, run.run_id, run.epoch, final=True)
        )
    except CheckpointError:
        return None
    except _spawn.CANCELLED as exc:
        return exc
    return interruption


class Heartbeat:
    """Says that a run lives whose superstep takes long.

    Invariant: it ends a run only because the store has another owner, never because of
    a clock.

    Args:
        run: A run that has its epoch.
        keeper: Its instance in the store.
    """

    __slots__ = ("_keeper", "_pace", "_run", "_stopped", "_timer")

    def __init__(self, run: Run, keeper: Keeper) -> None:
        self._run = run
        self._keeper = keeper
        self._pace = max(keeper.store.lease / 3, SHORTEST_PACE)
        self._stopped = False
        self._timer = _spawn.Timer(self._pace, self._beat)

    def stop(self) -> None:
        """Say no more."""
        self._stopped = True
        self._timer.stop()

    def _beat(self) -> None:
        _spawn.start_errand(self._extend())

    async def _extend(self) -> None:
        run, keeper = self._run, self._keeper
        lives = True  # what the store cannot say proves nothing
        with suppress(CheckpointError):
            lives = await keeper.store.extend(keeper.name, run.run_id, run.epoch)
        if self._stopped or run.ended:
            return
        if lives or run.successor:
            # Not before the answer: a slow store is not asked again meanwhile.
            self._timer = _spawn.Timer(self._pace, self._beat)
        else:
            run.lose()
