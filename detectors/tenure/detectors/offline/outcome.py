"""What a check of trace files has to say: verdicts, findings, and what was not read.

Everything here is immutable, and plain data that any format can be made of.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tenure.detectors.anomalies import Certainty, Severity
from tenure.detectors.detector import Verdict
from tenure.detectors.findings import Finding
from tenure.detectors.offline.spans import Problem
from tenure.detectors.report import Report as Drawn
from tenure.instrumentation.operations import Operation


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Spans of tenure that lack something without which they say nothing.

    Attributes:
        what: What they lack; nearly always the name of an attribute.
        count: How many there are.
        span: Name of the first one.
        line: Its line, from 1; 0 in formats without lines.
    """

    what: str
    count: int
    span: str
    line: int = 0

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line else ""
        first = f"the first is {self.span!r}{at}"
        return f"{counted(self.count, 'span')} without a readable {self.what} ({first})"


def counted(count: int, what: str) -> str:
    """Return `count` and the word, in the plural where it needs one."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def by_severity(counts: Mapping[str, int]) -> dict[str, int]:
    """Return `counts` with the worst severity first."""
    return {
        severity.value: counts[severity.value]
        for severity in Severity
        if counts.get(severity.value)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReport:
    """What was read of one file, and what was not.

    Attributes:
        name: The file, as it was named.
        formats: What spans in it were written in.
        spans: How many spans it holds, of whatever origin.
        operations: How many operations these carry.
        unreadable: Spans of tenure that could not be read, by what they lack.
        problems: The first places that could not be read.
        problem_count: How many there are.
        unfinished: Whether all that could not be read was never written: it is empty,
            or breaks off. So does the file of a process that was killed.
    """

    name: str
    formats: tuple[str, ...] = ()
    spans: int = 0
    operations: int = 0
    unreadable: tuple[Unreadable, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    unfinished: bool = False

    @property
    def unreadable_count(self) -> int:
        """How many spans of tenure could not be read."""
        return sum(lack.count for lack in self.unreadable)

    @property
    def lost(self) -> tuple[str, ...]:
        """What of it the verdict has to do without."""
        lost = [
            f"{counted(lack.count, 'span')} of {self.name} without a readable "
            f"{lack.what}"
            for lack in self.unreadable
        ]
        if self.problem_count:
            places = counted(self.problem_count, "place")
            lost.append(f"what stood in {places} of {self.name} that cannot be read")
        return tuple(lost)

    def __str__(self) -> str:
        held = ", ".join(self.formats) or "no spans"
        counts = [
            counted(self.spans, "span"),
            counted(self.operations, "operation"),
        ]
        if self.unreadable_count:
            counts.append(f"{self.unreadable_count} unreadable")
        if self.problem_count:
            counts.append(f"{counted(self.problem_count, 'place')} not read")
        return f"{self.name}: {held}, {', '.join(counts)}"

    @property
    def refused(self) -> bool:
        """Whether something is there, and nothing at all of it could be read."""
        return self.problem_count > 0 and self.spans == 0 and not self.unfinished

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        return {
            "name": self.name,
            "formats": list(self.formats),
            "spans": self.spans,
            "operations": self.operations,
            "unreadable": [
                {
                    "lacks": lack.what,
                    "count": lack.count,
                    "first_span": lack.span,
                    "first_line": lack.line or None,
                }
                for lack in self.unreadable
            ],
            "problems": [
                {"line": problem.line or None, "reason": problem.reason}
                for problem in self.problems
            ],
            "problem_count": self.problem_count,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """A finding, and where it was found.

    Attributes:
        finding: The finding.
        file: The file with the culprit's span, or with the one that completed the
            proof, where the culprit's was read too long before.
        line: Its line, from 1; 0 in formats without lines.
    """

    finding: Finding
    file: str
    line: int = 0

    @property
    def proven(self) -> bool:
        """Whether it alone makes the verdict `violated`."""
        return (
            self.finding.severity is Severity.VIOLATION
            and self.finding.certainty in {Certainty.CERTAIN, Certainty.CONFIRMED}
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        place = {"file": self.file, "line": self.line or None}
        return {**self.finding.as_dict(), **place}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceReport:
    """What may be said of one instance.

    Attributes:
        engine: Engine and version.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        verdict: `clean` only if nothing is missing of it, or of the files.
        operations: How many operations of it were read.
        epochs: The lowest and the highest epoch that acted.
        findings: How many findings there are, by severity.
        missing: What telemetry of it is missing.
    """

    engine: str
    workflow: str
    instance: str
    verdict: Verdict
    operations: int
    epochs: tuple[int, int]
    findings: Mapping[str, int]
    missing: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Workflow and instance, in one word."""
        return f"{self.workflow}/{self.instance}"

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        return {
            "engine": self.engine,
            "workflow": self.workflow,
            "instance": self.instance,
            "verdict": self.verdict.value,
            "operations": self.operations,
            "epochs": list(self.epochs),
            "findings": dict(self.findings),
            "missing": list(self.missing),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check of trace files has to say.

    Attributes:
        verdict: Of everything together.
        files: In the order in which they were named.
        instances: Those with a violation first, then the inconclusive ones.
        sightings: The findings, in the order in which they were made.
        finding_counts: How many findings there are, by severity; more than there are
            sightings if not all were kept.
        missing: What keeps the verdict from being `clean`, but for violations.
        operations_kept: Those around the first violations and warnings, then the newest
            ones of other instances; enough for timelines.
        left_out: Which operations are not among them, for want of room.
    """

    verdict: Verdict
    files: tuple[FileReport, ...]
    instances: tuple[InstanceReport, ...]
    sightings: tuple[Sighting, ...]
    finding_counts: Mapping[str, int]
    missing: tuple[str, ...]
    operations_kept: tuple[Operation, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, in the order in which they were made."""
        return tuple(sighting.finding for sighting in self.sightings)

    @property
    def refused(self) -> tuple[FileReport, ...]:
        """Files in which something is there that could not be read at all."""
        return tuple(file for file in self.files if file.refused)

    @property
    def spans(self) -> int:
        """How many spans were read."""
        return sum(file.spans for file in self.files)

    @property
    def operations(self) -> int:
        """How many operations were read."""
        return sum(file.operations for file in self.files)

    @property
    def unreadable(self) -> int:
        """How many spans of tenure could not be read."""
        return sum(file.unreadable_count for file in self.files)

    @property
    def problems(self) -> int:
        """How many places could not be read."""
        return sum(file.problem_count for file in self.files)

    def drawn(self) -> Drawn:
        """Return it as what `tenure.detectors.report` draws: timelines with proofs."""
        return Drawn(
            verdict=self.verdict,
            findings=self.findings,
            operations=self.operations_kept,
            sources=tuple(str(file) for file in self.files),
            missing=self.missing,
            left_out=self.left_out,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON can hold."""
        return {
            "verdict": self.verdict.value,
            "counts": {
                "files": len(self.files),
                "spans": self.spans,
                "operations": self.operations,
                "unreadable": self.unreadable,
                "problems": self.problems,
                "findings": dict(self.finding_counts),
            },
            "files": [file.as_dict() for file in self.files],
            "instances": [instance.as_dict() for instance in self.instances],
            "findings": [sighting.as_dict() for sighting in self.sightings],
            "missing": list(self.missing),
        }
