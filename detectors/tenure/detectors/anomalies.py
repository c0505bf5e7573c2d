"""The catalogue: which anomalies there are, as data.

Rules, documentation pages and recorded histories are held to this catalogue by a test.
This module imports the standard library only.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.detectors._anomaly import Anomaly, Certainty, Severity

_VIOLATION: Final = Severity.VIOLATION
_WARNING: Final = Severity.WARNING
_AVERTED: Final = Severity.AVERTED
_INFORMATION: Final = Severity.INFORMATION


def _forms(**severities: Severity) -> Mapping[str, Severity]:
    """Name the forms of an anomaly; names are written with hyphens elsewhere."""
    return MappingProxyType({
        name.replace("_", "-"): severity for name, severity in severities.items()
    })


# What becomes of staged writes.

STALE_DISCARD: Final = Anomaly(
    slug="stale-discard",
    title="stale discard",
    rule=(
        "a discard, not fenced, whose W holds an epoch > E (victim); without such a "
        "victim and E < O (no-victim); refused (fenced), or of E's own ledger that no "
        "other run shares (own-ledger), and E < O"
    ),
    known_as="lost write (Jepsen); broken atomicity of the victim's superstep",
    implies="the victim's run ends as completed while its data is gone",
    variants=_forms(
        victim=_VIOLATION, no_victim=_WARNING, fenced=_AVERTED, own_ledger=_AVERTED
    ),
    stays_possible_when=(
        "W is unknown or capped and no victim is listed, or O is unknown"
    ),
)

LEAKED_WRITE: Final = Anomaly(
    slug="leaked-write",
    title="leaked write",
    rule=(
        "a commit whose W holds an epoch that is neither E nor inherited by E, in a "
        "superstep, at run entry or for a checkpoint"
    ),
    known_as="G1a (aborted read) once somebody reads it; dirty update (Elle)",
    implies="an unfinished or failed superstep has become durable state",
    variants=_forms(superstep=_VIOLATION, run_entry=_VIOLATION, checkpoint=_VIOLATION),
    stays_possible_when="no end of the writer is ordered before the commit",
)

STALE_COMMIT: Final = Anomaly(
    slug="stale-commit",
    title="stale commit",
    rule="a commit with E < O, of something (written) or of nothing (empty)",
    known_as="G0 (write cycle) if it closes one on two keys; else a fencing violation",
    implies="the owner goes on from state that changed under it; a fence is missing",
    variants=_forms(written=_VIOLATION, empty=_WARNING),
    stays_possible_when="O is known from another process only",
)

LATE_WRITE: Final = Anomaly(
    slug="late-write",
    title="late write",
    rule=(
        "a stage, send or output of E with E < O, or after the release of E: into E's "
        "own ledger (own-ledger), else into another's or a shared one (reaches-others)"
    ),
    known_as="an event after commit or abort: an ill-formed history",
    implies=(
        "on a map that all runs share, a leaked write or a foreign delivery is next; "
        "on one ledger per epoch, nothing"
    ),
    variants=_forms(reaches_others=_WARNING, own_ledger=_AVERTED),
    stays_possible_when="the release of E, or whose ledger took the write, is unknown",
)

DIRTY_READ: Final = Anomaly(
    slug="dirty-read",
    title="dirty read",
    rule=(
        "a read of what another epoch has staged: of one that is over (aborted), of "
        "one that has read what E staged (circular), of any other (unfinished)"
    ),
    known_as=(
        "G1a (aborted read) if the writer is over, G1c (circular information flow) if "
        "it is mutual, else G1a or G1b (intermediate read)"
    ),
    implies="the reader computes with a value that no committed state ever held",
    variants=_forms(aborted=_VIOLATION, circular=_VIOLATION, unfinished=_VIOLATION),
    stays_possible_when="",
)

# Checkpoints.

TORN_CHECKPOINT: Final = Anomaly(
    slug="torn-checkpoint",
    title="torn checkpoint",
    rule=(
        "a checkpoint whose parts were taken in more than one epoch, when it is saved "
        "(saved) or when it is restored (restored)"
    ),
    known_as="read skew; G-single; fractured read",
    implies="a restore mixes the executors of one run with those of another",
    variants=_forms(saved=_VIOLATION, restored=_VIOLATION),
    stays_possible_when="",
)

LOST_SNAPSHOT: Final = Anomaly(
    slug="lost-snapshot",
    title="lost snapshot",
    rule=(
        "a discard, not fenced, that hits a snapshot of an epoch > E (discarded), or a "
        "checkpoint without a snapshot that was taken for it (left-out)"
    ),
    known_as="lost write (Jepsen)",
    implies="a restore silently resets an executor",
    variants=_forms(discarded=_VIOLATION, left_out=_VIOLATION),
    stays_possible_when="",
)

FORK: Final = Anomaly(
    slug="fork",
    title="fork",
    rule=(
        "two checkpoints with one parent, saved by two runs, the older of which had "
        "lost the instance (two-children); a checkpoint saved with E < O (stale-save)"
    ),
    known_as="lost update on the lineage; split brain",
    implies="one of two branches is unreachable, and what it holds is lost",
    variants=_forms(two_children=_VIOLATION, stale_save=_WARNING),
    stays_possible_when=(
        "the two runs were in two processes, the older did not know that it had lost "
        "the instance, and the newer did not say that it left the older's branch: a "
        "run may also go back on purpose"
    ),
)

# Who owns.

OVERLAPPING_OWNERS: Final = Anomaly(
    slug="overlapping-owners",
    title="overlapping owners",
    rule=(
        "a claim while the previous epoch is neither released nor superseded by policy"
    ),
    known_as="a mutex that is not linearizable",
    implies="two runs act as owner: every other anomaly is in reach",
    variants=_forms(claimed=_WARNING),
    stays_possible_when="an operation between the two claims is missing, or the two "
    "claims come from two processes",
)

EPOCH_REUSE: Final = Anomaly(
    slug="epoch-reuse",
    title="epoch reuse",
    rule=(
        "one epoch claimed by two runs (shared), or a claim with E < the last epoch "
        "(backward)"
    ),
    known_as="a fencing number that is not monotone; incompatible order (Elle)",
    implies="fencing is void: two runs cannot be told apart by their epoch",
    variants=_forms(shared=_WARNING, backward=_WARNING),
    stays_possible_when="the claims are not numbered",
)

NEVER_RELEASED: Final = Anomaly(
    slug="never-released",
    title="never released",
    rule="no release and no operation of the instance for as long as the caller says",
    known_as="a liveness failure; an operation that stays `info` (Jepsen)",
    implies="the instance stays occupied until somebody supersedes the run",
    variants=_forms(silent=_WARNING),
    stays_possible_when="always: a run may be slow, and its telemetry late",
)

FINALIZER_BY_GC: Final = Anomaly(
    slug="finalizer-by-gc",
    title="finalizer by gc",
    rule="a discard or a release that the garbage collector brought about",
    known_as="none",
    implies="when a run ends is the collector's choice; stale discards come with load",
    variants=_forms(discard=_INFORMATION, release=_INFORMATION),
    stays_possible_when="",
)

FINALIZER_AT_SHUTDOWN: Final = Anomaly(
    slug="finalizer-at-shutdown",
    title="finalizer at shutdown",
    rule="a discard or a release that the end of the loop or process brought about",
    known_as="none",
    implies="nobody ended the run: its last superstep is lost, and so may telemetry be",
    variants=_forms(discard=_INFORMATION, release=_INFORMATION),
    stays_possible_when="",
)

# Within one superstep.

WRITE_WRITE_CONFLICT: Final = Anomaly(
    slug="write-write-conflict",
    title="write-write conflict",
    rule=(
        "two executors staged one key in one superstep, which was committed, and not "
        "both through a declared reducer"
    ),
    known_as="G0 (dirty write) between executors; P4 (lost update) if they read first",
    implies="which of the writes is left depends on scheduling; the other is lost",
    variants=_forms(committed=_VIOLATION),
    stays_possible_when="",
)

READ_WRITE_CONFLICT: Final = Anomaly(
    slug="read-write-conflict",
    title="read-write conflict",
    rule=(
        "in one superstep, which was committed, an executor whose reads are not "
        "isolated read a key that another staged without a declared reducer"
    ),
    known_as="a non-repeatable read; write skew (G2) if it is mutual",
    implies="what the reader computed depends on scheduling",
    variants=_forms(committed=_WARNING),
    stays_possible_when="",
)

# What travels.

FOREIGN_DELIVERY: Final = Anomaly(
    slug="foreign-delivery",
    title="foreign delivery",
    rule="a message, output, event or fan-in part whose epoch of origin is not E",
    known_as="G1a (aborted read) at the output",
    implies="a user sees another run's data, or a run computes with it",
    variants=_forms(
        message=_VIOLATION, output=_VIOLATION, event=_VIOLATION, fan_in=_VIOLATION
    ),
    stays_possible_when="",
)

MESSAGE_LOSS: Final = Anomaly(
    slug="message-loss",
    title="message loss",
    rule="a message that was sent and not received when its run completed",
    known_as="a queue that is not linearizable: a dequeue is missing",
    implies="work was accepted and never done",
    variants=_forms(undelivered=_VIOLATION),
    stays_possible_when="anything of the run after the message was sent is missing",
)

MESSAGE_DUPLICATION: Final = Anomaly(
    slug="message-duplication",
    title="message duplication",
    rule="a message received twice in one run, with no discard of the first receipt",
    known_as="a queue that is not linearizable: one enqueue, two dequeues",
    implies="work was done twice",
    variants=_forms(received_twice=_VIOLATION),
    stays_possible_when="anything of the run between the two receipts is missing",
)

CATALOGUE: Final[Mapping[str, Anomaly]] = MappingProxyType({
    anomaly.slug: anomaly
    for anomaly in (
        STALE_DISCARD,
        LEAKED_WRITE,
        DIRTY_READ,
        STALE_COMMIT,
        LATE_WRITE,
        TORN_CHECKPOINT,
        LOST_SNAPSHOT,
        OVERLAPPING_OWNERS,
        EPOCH_REUSE,
        FORK,
        WRITE_WRITE_CONFLICT,
        READ_WRITE_CONFLICT,
        MESSAGE_LOSS,
        MESSAGE_DUPLICATION,
        FOREIGN_DELIVERY,
        NEVER_RELEASED,
        FINALIZER_BY_GC,
        FINALIZER_AT_SHUTDOWN,
    )
})
"""Every anomaly by its slug."""

__all__ = ["CATALOGUE", "Anomaly", "Certainty", "Severity"]
