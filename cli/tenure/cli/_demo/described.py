"""What the story is described to do on each engine, to compare with what it did."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tenure.cli._demo.play import Played
from tenure.cli._demo.story import FIRST, SECOND, Request
from tenure.detectors import Finding


def deviations(played: Played) -> tuple[str, ...]:
    """Return how `played` differs from what is described; nothing if it does not.

    Args:
        played: What an engine made of the story.

    Returns:
        A clause for each difference.
    """
    engine = played.engine.partition("/")[0]
    return tuple(_DESCRIBED[engine](played))


def _on_agent_framework(played: Played) -> Iterator[str]:
    """The successor's write is lost, the abandoned run's is committed; both found."""
    if played.lost != (SECOND.key,):
        yield f"{SECOND.key} was to be lost, lost is {_listed(played.lost)}"
    if played.leaked != (FIRST.key,):
        yield f"{FIRST.key} was to be leaked, leaked is {_listed(played.leaked)}"
    for anomaly, victim in (("stale-discard", SECOND), ("leaked-write", FIRST)):
        if not any(_accuses(each, anomaly, victim) for each in played.findings):
            yield f"the detector was to find a {anomaly} of {victim.key}, and did not"


def _on_tenure(played: Played) -> Iterator[str]:
    """Nothing is lost or leaked, and the late discard shows up as averted."""
    if played.lost:
        yield f"nothing was to be lost, lost is {_listed(played.lost)}"
    if played.leaked:
        yield f"nothing was to be leaked, leaked is {_listed(played.leaked)}"
    averted = [each for each in played.findings if each.severity == "averted"]
    if not any(each.anomaly == "stale-discard" for each in averted):
        yield "the detector was to find an averted stale-discard, and did not"
    for finding in played.findings:
        if finding not in averted:
            yield f"the detector was not to find a {finding.anomaly}, and did"


def _accuses(finding: Finding, anomaly: str, victim: Request) -> bool:
    """Say whether it proves `anomaly`; not by key, which telemetry may hash or hide."""
    return (
        finding.anomaly == anomaly
        and finding.severity == "violation"
        and finding.certainty == "certain"
        and finding.victim_epoch == victim.number
        and len(finding.keys) == 1
    )


def _listed(keys: tuple[str, ...]) -> str:
    return ", ".join(keys) or "nothing"


_DESCRIBED: Final[Mapping[str, Callable[[Played], Iterator[str]]]] = {
    "agent-framework": _on_agent_framework,
    "tenure": _on_tenure,
}
