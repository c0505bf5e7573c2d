"""How many checkpoints are kept, and when a store looks for those that may go. Pure."""

from typing import Final

PRUNE_EVERY: Final = 50
"""After how many commits a store removes what it need not keep."""

FULL_EVERY: Final = 50
"""How many checkpoints may follow one that holds the whole state."""

LARGE: Final = 64 * 1024
"""A checkpoint of that many bytes makes the store look at once."""


def check_keep(keep: int | None) -> None:
    """Refuse to keep nothing: the newest checkpoint is what runs go on from.

    Args:
        keep: How many checkpoints are kept; all if `None`.

    Raises:
        ValueError: It is less than one.
    """
    if keep is not None and keep < 1:
        raise ValueError(
            f"keep={keep}: the newest checkpoint is always kept; erase() removes all"
        )


def oldest_kept(position: int, keep: int) -> int:
    """Return the position of the oldest checkpoint that is kept.

    Args:
        position: That of the newest one.
        keep: How many are kept.
    """
    return position - keep + 1


def is_due(position: int, size: int) -> bool:
    """Say whether a commit is one after which old checkpoints are to go.

    It depends on nothing that a process remembers, so that one which commits a few
    times and ends takes its turn too.

    Args:
        position: That of the commit.
        size: How many bytes it takes.
    """
    return position % PRUNE_EVERY == 0 or size >= LARGE
