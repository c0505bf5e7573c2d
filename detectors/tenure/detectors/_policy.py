"""How bad findings are, where a user has another opinion than the catalogue.

A policy never changes what happened or how sure that is.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from tenure.detectors.anomalies import CATALOGUE, Severity
from tenure.detectors.findings import Finding

Severities = Mapping[str, Severity | str] | Callable[[Finding], Severity | str]
"""For `slug` or `slug/variant`, a severity; or what says the severity of a finding."""

_logger = logging.getLogger(__name__)


class SeverityPolicy:
    """Gives a finding the severity that the user wants.

    Args:
        severities: A severity for each slug or `slug/variant`, of which the more
            precise name counts; or a callable, which sees the catalogue's severity on
            the finding that it gets. One that raises is logged and has no say.

    Raises:
        ValueError: A slug, a variant or a severity is not known.
    """

    def __init__(self, severities: Severities) -> None:
        self._ask: Final = severities if callable(severities) else None
        self._known: Final = {} if callable(severities) else _checked(severities)

    def __call__(self, finding: Finding) -> Finding:
        """Return `finding` with its severity."""
        wanted = self._wanted(finding)
        if wanted is None or wanted is finding.severity:
            return finding
        return replace(finding, severity=wanted)

    def _wanted(self, finding: Finding) -> Severity | None:
        if self._ask is not None:
            try:
                return Severity(self._ask(finding))
            except Exception:
                # A detector must never raise into a run.
                _logger.exception("A severity policy could not judge a finding")
                return None
        slug = finding.anomaly
        exact = self._known.get(f"{slug}/{finding.variant}")
        return self._known.get(slug) if exact is None else exact


def _checked(severities: Mapping[str, Severity | str]) -> dict[str, Severity]:
    unknown = [name for name in severities if name not in _names()]
    if unknown:
        raise ValueError(
            f"no anomaly is called {_listed(unknown)}; known are {_listed(_names())}"
        )
    found: dict[str, Severity] = {}
    for name, severity in severities.items():
        try:
            found[name] = Severity(severity)
        except ValueError:
            raise ValueError(
                f"{name} cannot have the severity {str(severity)!r}; "
                f"use one of {_listed(one.value for one in Severity)}"
            ) from None
    return found


def _names() -> list[str]:
    """Every name that a policy may use: a slug, alone or with one of its variants."""
    return [
        name
        for slug, anomaly in CATALOGUE.items()
        for name in (slug, *(f"{slug}/{variant}" for variant in anomaly.variants))
    ]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
