"""What a failure, or a section of a report, says."""

from collections import Counter
from collections.abc import Sequence

from tenure.detectors.anomalies import CATALOGUE
from tenure.detectors.detector import Detector
from tenure.detectors.findings import Finding
from tenure.detectors.report import Report, Timeline, render_text


def failure(findings: Sequence[Finding]) -> str:
    """Say in one line, which pytest repeats in its summary, what was found."""
    return f"tenure found {_listed(findings)}"


def unmet(slugs: Sequence[str]) -> str:
    """Say what was expected and not found."""
    return f"tenure did not find what the test expects: {', '.join(slugs)}"


def heading(findings: Sequence[Finding]) -> str:
    """Return the title of a section."""
    return f"tenure: {_listed(findings)}"


def told(detector: Detector, timeline: Timeline) -> str:
    """Return what happened: each timeline, with the proofs below what they accuse."""
    return render_text(Report.of(detector, timeline))


def _listed(findings: Sequence[Finding]) -> str:
    counts = Counter(
        f"{CATALOGUE[finding.anomaly].title} ({finding.severity}) in {finding.workflow}"
        for finding in findings
    )
    return ", ".join(
        name if count == 1 else f"{count} x {name}" for name, count in counts.items()
    )
