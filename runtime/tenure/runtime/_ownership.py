"""Who may write: one word per instance. Pure, synchronous, without a clock."""

from typing import Final

from tenure.instrumentation.operations import Owner
from tenure.runtime._epoch import Epoch, RunId

NOBODY: Final = Owner(0)
"""The owner of an instance that no run has claimed yet."""


class Ownership:
    """The ownership word of one instance.

    Not safe to share between threads: its instance holds a lock around each call.
    """

    __slots__ = ("_held", "_owner")

    def __init__(self) -> None:
        # Invariant: the epoch of `_owner` only grows.
        self._owner = NOBODY
        self._held = False

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not."""
        return self._owner

    @property
    def held(self) -> bool:
        """Whether the newest claim has not been released."""
        return self._held

    def claim(self, run_id: RunId) -> Owner:
        """Make `run_id` the owner, whoever was it before.

        Args:
            run_id: The run that claims.

        Returns:
            The new owner, with an epoch above all earlier ones.
        """
        self._owner = Owner(self._owner.epoch + 1, run_id)
        self._held = True
        return self._owner

    def owns(self, epoch: Epoch) -> bool:
        """Say whether `epoch` is the owner's and has not been released."""
        return self._held and self._owner.epoch == epoch

    def release(self, epoch: Epoch) -> bool:
        """End the tenure of `epoch`; a stale epoch changes nothing.

        Args:
            epoch: Epoch of the run that releases.

        Returns:
            Whether it was the owner.
        """
        if not self.owns(epoch):
            return False
        self._held = False
        return True
