"""What is remembered of one instance: who owned it when, and what never arrived.

Pure and bounded. Rules read it; only the judge changes it. Arrival order is no evidence
here: whatever is said about order is said from positions counted by one process.
"""

from collections import OrderedDict
from typing import Final

from tenure.detectors._blemishes import (
    FORGOTTEN,
    TARDY,
    UNLISTED,
    UNNUMBERED,
    UNOWNED,
    UNTOLD,
    ranges,
)
from tenure.detectors._lineage import Lineage
from tenure.detectors._messages import Messages
from tenure.detectors._sequence import Sequence
from tenure.detectors._silence import Silence
from tenure.detectors._steps import Superstep, Supersteps
from tenure.detectors._tenure import Tenure, precedes
from tenure.instrumentation.operations import (
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Execute,
    ForeignRead,
    Late,
    Operation,
    Receive,
    Release,
    Send,
    SuperstepEnd,
    SuperstepStart,
)

MAX_TENURES: Final = 64
"""How many of the newest epochs are remembered per instance."""

MAX_PROCESSES: Final = 16
"""How many processes' positions are remembered per instance."""

MAX_READS: Final = 64
"""How many pairs of reader and writer are remembered per instance."""

_ACTS: Final = (Commit, Discard, CheckpointSave, Late, ForeignRead)
"""What may be stale, and shows it by its owner."""


