"""An engine that breaks every rule: runs share one pending map, nobody is refused."""

from collections.abc import Callable
from random import Random

from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Commit,
    CommitCause,
    DeliveryKind,
    Discard,
    DiscardCause,
    ForeignDelivery,
    ForeignRead,
    Late,
    LateKind,
    Operation,
    Receive,
    Send,
    Trigger,
)

from .engine import Engine, Place, Run, Telling, place

SNAPSHOTS = "snapshots"
"""The key of the pending map that holds snapshots."""

MAX_RUNS = 8


class SharedMap(Engine):
    """Every run writes into one pending map, and nobody is ever refused."""

    def __init__(self, random: Random, telling: Telling, *, processes: int) -> None:
        super().__init__(random, telling, processes=processes)
        self.pending: dict[str, Run] = {}
        self.snapshots: dict[str, Run] = {}
        self.saves: list[tuple[str | None, Run, CheckpointSave, int]] = []
        self.claimed_after: dict[int, int] = {}
        # Who read from whom, by rank, and in which operation.
        self.reads: dict[Place, tuple[int, int]] = {}

    def play(self, steps: int, *, reuse: bool = False, mild: bool = False) -> None:
        """Let runs do something `steps` times; mild ones mostly keep their place."""
        self.claim(policy=True)
        verbs = self.verbs()
        for _ in range(steps):
            if self.random.random() < 0.15 and len(self.runs) < MAX_RUNS:
                self.succeed(reuse=reuse, mild=mild)
                continue
            honest = mild and self.random.random() < 0.97
            run = self.owner if honest else self.random.choice(self.runs)
            self.random.choice(verbs)(run)
        if mild:
            for run in self.runs:
                self.release(run)

    def verbs(self) -> list[Callable[[Run], object]]:
        return [
            self.stage,
            self.stage,
            self.commit,
            self.discard,
            self.deliver,
            self.release,
            *(6 * [self.step]),
            self.read,
            self.snapshot,
            self.save,
            self.send,
            self.receive,
        ]

    def succeed(self, *, reuse: bool, mild: bool) -> None:
        back = reuse and self.random.random() < 0.5
        epoch = self.random.randint(1, self.owner.ref.epoch) if back else None
        before = self.owner
        self.claim(epoch=epoch, policy=mild or self.random.random() < 0.5)
        self.claimed_after[len(self.runs) - 1] = len(self.saves)
        # It goes on from where the one before was, or goes back on purpose.
        earlier = [save.checkpoint for _, _, save, _ in self.saves]
        self.owner.found = earlier[-1] if earlier else None
        self.owner.parent = before.parent
        if earlier and self.random.random() < 0.5:
            self.owner.parent = self.random.choice(earlier)
            head = self.head(self.owner)
            self.tell(CheckpointRestore(**head, checkpoint=self.owner.parent))

    # Staged writes.

    def stage(self, run: Run) -> None:
        key = self.random.choice("abcdef")
        self.pending[key] = run
        if run.live and not self.stale(run):
            return
        late = Late(
            **self.head(run),
            kind=LateKind.STAGE,
            writes=self.write_set({key: run}),
            ledger=self.owner.ref.epoch,
            shared=True,
        )
        self.tell(late)
        self.accuse("late-write", "reaches-others", late)

    def commit(self, run: Run, *, index: int | None = None) -> None:
        writes, self.pending = self.pending, {}
        inherited = {
            writer.ref.epoch
            for writer in writes.values()
            if writer.released and writer is not run and self.random.random() < 0.3
        }
        own = [CommitCause.RUN_ENTRY, CommitCause.CHECKPOINT]
        cause = CommitCause.SUPERSTEP if index else self.random.choice(own)
        operation = Commit(
            **self.head(run),
            writes=self.write_set(writes),
            cause=cause,
            index=index,
            inherited=tuple(sorted(inherited)),
        )
        self.tell(operation)
        if self.stale(run):
            wrote = bool(writes) and self.telling.writes
            self.accuse("stale-commit", "written" if wrote else "empty", operation)
        for writer in writes.values():
            if writer is not run and writer.ref.epoch not in inherited:
                variant = cause.value.replace("_", "-")
                self.accuse("leaked-write", variant, operation, writer.claim)
        if index:
            self.conflicts(run, operation)

    def discard(self, run: Run, *, index: int | None = None) -> None:
        fenced = self.random.random() < 0.2
        trigger = self.random.choice([None, None, Trigger.GC, Trigger.SHUTDOWN])
        writes = {} if fenced else self.pending
        operation = Discard(
            **self.head(run),
            writes=self.write_set(writes),
            cause=DiscardCause.ABANDONED,
            fenced=fenced,
            ledger=self.owner.ref.epoch,
            shared=True,
            trigger=trigger,
            index=index,
            snapshots=(SNAPSHOTS,) if SNAPSHOTS in writes else (),
        )
        self.tell(operation)
        self.ended_by(trigger, operation)
        if fenced:
            if self.stale(run):
                self.accuse("stale-discard", "fenced", operation)
            return
        self.pending = {}
        self.thrown_away(run, writes, operation)
        if index:
            run.undo(index)

    def ended_by(self, trigger: Trigger | None, operation: Operation) -> None:
        if trigger is Trigger.GC:
            self.accuse("finalizer-by-gc", operation.name, operation)
        if trigger is Trigger.SHUTDOWN:
            self.accuse("finalizer-at-shutdown", operation.name, operation)

    def thrown_away(self, run: Run, writes: dict[str, Run], operation: Discard) -> None:
        hit = {key for key, one in writes.items() if self.rank(one) > self.rank(run)}
        if hit:
            # Without W, that there was a victim is beyond knowing.
            variant = "victim" if self.telling.writes else "victim|no-victim"
            self.accuse("stale-discard", variant, operation)
        elif self.stale(run):
            self.accuse("stale-discard", "no-victim", operation)
        if SNAPSHOTS in hit:
            self.accuse("lost-snapshot", "discarded", operation)
        if SNAPSHOTS in writes:
            self.snapshots.clear()

    def read(self, run: Run) -> None:
        """Read a key that somebody has staged."""
        if not self.pending:
            return
        key, writer = self.random.choice(sorted(self.pending.items(), key=_key))
        if writer is run:
            return
        operation = ForeignRead(**self.head(run), key=key, writer=writer.ref.epoch)
        self.tell(operation)
        over = not writer.live or self.stale(writer)
        # Whether it closes a circle is known in the end, see `circular`.
        self.accuse(
            "dirty-read", "aborted|unfinished" if over else "unfinished", operation
        )
        self.reads[place(operation)] = (self.rank(run), self.rank(writer))

    def circular(self, culprit: Place) -> bool:
        """Say whether the writer of a read has read from its reader, ever."""
        reader, writer = self.reads[culprit]
        return (writer, reader) in self.reads.values()

    # Supersteps.

    def step(self, run: Run) -> None:
        """Do the next thing of a superstep."""
        if not run.inside:
            self.begin(run)
        elif self.random.random() < 0.75:
            self.invoke(run)
        else:
            index = run.index
            if self.random.random() < 0.7:
                self.commit(run, index=index)
            else:
                self.discard(run, index=index)
            self.end(run)

    def invoke(self, run: Run) -> None:
        keys = self.random.sample("abcdef", 3)
        writes = tuple(keys[: self.random.randint(0, 2)])
        self.execute(
            run,
            executor=self.random.choice("xyz"),
            reads=tuple(self.random.sample("abcdef", self.random.randint(0, 2))),
            writes=writes,
            reduced=tuple(key for key in writes if self.random.random() < 0.4),
            isolated=self.random.random() < 0.3,
        )

    # What travels.

    def deliver(self, run: Run) -> None:
        origin = self.random.choice(self.runs)
        operation = ForeignDelivery(
            **self.head(run), kind=DeliveryKind.MESSAGE, origin=origin.ref.epoch
        )
        self.tell(operation)
        if origin is not run:
            self.accuse("foreign-delivery", "message", operation)

    def send(self, run: Run) -> None:
        if run.live and run.inside:
            message = f"m{len(self.told)}"
            run.sent[message] = [run.index]
            self.tell(Send(**self.head(run), message=message, index=run.index))

    def receive(self, run: Run) -> None:
        known = sorted({*run.sent, *run.received})
        if not (run.live and run.inside and known):
            return
        message = self.random.choice(known)
        if message in run.received and self.random.random() < 0.5:
            return
        operation = Receive(**self.head(run), message=message, index=run.index)
        self.tell(operation)
        if message in run.received:
            self.accuse("message-duplication", "received-twice", operation)
        run.received.setdefault(message, []).append(run.index)

    # Checkpoints.

    def snapshot(self, run: Run) -> None:
        part = self.random.choice("xyz")
        self.snapshots[part] = run
        self.pending[SNAPSHOTS] = run
        run.taken.add(part)

    def save(self, run: Run) -> None:
        parts = dict(self.snapshots)
        operation = CheckpointSave(
            **self.head(run),
            checkpoint=f"c{len(self.saves)}",
            parent=run.parent,
            parts=tuple((part, one.ref.epoch) for part, one in parts.items()),
            taken=tuple(sorted(run.taken)),
            previous=self.left_by(run),
        )
        self.tell(operation)
        if len(set(parts.values())) > 1:
            self.accuse("torn-checkpoint", "saved", operation)
        if run.taken - set(parts):
            self.accuse("lost-snapshot", "left-out", operation)
        if self.stale(run):
            self.accuse("fork", "stale-save", operation)
        self.branch(run, operation)
        self.saves.append((run.parent, run, operation, len(self.saves)))
        run.taken.clear()
        run.parent = operation.checkpoint

    def branch(self, run: Run, operation: CheckpointSave) -> None:
        """Compare with every other child: did the older run save after losing?"""
        for parent, other, sibling, number in self.saves:
            if parent is None or parent != run.parent or other is run:
                continue
            if self.rank(run) < self.rank(other):
                self.accuse("fork", "two-children", operation, sibling)
            elif number >= self.claimed_after[self.rank(run)]:
                self.accuse("fork", "two-children", sibling, operation)


def _key(entry: tuple[str, Run]) -> str:
    return entry[0]
