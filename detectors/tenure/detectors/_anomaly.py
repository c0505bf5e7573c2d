"""What an anomaly is, how bad, and how sure. Imports the standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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
        variants: The forms that it takes, each with its severity; a finding names one.
        stays_possible_when: What must be missing for a finding to be less than certain;
            empty where the operation alone is the whole proof.
    """

    slug: str
    title: str
    rule: str
    known_as: str
    implies: str
    variants: Mapping[str, Severity]
    stays_possible_when: str

    @property
    def severity(self) -> Severity:
        """The worst severity that a finding of it has, unless a policy says else."""
        return min(self.variants.values(), key=list(Severity).index)