class History:
    """One instance: its epochs and the positions received from each process.

    Not safe to share between threads.
    """

    __slots__ = (
        "_forgotten",
        "_process",
        "_sequence",
        "_sequences",
        "_unnumbered",
        "_unowned",
        "blemishes",
        "dirty_reads",
        "lineage",
        "messages",
        "newest",
        "silence",
        "steps",
        "tenures",
    )

    def __init__(self) -> None:
        self.tenures: Final[dict[int, Tenure]] = {}
        # The greatest epoch seen claimed: the owner word.
        self.newest = 0
        # Invariant: only grows; with any, this record is never complete again.
        self.blemishes: Final[set[str]] = set()
        # Invariant: epochs up to here may have been remembered once and are not now.
        self._forgotten = 0
        self._sequences: Final[OrderedDict[str, Sequence]] = OrderedDict()
        self.steps: Final = Supersteps()
        # Checkpoints; `None` where none is told.
        self.lineage: Lineage | None = None
        # Messages of runs that are not over; `None` where no message is told.
        self.messages: Messages | None = None
        # For each reader's and writer's epoch, a read; `None` until there is one.
        self.dirty_reads: dict[tuple[int, int], ForeignRead] | None = None
        # For how long nothing has arrived, on the caller's clock.
        self.silence: Final = Silence()
        self._unnumbered = 0
        # Whether something was told without the owner: another process may have it.
        self._unowned = False
        self._process: str | None = None
        self._sequence = Sequence()

    # Taking operations in.

    def admit(self, operation: Operation) -> bool:
        """Note that `operation` has arrived; say whether it is to be judged.

        Args:
            operation: What happened.

        Returns:
            False for one that has arrived before, on whatever way.
        """
        run = operation.run
        if operation.seq is None:
            self.blemishes.add(UNNUMBERED)
            self._unnumbered += 1
        else:
            if run.process != self._process:
                self._turn_to(run.process)
            if not self._sequence.take(operation.seq):
                return False
        if run.epoch not in self.tenures:
            self._note(run.epoch)
        owner = operation.owner
        if owner is None:
            if isinstance(operation, _ACTS):
                self._note_unowned()
        elif owner.epoch not in self.tenures:
            self._note(owner.epoch)
        return True

    def claimed(self, claim: Claim) -> None:
        """Remember a claim, after it has been judged."""
        tenure = self.tenures.get(claim.run.epoch)
        if tenure is not None:
            if tenure.claim is None:
                tenure.claim = claim
            if any(
                seen is not None and seen.run.run_id != claim.run.run_id
                for seen in (tenure.claim, tenure.release)
            ):
                tenure.ambiguous = True
        self.newest = max(self.newest, claim.run.epoch)
        if claim.superseded is not None:
            if claim.superseded not in self.tenures:
                self._note(claim.superseded)
            replaced = self.tenures.get(claim.superseded)
            if replaced is not None:
                replaced.superseded = True

    def released(self, release: Release) -> None:
        """Remember a release, after it has been judged."""
        if self.messages is not None:
            self.messages.released(release)
        tenure = self.tenures.get(release.run.epoch)
        if tenure is None:
            return
        claim = tenure.claim
        if claim is not None and claim.run.run_id != release.run.run_id:
            tenure.ambiguous = True
        elif tenure.release is None:
            tenure.release = release
        elif tenure.release.run.run_id != release.run.run_id:
            tenure.ambiguous = True

    def committed(self, commit: Commit) -> None:
        """Remember that a commit whose write set is not all known hides leaks."""
        writes = commit.writes
        if writes is None or (
            writes.omitted and not writes.lists_all_foreign_to(commit.run.epoch)
        ):
            self.blemishes.add(UNLISTED)
        if commit.index is not None:
            step = self.steps.committed(commit, self._sequence.unbroken_from)
            if step is not None:
                self._note_unseen(step)

    def started(self, start: SuperstepStart) -> None:
        """Remember where a superstep began."""
        self.steps.newest_start = start

    def executed(self, execute: Execute) -> None:
        """Remember what an executor read and staged until its superstep has ended."""
        step = self.steps.executed(execute, self._sequence.unbroken_from)
        if step is not None:
            self._note_unseen(step)

    def ended(self, end: SuperstepEnd) -> None:
        """Forget what the executors of a superstep read and staged."""
        self.steps.ended(end, self._sequence.unbroken_from)

    def read(self, read: ForeignRead) -> None:
        """Remember who has read whose staged writes."""
        if self.dirty_reads is None:
            self.dirty_reads = {}
        if len(self.dirty_reads) < MAX_READS:
            self.dirty_reads.setdefault((read.run.epoch, read.writer), read)

    def saved(self, save: CheckpointSave) -> None:
        """Remember a checkpoint, after it has been judged."""
        if self.lineage is None:
            self.lineage = Lineage()
        self.lineage.saved(save)

    def sent(self, send: Send) -> None:
        """Remember a message until it has been received or its run is over."""
        messages = self._messages_of(send)
        if messages is not None and not messages.sent(send):
            self.blemishes.add(FORGOTTEN)

    def received(self, receive: Receive) -> None:
        """Remember that a message has been received, until its run is over."""
        messages = self._messages_of(receive)
        if messages is not None and not messages.received(receive):
            self.blemishes.add(FORGOTTEN)

    def discarded(self, discard: Discard) -> None:
        """Forget messages of a superstep that did not happen."""
        if discard.fenced or discard.index is None:
            return
        messages = self._messages_of(discard)
        if messages is not None and not messages.discarded(discard):
            self.blemishes.add(FORGOTTEN)

    def _messages_of(self, operation: Send | Receive | Discard) -> Messages | None:
        """Where a message is remembered: nowhere, once its run is over."""
        tenure = self.tenures.get(operation.run.epoch)
        release = None if tenure is None else tenure.release
        if release is not None and release.run.run_id == operation.run.run_id:
            if not precedes(release, operation) and not isinstance(operation, Discard):
                self.blemishes.add(TARDY)
            return None
        if self.messages is None:
            self.messages = Messages()
        return self.messages

    def _note_unseen(self, step: Superstep) -> None:
        """Note that a conflict may have gone unseen."""
        if step.cut_short and step.shared and step.commit is not None:
            self.blemishes.add(UNTOLD)
        evicted = self.steps.evicted
        if evicted is not None:
            self.steps.evicted = None
            told = self._sequences.get(evicted.process)
            # A commit of it that is still to come is stale, and found for that.
            over = evicted.epoch < self.newest
            if not over or told is None or told.unbroken_from > 1:
                self.blemishes.add(FORGOTTEN)

    # Answering rules.

    def has_forgotten(self, epoch: int) -> bool:
        """Say whether `epoch` is one of those that there was no room for any more."""
        return epoch <= self._forgotten

    def claim_of(self, epoch: int | None) -> Claim | None:
        """Return the claim of `epoch`, if it has been seen."""
        tenure = None if epoch is None else self.tenures.get(epoch)
        return None if tenure is None else tenure.claim

    def release_before(self, operation: Operation, epoch: int) -> Release | None:
        """Return the release of `epoch` if it is known to precede `operation`."""
        tenure = self.tenures.get(epoch)
        if tenure is None or tenure.release is None or tenure.ambiguous:
            return None
        return tenure.release if precedes(tenure.release, operation) else None

    def newer_claim(self, operation: Operation) -> tuple[Claim | None, bool]:
        """Look for a claim that made `operation`'s epoch stale before it happened.

        For operations that do not say who owned the instance.

        Args:
            operation: What happened.

        Returns:
            The newest claim of a greater epoch, and whether it is known to precede the
            operation; `None` and false if there is no such claim.
        """
        epoch = operation.run.epoch
        newer = [
            tenure.claim
            for known, tenure in self.tenures.items()
            if known > epoch and tenure.claim is not None
        ]
        newest = max(
            (claim for claim in newer if not precedes(operation, claim)),
            key=_epoch,
            default=None,
        )
        own = self.tenures[epoch] if epoch in self.tenures else Tenure()
        proven = (
            newest is not None
            and own.claim is not None
            and not own.ambiguous
            and precedes(own.claim, newest)
            and precedes(newest, operation)
        )
        return newest, proven

    def missing_between(self, first: Operation, last: Operation) -> tuple[str, ...]:
        """Name what keeps the two from being neighbours beyond doubt.

        Returns:
            Nothing, if one process counted both, `first` before `last`, and every
            operation between them has arrived.
        """
        process = first.run.process
        if process != last.run.process:
            return (f"the order of processes {process} and {last.run.process}",)
        if first.seq is None or last.seq is None:
            return (f"positions of the operations of process {process}",)
        sequence = self._sequences.get(process)
        if sequence is None or sequence.blurred_at(first.seq):
            return (f"what process {process} told long ago",)
        return ranges(sequence.gaps(first.seq, last.seq), process)

    @property
    def arrived(self) -> tuple[int, ...]:
        """How much has arrived; it changes with every operation."""
        numbered = [one.received for one in list(self._sequences.values())]
        return (self._unnumbered, *numbered)

    # Answering the verdict.

    @property
    def complete(self) -> bool:
        """Whether nothing is missing and the last run has released.

        Only then may silence be read as innocence.
        """
        return not self.missing()

    def missing(self) -> tuple[str, ...]:
        """Name what telemetry is missing; empty if nothing is known to be."""
        found = sorted(self.blemishes)
        if self._unowned and len(self._sequences) > 1:
            found.append(UNOWNED)
        lineage = self.lineage
        if lineage is not None and lineage.doubtful and len(self._sequences) > 1:
            found.append("parents of checkpoints forgotten for want of room")
        for process, sequence in list(self._sequences.items()):
            found.extend(ranges(sequence.gaps(), process))
            if sequence.blurred_at(1):
                found.append(f"what process {process} told long ago")
        unclaimed = sorted(
            epoch
            for epoch, tenure in list(self.tenures.items())
            if tenure.claim is None
        )
        found.extend(f"the claim of epoch {epoch}" for epoch in unclaimed)
        last = self.tenures.get(self.newest)
        if last is None or not last.ended:
            found.append(f"the release of epoch {self.newest}" if last else "any claim")
        return tuple(found)

    def _note_unowned(self) -> None:
        """Note that a claim which arrives later may prove something stale."""
        if self._sequence.unbroken_from > 1:
            self.blemishes.add(UNOWNED)
        self._unowned = True

    # How it stays bounded.

    def _turn_to(self, process: str) -> None:
        sequence = self._sequences.get(process)
        if sequence is None:
            sequence = self._sequences[process] = Sequence()
            if len(self._sequences) > MAX_PROCESSES:
                _, oldest = self._sequences.popitem(last=False)
                if not oldest.complete:
                    self.blemishes.add(FORGOTTEN)
        else:
            self._sequences.move_to_end(process)
        self._process, self._sequence = process, sequence

    def _note(self, epoch: int) -> None:
        """Remember that `epoch` exists, so that its claim is known to be missing."""
        if self.has_forgotten(epoch) or epoch < 1:
            return
        self.tenures[epoch] = Tenure()
        if len(self.tenures) > MAX_TENURES:
            oldest = min(self.tenures)
            self._forgotten = oldest
            gone = self.tenures.pop(oldest)
            if gone.claim is None:
                self.blemishes.add(FORGOTTEN)


def _epoch(claim: Claim) -> int:
    return claim.run.epoch
