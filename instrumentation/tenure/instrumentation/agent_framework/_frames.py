"""Which run a generator's frame belongs to, without keeping frame or generator alive.

Weak references to generators would not do: they are cleared before the event loop's
hook revives a dropped generator to close it, which is just when its run must be known.
"""

from types import CodeType, FrameType
from typing import Final

# Keyed by identity, because frames have no weak references. An entry that outlives its
# frame is harmless: whatever frame of the same code has the identity next was bound
# anew by its own run, and frames of other code do not match.
bound: Final[dict[int, tuple[CodeType, object]]] = {}
"""The code of each frame and what it was bound to, by identity of the frame."""


def bind(generator: object, owner: object) -> int | None:
    """Bind the frame of an asynchronous generator to `owner`.

    Args:
        generator: The generator, not started yet.
        owner: What its frame belongs to.

    Returns:
        What `unbind` needs; `None` where there is no frame.
    """
    frame: FrameType | None = getattr(generator, "ag_frame", None)
    if frame is None:
        return None
    bound[id(frame)] = (frame.f_code, owner)
    return id(frame)


def unbind(identity: int, owner: object) -> None:
    """Forget a frame, unless another owner's frame has its identity by now."""
    entry = bound.get(identity)
    if entry is not None and entry[1] is owner:
        del bound[identity]
