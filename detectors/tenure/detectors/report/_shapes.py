"""What a timeline is drawn with; frozen, and free of any medium.

A place is a row of the timeline of one section, counted from 0. It stands for an order,
never for a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tenure.detectors.anomalies import Severity
from tenure.detectors.findings import Finding
from tenure.detectors.report._report import Report
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Execute,
    ForeignDelivery,
    ForeignRead,
    Late,
    Operation,
    Outcome,
    Receive,
    Release,
    RunRef,
    Send,
    SuperstepEnd,
    SuperstepStart,
)

RANK: Final[Mapping[Severity | None, int]] = MappingProxyType({
    Severity.VIOLATION: 0,
    Severity.WARNING: 1,
    Severity.AVERTED: 2,
    Severity.INFORMATION: 3,
    None: 4,
})
"""Severities, the worst first; `None` is no finding at all."""


class Kind(StrEnum):
    """What a mark stands for; each has a shape of its own."""

    CLAIM = "claim"
    RELEASE = "release"
    SUPERSTEP = "superstep"
    EXECUTE = "execute"
    COMMIT = "commit"
    DISCARD = "discard"
    FENCED = "fenced discard"
    CHECKPOINT = "checkpoint"
    LATE = "late"
    FOREIGN = "foreign"


_KINDS: Final[Mapping[type[Operation], Kind]] = MappingProxyType({
    Claim: Kind.CLAIM,
    Release: Kind.RELEASE,
    SuperstepStart: Kind.SUPERSTEP,
    SuperstepEnd: Kind.SUPERSTEP,
    Execute: Kind.EXECUTE,
    Commit: Kind.COMMIT,
    Discard: Kind.DISCARD,
    CheckpointSave: Kind.CHECKPOINT,
    CheckpointRestore: Kind.CHECKPOINT,
    Late: Kind.LATE,
    Send: Kind.SUPERSTEP,
    Receive: Kind.SUPERSTEP,
    ForeignRead: Kind.FOREIGN,
    ForeignDelivery: Kind.FOREIGN,
})


def kind_of(operation: Operation) -> Kind:
    """Return what the mark of `operation` stands for."""
    if isinstance(operation, Discard) and operation.fenced:
        return Kind.FENCED
    return _KINDS[type(operation)]


@dataclass(frozen=True, slots=True)
class Mark:
    """One operation.

    Attributes:
        place: Its row.
        lane: The lane of its run, by number.
        kind: What it stands for.
        operation: The operation.
        findings: Findings that accuse it, by number.
        severity: The worst of them.
    """

    place: int
    lane: int
    kind: Kind
    operation: Operation
    findings: tuple[int, ...] = ()
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Positions of one process that are not in the report.

    Attributes:
        place: Its row.
        process: Who counted them.
        first: The first of them.
        last: The last of them.
    """

    place: int
    process: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One run in one process.

    Attributes:
        run: The run.
        group: Column group, by number: one for each process while they are few.
        column: Column within the group. Far apart, runs share one.
        first: Place where something is drawn in it first.
        last: Place where something is drawn in it last.
    """

    run: RunRef
    group: int
    column: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Bar:
    """A tenure: from claim to release.

    Attributes:
        lane: The lane of its run, by number.
        first: Place of the claim, or from where the run is known to own.
        last: Place of the release, or until where the run may own.
        claimed: Whether the claim was seen.
        released: Whether the release, or the claim that superseded, was seen.
        outcome: How it ended, where that is known.
    """

    lane: int
    first: int
    last: int
    claimed: bool
    released: bool
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Superstep:
    """One superstep of a run.

    Attributes:
        lane: The lane of its run, by number.
        index: Its number in the run.
        first: Where it begins.
        last: Where it ends, or where its run is seen last.
    """

    lane: int
    index: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Arrow:
    """A finding, drawn from the culprit to whom it harms.

    Attributes:
        finding: The finding, by number.
        lane: The culprit's lane, by number.
        place: Place of the culprit's mark.
        to_lane: The lane of the victim, else of the owner, by number.
        to_place: Where the arrow meets it.
        says: What it is about.
    """

    finding: int
    lane: int
    place: int
    to_lane: int
    to_place: int
    says: str


@dataclass(frozen=True, slots=True)
class Section:
    """The timeline of one instance.

    Attributes:
        engine: Engine and version.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        life: 1, or more where an identity was used again by a later instance.
        processes: Who counted the operations, in the order of their first claims.
        groups: How many columns each column group has.
        rows: Marks and gaps, each at its place.
        lanes: Runs, in the order in which they appear.
        bars: Tenures.
        supersteps: Supersteps.
        arrows: Findings that have somebody to point at.
        severity: The worst finding in it.
    """

    engine: str
    workflow: str
    instance: str
    life: int
    processes: tuple[str, ...]
    groups: tuple[int, ...]
    rows: tuple[Mark | Gap, ...]
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    supersteps: tuple[Superstep, ...]
    arrows: tuple[Arrow, ...]
    severity: Severity | None

    @property
    def columns(self) -> int:
        """How many columns there are in all groups."""
        return sum(self.groups)

    def column(self, lane: int) -> int:
        """Return the column of a lane, counted over all groups."""
        found = self.lanes[lane]
        return sum(self.groups[: found.group]) + found.column


@dataclass(frozen=True, slots=True)
class Placed:
    """A finding, and where its culprit is drawn.

    Attributes:
        finding: The finding.
        section: The section, by number.
        place: Place of the culprit's mark.
    """

    finding: Finding
    section: int
    place: int


@dataclass(frozen=True, slots=True)
class Picture:
    """A report that has been laid out.

    Attributes:
        report: What it shows.
        sections: One for each instance, those with the worst findings first.
        findings: The findings, the worst first; others refer to them by number.
        operations: How many operations are drawn.
    """

    report: Report
    sections: tuple[Section, ...]
    findings: tuple[Placed, ...]
    operations: int
