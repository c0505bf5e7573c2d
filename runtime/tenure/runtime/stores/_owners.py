"""What a claim finds, and when it is refused. Pure, but for a look at processes."""

import os
import time
from collections.abc import Sequence
from typing import Any

from tenure.instrumentation.process import process_id
from tenure.runtime._checkpoint import Held
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime.errors import OwnershipLostError


def expect(expected: Epoch | None, row: Sequence[Any] | None) -> None:
    """Refuse a claim that expects another epoch than the newest.

    Args:
        expected: The epoch; any if `None`, none at all if 0.
        row: Epoch, run, holder, rank and end of the lease; `None` if there is no row.

    Raises:
        OwnershipLostError: The newest epoch is another one.
    """
    epoch = 0 if row is None else row[0]
    if expected is not None and epoch != expected:
        raise OwnershipLostError("claim", expected, epoch)


def refuse_overtaken(holder: str, rank: int, row: Sequence[Any] | None) -> None:
    """Refuse a claim that a later one of the same holder has overtaken.

    Args:
        holder: Who claims.
        rank: Rank of the claim among its own.
        row: As in `expect`.

    Raises:
        OwnershipLostError: The owner is of that holder, and of a higher rank.
    """
    if row is not None and holder and row[2] == holder and row[3] > rank:
        raise OwnershipLostError("claim", 0, row[0])


def held_by_another(row: Sequence[Any] | None, holder: str) -> Held | None:
    """Return who else holds the instance and seems to live.

    Args:
        row: As in `expect`.
        holder: Who claims.
    """
    if row is None:
        return None
    epoch, run_id, held_by, _, until = row[:5]
    if until is None or held_by == holder or is_gone(held_by):
        return None
    left = until - time.time()
    return Held(RunId(run_id), Epoch(epoch), left) if left > 0 else None


def is_gone(holder: str) -> bool:
    """Say whether a holder's process was one of this machine and has ended.

    A wrong answer costs politeness only: the fence does not depend on it.
    """
    process = holder.partition("/")[0]
    try:
        host, number, _ = process.rsplit("-", 2)
        pid = int(number)
    except ValueError:
        return False
    own = process_id()
    if os.name != "posix" or host != own.rsplit("-", 2)[0] or pid < 1:
        return False
    if pid == os.getpid():
        # In a container that was started again, everybody has the number that they had.
        return process != own
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
