"""The catalogue: which anomalies there are, as data.

Rules, documentation pages and recorded histories are held to this catalogue by a test.
This module imports the standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Severity(StrEnum):
    """How bad it is."""

    VIOLATION = "violation"
    """Data was lost or corrupted."""

    WARNING = "warning"
    """Fencing is broken; nobody was seen to lose anything by it."""

    AVERTED = "averted"
    """It was asked for, and the engine's fence or isolation kept it harmless."""

    INFORMATION = "information"
    """Worth knowing, and no fault."""


class Certainty(StrEnum):
    """How sure it is."""

    CERTAIN = "certain"
    """The evidence leaves no other reading, whatever else was lost or reordered."""

    POSSIBLE = "possible"
    """Evidence is missing that could explain it; the finding names what."""

    PREDICTED = "predicted"
    """It did not happen, but nothing in the recorded order prevents it."""

    CONFIRMED = "confirmed"
    """It was predicted, and one directed run has shown it."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One kind of race over the ownership of a workflow instance.

    Attributes:
        slug: Its name in telemetry, file names and findings.
        title: Its name in sentences.
        rule: When it is one. E is the acting epoch, O the owner's, W the write set.
        known_as: The nearest name in the literature on isolation and mutual exclusion.
        implies: What may follow, or has followed.
        severity: The worst severity that a finding of it has.
        stays_possible_when: What must be missing for a finding to be less than certain;
            empty where the operation alone is the whole proof.
    """

    slug: str
    title: str
    rule: str
    known_as: str
    implies: str
    severity: Severity
    stays_possible_when: str


STALE_DISCARD: Final = Anomaly(
    slug="stale-discard",
    title="stale discard",
    rule=(
        "a discard, not fenced, whose W holds an epoch > E (violation); without such a "
        "victim and E < O (warning); refused, or of E's own ledger, and E < O (averted)"
    ),
    known_as="lost write (Jepsen); broken atomicity of the victim's superstep",
    implies="the victim's run ends as completed while its data is gone",
    severity=Severity.VIOLATION,
    stays_possible_when=(
        "W is unknown or capped and no victim is listed, or O is unknown"
    ),
)

LEAKED_WRITE: Final = Anomaly(
    slug="leaked-write",
    title="leaked write",
    rule="a commit whose W holds an epoch that is neither E nor inherited by E",
    known_as="G1a (aborted read) once somebody reads it; dirty update (Elle)",
    implies="an unfinished or failed superstep has become durable state",
    severity=Severity.VIOLATION,
    stays_possible_when="no end of the writer is ordered before the commit",
)

STALE_COMMIT: Final = Anomaly(
    slug="stale-commit",
    title="stale commit",
    rule="a commit with E < O",
    known_as="G0 (write cycle) if it closes one on two keys; else a fencing violation",
    implies="the owner goes on from state that changed under it; a fence is missing",
    severity=Severity.VIOLATION,
    stays_possible_when="O is known from another process only",
)

LATE_WRITE: Final = Anomaly(
    slug="late-write",
    title="late write",
    rule="a stage, send or output of E with E < O, or after the release of E",
    known_as="an event after commit or abort: an ill-formed history",
    implies=(
        "on a map that all runs share, a leaked write or a foreign delivery is next; "
        "on one ledger per epoch, nothing"
    ),
    severity=Severity.WARNING,
    stays_possible_when="the release of E, or whose ledger took the write, is unknown",
)

OVERLAPPING_OWNERS: Final = Anomaly(
    slug="overlapping-owners",
    title="overlapping owners",
    rule=(
        "a claim while the previous epoch is neither released nor superseded by policy"
    ),
    known_as="a mutex that is not linearizable",
    implies="two runs act as owner: every other anomaly is in reach",
    severity=Severity.WARNING,
    stays_possible_when="an operation between the two claims is missing, or the two "
    "claims come from two processes",
)

FOREIGN_DELIVERY: Final = Anomaly(
    slug="foreign-delivery",
    title="foreign delivery",
    rule="a message, output, event or fan-in part whose epoch of origin is not E",
    known_as="G1a (aborted read) at the output",
    implies="a user sees another run's data, or a run computes with it",
    severity=Severity.VIOLATION,
    stays_possible_when="",
)

EPOCH_REUSE: Final = Anomaly(
    slug="epoch-reuse",
    title="epoch reuse",
    rule="a claim with E <= the last epoch, or one epoch claimed by two runs",
    known_as="a fencing number that is not monotone; incompatible order (Elle)",
    implies="fencing is void: two runs cannot be told apart by their epoch",
    severity=Severity.WARNING,
    stays_possible_when="the claims are not numbered",
)

CATALOGUE: Final[Mapping[str, Anomaly]] = MappingProxyType({
    anomaly.slug: anomaly
    for anomaly in (
        STALE_DISCARD,
        LEAKED_WRITE,
        STALE_COMMIT,
        LATE_WRITE,
        OVERLAPPING_OWNERS,
        FOREIGN_DELIVERY,
        EPOCH_REUSE,
    )
})
"""Every anomaly by its slug."""
