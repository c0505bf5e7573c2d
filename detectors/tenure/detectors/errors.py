"""Errors of the detectors.

DetectorError
├─ MalformedTraceError (ValueError)     a trace cannot be read
└─ RaceError                            races, where the caller asked for an error

`RaceWarning` is the warning category of findings.
"""

from tenure.detectors.findings import Finding


class DetectorError(Exception):
    """Root of what the detectors raise."""


class MalformedTraceError(DetectorError, ValueError):
    """A trace cannot be read; it says nothing about what happened in the run.

    Args:
        where: The place, such as `trace.jsonl, line 3`.
        problem: What is wrong there, as a clause.
    """

    def __init__(self, where: str, problem: str = "it is not a trace") -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.where} cannot be read: {self.problem}"


class RaceError(DetectorError):
    """Races were found, and the caller asked to have them raised.

    Args:
        findings: What was found.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__(findings)
        self.findings = findings

    def __str__(self) -> str:
        count = len(self.findings)
        head = "1 race was found" if count == 1 else f"{count} races were found"
        return "\n".join([f"{head}:", *(f"- {finding}" for finding in self.findings)])


class RaceWarning(UserWarning):
    """A race was found."""
