"""An engine that keeps every rule: a ledger per epoch, and a fence that refuses."""

from random import Random

from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Commit,
    Discard,
    DiscardCause,
    Late,
    LateKind,
    Receive,
    Send,
    WriteSet,
)

from .engine import Engine, Run, Telling

MAX_RUNS = 8


class Isolated(Engine):
    """A ledger per epoch, and a fence that refuses whoever is stale."""

    def __init__(self, random: Random, telling: Telling, *, processes: int) -> None:
        super().__init__(random, telling, processes=processes)
        self.saves: list[str] = []

    def play(self, steps: int, *, polite: bool) -> None:
        self.claim(policy=False)
        for _ in range(steps):
            if self.random.random() < 0.15 and len(self.runs) < MAX_RUNS:
                self.succeed()
            else:
                run = self.owner if polite else self.random.choice(self.runs)
                self.act(run)
        if self.owner.live:
            self.finish(self.owner)

    def succeed(self) -> None:
        """Go on from the newest checkpoint, or from an earlier one on purpose."""
        self.claim(policy=True)
        if not self.saves:
            return
        self.owner.found = self.owner.parent = self.saves[-1]
        if self.random.random() < 0.4:
            self.owner.parent = self.random.choice(self.saves)
        head = self.head(self.owner)
        self.tell(CheckpointRestore(**head, checkpoint=self.owner.parent))

    def act(self, run: Run) -> None:
        if not run.live:
            if run is not self.owner:
                self.refuse(run)
            return
        if not run.inside:
            if self.random.random() < 0.2:
                self.save(run)
            elif self.random.random() < 0.2:
                self.finish(run)
            else:
                self.begin(run)
                self.receive(run)
            return
        if self.random.random() < 0.6:
            self.work(run)
        else:
            self.close(run)

    def work(self, run: Run) -> None:
        """Run an executor: its own keys, and one that all join through a reducer."""
        executor = self.random.choice("xyz")
        writes = (f"of-{executor}", "joined")
        run.ledger.update(writes)
        reads = (self.random.choice(["of-x", "of-y", "joined"]),)
        self.execute(
            run,
            executor=executor,
            reads=reads,
            writes=writes,
            reduced=("joined",),
            isolated=True,
        )
        message = f"m{len(self.told)}"
        run.sent[message] = [run.index]
        self.tell(Send(**self.head(run), message=message, index=run.index))

    def receive(self, run: Run) -> None:
        for message in [one for one in run.sent if one not in run.received]:
            run.received[message] = [run.index]
            self.tell(Receive(**self.head(run), message=message, index=run.index))

    def close(self, run: Run) -> None:
        writes = self.write_set(dict.fromkeys(sorted(run.ledger), run))
        run.ledger.clear()
        if self.random.random() < 0.7:
            self.tell(Commit(**self.head(run), writes=writes, index=run.index))
        else:
            self.tell(
                Discard(
                    **self.head(run),
                    writes=writes,
                    cause=DiscardCause.FAILED,
                    ledger=run.ref.epoch,
                    index=run.index,
                )
            )
            run.undo(run.index)
        self.end(run)

    def finish(self, run: Run) -> None:
        """Run supersteps until no message waits, then release."""
        if run.inside:
            self.close(run)
        while set(run.sent) - set(run.received):
            self.begin(run)
            self.receive(run)
            self.close(run)
        self.release(run)

    def save(self, run: Run) -> None:
        checkpoint = f"c{len(self.told)}"
        self.tell(
            CheckpointSave(
                **self.head(run),
                checkpoint=checkpoint,
                parent=run.parent,
                parts=(("x", run.ref.epoch), ("y", run.ref.epoch)),
                taken=("x", "y"),
                previous=self.left_by(run),
            )
        )
        self.saves.append(checkpoint)
        run.parent = checkpoint

    def refuse(self, run: Run) -> None:
        if self.random.random() < 0.5:
            refused = Discard(
                **self.head(run),
                writes=WriteSet(),
                cause=DiscardCause.FINALIZER,
                fenced=True,
                ledger=run.ref.epoch,
            )
        else:
            refused = Late(
                **self.head(run),
                kind=LateKind.STAGE,
                writes=self.write_set({"a": run}),
                ledger=run.ref.epoch,
            )
        self.tell(refused)
