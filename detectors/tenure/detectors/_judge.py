"""The pure core: operations in, findings out.

No input or output, no clock, bounded memory. Not safe to share between threads: the
detector around it sees to that.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from tenure.detectors._blemishes import REBORN
from tenure.detectors._history import History
from tenure.detectors._policy import SeverityPolicy
from tenure.detectors._rules import CONFLICT_RULES, RULES, SILENCE_RULES
from tenure.detectors.anomalies import Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import (
    CheckpointSave,
    Claim,
    Commit,
    Discard,
    Execute,
    ForeignRead,
    Operation,
    Receive,
    Release,
    RunRef,
    Send,
    SuperstepEnd,
    SuperstepStart,
)


class Verdict(StrEnum):
    """What may be said of everything that was seen."""

    CLEAN = "clean"
    """Nothing is missing, every last run has released, and no fence was broken."""

    VIOLATED = "violated"
    """Data was certainly lost or corrupted."""

    INCONCLUSIVE = "inconclusive"
    """Telemetry is missing, a run still owns its instance, or a fence was broken and
    the telemetry shows no victim."""


_REMEMBER: Final[Mapping[type[Operation], Callable[[History, Any], None]]] = (
    MappingProxyType({
        Claim: History.claimed,
        Release: History.released,
        SuperstepStart: History.started,
        SuperstepEnd: History.ended,
        Execute: History.executed,
        Commit: History.committed,
        Discard: History.discarded,
        Send: History.sent,
        Receive: History.received,
        CheckpointSave: History.saved,
        ForeignRead: History.read,
    })
)

_PLANS: Final = {
    kind: (RULES.get(kind, ()), _REMEMBER.get(kind)) for kind in {*RULES, *_REMEMBER}
}
"""What is done with each kind of operation; with the others, nothing."""

_CALM_PLANS: Final = {
    kind: (tuple(rule for rule in rules if rule not in CONFLICT_RULES), remember)
    for kind, (rules, remember) in _PLANS.items()
}
"""The same while no superstep can have conflicts: most are not contended."""

_PROVEN: Final = frozenset({Certainty.CERTAIN, Certainty.CONFIRMED})
_HARMLESS: Final = frozenset({Severity.AVERTED, Severity.INFORMATION})


class Judge:
    """Applies the rules to operations in the order in which they come.

    Args:
        max_instances: How many instances are remembered; the one that was silent for
            longest is forgotten first.
        severity: How bad a finding is, where that is not the catalogue's say.
    """

    def __init__(
        self, max_instances: int, severity: SeverityPolicy | None = None
    ) -> None:
        self._max_instances: Final = max_instances
        self._severity: Final = severity
        self._histories: Final[OrderedDict[tuple[str, str, str], History]] = (
            OrderedDict()
        )
        # Invariant: `_history` is that of the instance of `_run`, and the newest one.
        self._run: RunRef | None = None
        self._history = History()
        self._violated = False
        # What keeps the verdict from ever being clean again.
        self._doubts: Final[set[str]] = set()

    def observe(self, operation: Operation) -> tuple[Finding, ...]:
        """Take in `operation`; return what it proves, alone or with what came before.

        Args:
            operation: What happened. One that has been taken in before is ignored.
        """
        run = operation.run
        if run is not self._run:
            self._turn_to(run)
        if not self._history.admit(operation) and not self._reborn(operation):
            return ()
        history = self._history
        plans = _PLANS if history.steps.in_question else _CALM_PLANS
        plan = plans.get(type(operation))
        if plan is None:
            return ()
        rules, remember = plan
        found: tuple[Finding, ...] = ()
        for rule in rules:
            more = rule(operation, history)
            if more:
                found += more
        if remember is not None:
            remember(history, operation)
        if found:
            found = self._graded(found)
            self._weigh(found)
        return found

    def advance(self, now: float, silence: float) -> tuple[Finding, ...]:
        """Look for instances that are owned and silent.

        Args:
            now: The time, on any clock that does not go back, in the caller's unit.
            silence: For how long nothing may arrive before that is worth telling.

        Returns:
            One finding for each of them, and not again until it has spoken.
        """
        found: tuple[Finding, ...] = ()
        for history in self._histories.values():
            quiet = history.silence.until(now, history.arrived)
            if quiet < silence or history.silence.reported:
                continue
            more = tuple(
                finding for rule in SILENCE_RULES for finding in rule(history, quiet)
            )
            history.silence.reported = bool(more)
            found += more
        # No doubt is left behind: a release that is missing keeps the verdict from
        # being clean by itself, and one that comes late puts everything right.
        return self._graded(found)

    def doubt(self, reason: str) -> None:
        """Remember something that was lost before it became an operation.

        Args:
            reason: What is missing, such as `3 spans that cannot be read`.
        """
        self._doubts.add(reason)

    @property
    def verdict(self) -> Verdict:
        """What may be said of everything seen so far. May be read from any thread."""
        if self._violated:
            return Verdict.VIOLATED
        if self.missing:
            return Verdict.INCONCLUSIVE
        return Verdict.CLEAN

    @property
    def missing(self) -> tuple[str, ...]:
        """What keeps the verdict from being clean, but for violations."""
        found = sorted(self._doubts)
        histories = list(self._histories.items())
        if not histories:
            found.append("any operation")
        for (_, workflow, instance), history in histories:
            found.extend(
                f"{workflow}/{instance}: {missing}" for missing in history.missing()
            )
        return tuple(found)

    def _graded(self, found: tuple[Finding, ...]) -> tuple[Finding, ...]:
        policy = self._severity
        return found if policy is None else tuple(policy(one) for one in found)

    def _weigh(self, found: tuple[Finding, ...]) -> None:
        for finding in found:
            if finding.severity in _HARMLESS:
                continue
            if finding.severity is Severity.VIOLATION and finding.certainty in _PROVEN:
                self._violated = True
                continue
            where = f"{finding.workflow}/{finding.instance}"
            if finding.certainty in _PROVEN:
                self._doubts.add(f"{where}: what a broken fence let through")
            else:
                self._doubts.add(f"{where}: the proof of a possible {finding.anomaly}")

    def _turn_to(self, run: RunRef) -> None:
        key = _identity(run)
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = History()
            if len(self._histories) > self._max_instances:
                _, oldest = self._histories.popitem(last=False)
                if not oldest.complete:
                    self._doubts.add("instances forgotten for want of room")
        else:
            self._histories.move_to_end(key)
        self._run, self._history = run, history

    def _reborn(self, operation: Operation) -> bool:
        """Begin anew if a second instance has the identity of one that is gone.

        An identity is unique among instances that are alive at once. When a new one
        bears an old one's name, its positions count from 1 again: its first claim looks
        like a repetition, but for a run that has never been seen.
        """
        history = self._history
        if not isinstance(operation, Claim):
            return False
        known = history.tenures.get(operation.run.epoch)
        if known is None or known.claim is None or known.ambiguous:
            return False
        if known.claim.run.run_id == operation.run.run_id:
            return False
        run = operation.run
        successor = History()
        if not history.complete:
            successor.blemishes.add(REBORN)
        self._histories[_identity(run)] = successor
        self._history = successor
        return successor.admit(operation)


def _identity(run: RunRef) -> tuple[str, str, str]:
    """Return what tells instances apart.

    The engine's name without its version: while a new release is rolled out, two
    versions own one instance in turn.
    """
    return run.engine.partition("/")[0], run.workflow, run.instance
