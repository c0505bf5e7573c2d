"""A scene: one workflow instance in one process, told operation by operation."""

from collections.abc import Callable

import pytest

from tenure.detectors import Detector, Finding
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    CommitCause,
    DeliveryKind,
    Discard,
    DiscardCause,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    LateKind,
    Operation,
    Outcome,
    Owner,
    Receive,
    Release,
    RunRef,
    Send,
    SuperstepEnd,
    SuperstepStart,
    Trigger,
    WriteSet,
)

UNSAID = object()


class Scene:
    """Numbers operations and says who owns, as a recorder would; a detector is fed."""

    def __init__(self) -> None:
        self.detector = Detector(announce=())
        self.owner: Owner | None = None
        self.seq: dict[str, int] = {}

    def run(self, epoch: int, *, run_id: str = "", process: str = "p") -> RunRef:
        return RunRef("x/1", "press", "i", run_id or f"run-{epoch}", epoch, process)

    def skip(self, count: int = 1, process: str = "p") -> None:
        """Lose `count` operations of a process."""
        self.seq[process] = self.seq.get(process, 0) + count

    def head(self, run: RunRef, owner: object) -> dict[str, object]:
        self.skip(process=run.process)
        return {
            "run": run,
            "seq": self.seq[run.process],
            "owner": self.owner if owner is UNSAID else owner,
        }

    def feed(self, operation: Operation) -> tuple[Finding, ...]:
        return self.detector.feed(operation)

    def claim(
        self,
        epoch: int,
        *,
        superseded: int | None = None,
        run_id: str = "",
        process: str = "p",
    ) -> tuple[Finding, ...]:
        run = self.run(epoch, run_id=run_id, process=process)
        self.owner = Owner(epoch, run.run_id)
        return self.feed(Claim(**self.head(run, UNSAID), superseded=superseded))

    def release(
        self,
        epoch: int,
        *,
        run_id: str = "",
        process: str = "p",
        trigger: Trigger | None = None,
        outcome: Outcome = Outcome.COMPLETED,
    ) -> tuple[Finding, ...]:
        run = self.run(epoch, run_id=run_id, process=process)
        return self.feed(
            Release(**self.head(run, UNSAID), outcome=outcome, trigger=trigger)
        )

    def send(
        self,
        epoch: int,
        message: str,
        *,
        target: str | None = None,
        index: int | None = 1,
    ) -> tuple[Finding, ...]:
        head = self.head(self.run(epoch), UNSAID)
        return self.feed(Send(**head, message=message, target=target, index=index))

    def receive(
        self, epoch: int, message: str, *, index: int | None = 2
    ) -> tuple[Finding, ...]:
        head = self.head(self.run(epoch), UNSAID)
        return self.feed(
            Receive(**head, message=message, executor="reader", index=index)
        )

    def start(self, epoch: int, index: int) -> tuple[Finding, ...]:
        head = self.head(self.run(epoch), UNSAID)
        return self.feed(SuperstepStart(**head, index=index))

    def end(self, epoch: int, index: int) -> tuple[Finding, ...]:
        head = self.head(self.run(epoch), UNSAID)
        return self.feed(SuperstepEnd(**head, index=index))

    def execute(
        self,
        epoch: int,
        executor: str,
        *,
        index: int | None = 1,
        reads: tuple[str, ...] = (),
        writes: tuple[str, ...] | None = (),
        omitted: int = 0,
        reduced: tuple[str, ...] = (),
        isolated: bool = False,
        error: str | None = None,
    ) -> tuple[Finding, ...]:
        staged = None if writes is None else dict.fromkeys(writes, epoch)
        return self.feed(
            Execute(
                **self.head(self.run(epoch), UNSAID),
                executor=executor,
                index=index,
                reads=reads,
                writes=write_set(staged, omitted),
                reduced=reduced,
                isolated=isolated,
                error=error,
            )
        )

    def read(
        self, epoch: int, key: str, writer: int, *, owner: object = UNSAID
    ) -> tuple[Finding, ...]:
        return self.feed(
            ForeignRead(**self.head(self.run(epoch), owner), key=key, writer=writer)
        )

    def save(
        self,
        epoch: int,
        checkpoint: str,
        *,
        parent: str | None = None,
        parts: dict[str, int] | None = None,
        taken: tuple[str, ...] | None = None,
        previous: str | None = None,
        process: str = "p",
        owner: object = UNSAID,
    ) -> tuple[Finding, ...]:
        return self.feed(
            CheckpointSave(
                **self.head(self.run(epoch, process=process), owner),
                checkpoint=checkpoint,
                parent=parent,
                previous=previous,
                parts=None if parts is None else tuple(parts.items()),
                taken=taken,
            )
        )

    def restore(
        self,
        epoch: int,
        checkpoint: str,
        parts: dict[str, int] | None = None,
        *,
        process: str = "p",
    ) -> tuple[Finding, ...]:
        return self.feed(
            CheckpointRestore(
                **self.head(self.run(epoch, process=process), UNSAID),
                checkpoint=checkpoint,
                parts=None if parts is None else tuple(parts.items()),
            )
        )

    def discard(
        self,
        epoch: int,
        writes: dict[str, int] | None,
        *,
        omitted: int = 0,
        fenced: bool = False,
        ledger: int | None = None,
        shared: bool = False,
        snapshots: tuple[str, ...] = (),
        trigger: Trigger | None = None,
        owner: object = UNSAID,
        index: int | None = None,
        cause: DiscardCause = DiscardCause.ABANDONED,
    ) -> tuple[Finding, ...]:
        return self.feed(
            Discard(
                **self.head(self.run(epoch), owner),
                writes=write_set(writes, omitted),
                cause=cause,
                fenced=fenced,
                ledger=ledger,
                shared=shared,
                snapshots=snapshots,
                trigger=trigger,
                index=index,
            )
        )

    def commit(
        self,
        epoch: int,
        writes: dict[str, int] | None,
        *,
        omitted: int = 0,
        owner: object = UNSAID,
        inherited: tuple[int, ...] = (),
        index: int | None = None,
        cause: CommitCause = CommitCause.SUPERSTEP,
        process: str = "p",
    ) -> tuple[Finding, ...]:
        return self.feed(
            Commit(
                **self.head(self.run(epoch, process=process), owner),
                writes=write_set(writes, omitted),
                cause=cause,
                inherited=inherited,
                index=index,
            )
        )

    def late(
        self,
        epoch: int,
        *,
        ledger: int | None = None,
        shared: bool = False,
        owner: object = UNSAID,
        kind: LateKind = LateKind.STAGE,
    ) -> tuple[Finding, ...]:
        writes = WriteSet((("k", epoch),)) if kind is LateKind.STAGE else None
        return self.feed(
            Late(
                **self.head(self.run(epoch), owner),
                kind=kind,
                writes=writes,
                ledger=ledger,
                shared=shared,
            )
        )

    def deliver(self, epoch: int, origin: int) -> tuple[Finding, ...]:
        return self.feed(
            ForeignDelivery(
                **self.head(self.run(epoch), UNSAID),
                kind=DeliveryKind.OUTPUT,
                origin=origin,
            )
        )

    def superseded(self) -> "Scene":
        """Play the usual opening: epoch 2 has replaced epoch 1 by policy."""
        self.claim(1)
        self.claim(2, superseded=1)
        return self


def write_set(writes: dict[str, int] | None, omitted: int = 0) -> WriteSet | None:
    return None if writes is None else WriteSet(tuple(writes.items()), omitted)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def only() -> Callable[[tuple[Finding, ...]], Finding]:
    """Return the one finding of several that must be one."""

    def one(found: tuple[Finding, ...]) -> Finding:
        (finding,) = found
        return finding

    return one
