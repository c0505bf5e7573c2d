"""Sentences about executors that are in each other's way within one superstep."""

from tenure.detectors._explain._words import Explicable, at, joined, keys_of
from tenure.detectors._steps import conflicts
from tenure.instrumentation.operations import Commit, Execute


def write_write_conflict(finding: Explicable) -> tuple[str, str]:
    """Explain two executors that staged one key."""
    commit = finding.evidence[0]
    assert isinstance(commit, Commit)
    found = conflicts(_executions(finding))
    who = joined(
        _staged(key, sorted(one.executor for one in found.written[key]))
        for key in finding.keys
        if key in found.written
    )
    return (
        f"in superstep {commit.index} of epoch {finding.culprit_epoch}, {who}, and no "
        "reducer joined their writes",
        f"epoch {finding.culprit_epoch} committed {keys_of(finding)} {at(commit)}, "
        "with whichever write came last",
    )


def read_write_conflict(finding: Explicable) -> tuple[str, str]:
    """Explain an executor that read what another one staged."""
    commit = finding.evidence[0]
    assert isinstance(commit, Commit)
    found = conflicts(_executions(finding))
    who = joined(
        f"executor {reader.executor} had read `{key}`, and executor {writer.executor} "
        "had staged it"
        for key, (reader, writer) in found.read.items()
        if key in finding.keys
    )
    return (
        f"in superstep {commit.index} of epoch {finding.culprit_epoch}, {who}",
        f"nothing put the two in order before epoch {finding.culprit_epoch} committed "
        f"{at(commit)}",
    )


def _staged(key: str, executors: list[str]) -> str:
    both = "both" if len(executors) == 2 else "all"
    return f"executors {joined(executors)} had {both} staged `{key}`"


def _executions(finding: Explicable) -> list[Execute]:
    return [one for one in finding.evidence if isinstance(one, Execute)]
