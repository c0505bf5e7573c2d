"""What fails a test: read from its marks, the setting and the command line."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

import pytest

from tenure.detectors.anomalies import CATALOGUE, Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.detectors.pytest_plugin._options import FAIL_ON, SETTING

_PROVEN: Final = frozenset({Certainty.CERTAIN, Certainty.CONFIRMED})
_HARMFUL: Final = frozenset({Severity.VIOLATION, Severity.WARNING})


@dataclass(frozen=True, slots=True)
class Policy:
    """What fails one test.

    Attributes:
        judges: Whether anything does; not if only the fixture asked to watch.
        fail_on: The least severity that does.
        expected: Slugs of the anomalies that the test is there to show.
    """

    judges: bool
    fail_on: Severity
    expected: frozenset[str]

    @classmethod
    def of(cls, item: pytest.Item) -> Self:
        """Read what `item` is marked with; the closest mark decides.

        Raises:
            pytest.fail.Exception: A mark says what is not known.
        """
        said: dict[str, Any] = {}
        for mark in item.iter_markers("tenure"):
            _check(mark)
            said = {**mark.kwargs, **said}
        fail_on = said.get("fail_on", item.config.getini(SETTING))
        marked = item.get_closest_marker("tenure") is not None
        return cls(
            judges=marked or item.config.option.tenure,
            fail_on=Severity(fail_on),
            expected=frozenset(_slugs(said.get("expect", ()))),
        )

    def fails(self, finding: Finding) -> bool:
        """Say whether `finding` fails the test."""
        if not self.judges or finding.severity not in _HARMFUL:
            return False
        if finding.anomaly in self.expected:
            return False
        if self.fail_on is Severity.WARNING:
            return True
        return finding.severity is Severity.VIOLATION and finding.certainty in _PROVEN

    def unmet(self, findings: Iterable[Finding]) -> list[str]:
        """Return what was expected and is not among `findings`."""
        found = {finding.anomaly for finding in findings if is_harmful(finding)}
        return sorted(self.expected - found)


def is_harmful(finding: Finding) -> bool:
    """Say whether `finding` is a fault; one that the engine averted is none."""
    return finding.severity in _HARMFUL


def _check(mark: pytest.Mark) -> None:
    strange = [*map(repr, mark.args), *sorted(mark.kwargs.keys() - _ARGUMENTS)]
    if strange:
        _refuse(f"takes fail_on and expect, by name; not {', '.join(strange)}")
    fail_on = mark.kwargs.get("fail_on", FAIL_ON[0])
    if fail_on not in FAIL_ON:
        _refuse(f"has fail_on={fail_on!r}: say {' or '.join(FAIL_ON)}")
    unknown = sorted(set(_slugs(mark.kwargs.get("expect", ()))) - CATALOGUE.keys())
    if unknown:
        _refuse(
            f"expects {', '.join(unknown)}: the anomalies are {', '.join(CATALOGUE)}"
        )


_ARGUMENTS: Final = frozenset({"fail_on", "expect"})


def _slugs(expect: str | Iterable[str]) -> list[str]:
    return [expect] if isinstance(expect, str) else [str(slug) for slug in expect]


def _refuse(problem: str) -> None:
    pytest.fail(f"The mark `tenure` of this test {problem}", pytrace=False)
