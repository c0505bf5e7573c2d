"""What is known of one epoch, and what is known to have come first. Pure."""

from dataclasses import dataclass

from tenure.instrumentation.operations import Claim, Operation, Release


@dataclass(slots=True)
class Tenure:
    """What is known of one epoch.

    Attributes:
        claim: Its claim, once seen.
        release: Its release, once seen.
        superseded: Whether a successor's claim named it as replaced by policy.
        ambiguous: Whether more than one run has acted under this epoch, so that its
            claim and its release may not belong together.
    """

    claim: Claim | None = None
    release: Release | None = None
    superseded: bool = False
    ambiguous: bool = False

    @property
    def ended(self) -> bool:
        """Whether it is known to be over."""
        return self.release is not None or self.superseded


def precedes(first: Operation, second: Operation) -> bool:
    """Say whether `first` is known to have happened before `second`.

    Only one process's own count orders anything: clocks and arrival do not.
    """
    return (
        first.seq is not None
        and second.seq is not None
        and first.run.process == second.run.process
        and first.seq < second.seq
    )
