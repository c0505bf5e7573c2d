"""How what is missing is named, in findings and beside the verdict. Pure."""

from typing import Final

UNNUMBERED: Final = "positions of operations"
UNLISTED: Final = "keys that a commit did not list, and who staged them"
UNTOLD: Final = "keys that executors of one superstep read or staged"
FORGOTTEN: Final = "epochs, processes or supersteps forgotten for want of room"
TARDY: Final = "messages that arrived after the end of their run"
UNOWNED: Final = "who owned the instance when an operation did not say so"
REBORN: Final = "part of an earlier instance of the same identity"


def ranges(gaps: list[tuple[int, int]], process: str) -> tuple[str, ...]:
    """Name the positions of a process that never arrived."""
    return tuple(
        f"seq {low} of process {process}"
        if low == high
        else f"seq {low}-{high} of process {process}"
        for low, high in gaps
    )
