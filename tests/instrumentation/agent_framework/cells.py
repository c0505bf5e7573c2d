"""What a story came to on one version of the engine, as data that can be compared.

It is imported as a part of the tests, and by a script that runs where no pytest is.
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tenure.detectors import Finding

Cell = dict[str, Any]

EXPECTED = Path(__file__).with_name("expected.toml")
RIGHT = "right"


def cell_of(told: Any, findings: Iterable[Finding]) -> Cell:
    """Return what was left and what was found; what is usual is left out.

    Args:
        told: What the story left.
        findings: What the detector found.
    """
    found: Cell = {"state": told.state, "outputs": told.outputs}
    if told.status != "IDLE":
        found["status"] = told.status or "raised"
    if told.notes:
        found["notes"] = told.notes
    if told.checkpoints:
        found["entry"] = told.checkpoints[0]
    found["findings"] = sorted({_in_words(finding) for finding in findings})
    return found


def _in_words(finding: Finding) -> str:
    victim = "-" if finding.victim_epoch is None else finding.victim_epoch
    words = (
        f"{finding.anomaly}/{finding.variant}",
        finding.severity.value,
        f"{finding.culprit_epoch}>{victim}",
        *finding.keys,
    )
    return " ".join(words)


class Expected:
    """The table of what each story has to come to on each version.

    A story says what would be right, and from which version on it comes to something
    else. A version that is not named is like the one before it, and right before all.
    """

    def __init__(self) -> None:
        self._stories: Mapping[str, Mapping[str, Any]] = tomllib.loads(
            EXPECTED.read_text(encoding="utf-8")
        )

    @property
    def names(self) -> list[str]:
        """The stories, in their order."""
        return list(self._stories)

    def right(self, story: str) -> Cell:
        """Return what the story should come to."""
        found: Cell = {"findings": [], **self._stories[story][RIGHT]}
        return found

    def cell(self, story: str, version: str) -> Cell:
        """Return what the story has to come to on a version of the engine."""
        known = {
            key: cell for key, cell in self._stories[story].items() if key != RIGHT
        }
        before = [key for key in known if _number(key) <= _number(version)]
        found = known[max(before, key=_number)] if before else RIGHT
        return self.right(story) if found == RIGHT else {"findings": [], **found}


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))
