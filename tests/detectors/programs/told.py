"""What an engine would tell, told without one: no loop, no task, no turn.

The tests of zero code and of the pytest plugin run it in processes of their own.
"""

from opentelemetry.context import Context

from tenure.instrumentation import Recorder
from tenure.instrumentation.operations import DiscardCause, LateKind, Outcome, Owner

FIRST, SECOND = Owner(1, "r1"), Owner(2, "r2")


class Instance:
    """An instance that run `r2` has taken over from run `r1` by policy."""

    def __init__(self, name: str = "i") -> None:
        instance = Recorder("engine/1.2").instance("press", name)
        self.first, self.second = (
            instance.run(owner.run_id, parent=Context()) for owner in (FIRST, SECOND)
        )
        self.first.claim(FIRST)
        self.first.release(FIRST, Outcome.SUPERSEDED)
        self.second.claim(SECOND, superseded=1)

    def violation(self) -> None:
        """Tell a stale discard that threw away what the owner has staged."""
        self.discard({"b": 2})

    def warning(self) -> None:
        """Tell a stale discard that threw nothing of the owner away."""
        self.discard({"a": 1})

    def averted(self) -> None:
        """Tell a stale discard that the engine refused."""
        self.discard({}, fenced=True)

    def late(self) -> None:
        """Tell a late write into the owner's ledger."""
        self.first.late(SECOND, LateKind.STAGE, writes={"a": 1}, ledger=2)

    def discard(self, writes: dict[str, int], *, fenced: bool = False) -> None:
        self.first.discard(
            SECOND, writes, cause=DiscardCause.FINALIZER, fenced=fenced, detached=True
        )

    def end(self) -> None:
        """Tell the end of both runs."""
        self.second.release(SECOND, Outcome.COMPLETED)
        self.first.ended(Outcome.SUPERSEDED)
        self.second.ended(Outcome.COMPLETED)


if __name__ == "__main__":
    played = Instance()
    played.violation()
    played.end()
