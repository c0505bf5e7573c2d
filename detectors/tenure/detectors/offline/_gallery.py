"""What is kept of each instance while files are read: counts, and a few operations.

Bounded, whatever the files hold: a report needs no more.
"""

import re
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, final

from tenure.detectors.anomalies import Severity
from tenure.detectors.detector import Verdict
from tenure.detectors.findings import Finding
from tenure.detectors.offline.outcome import (
    InstanceReport,
    Sighting,
    by_severity,
    counted,
)
from tenure.instrumentation.operations import Operation

MAX_INSTANCES: Final = 10_000
"""How many instances are reported one by one."""
MAX_WINDOWS: Final = 64
"""Of how many instances the newest operations are kept."""
MAX_EXHIBITS: Final = 20
"""Of how many instances the operations around violations and warnings are kept."""
WINDOW: Final = 256
"""How many operations are kept before a violation, and how many after it."""

Key = tuple[str, str, str]
"""Engine, workflow, instance."""


class Place(NamedTuple):
    """Where a span was."""

    file: str
    line: int


@dataclass(slots=True)
class _Record:
    """What is kept of an instance for as long as it is reported."""

    operations: int = 0
    lowest: int = 0
    highest: int = 0
    violated: bool = False
    findings: Counter[str] = field(default_factory=Counter[str])


@dataclass(slots=True)
class _Window:
    """The newest operations of an instance; after a violation, those that follow."""

    before: deque[tuple[Operation, Place]] = field(
        default_factory=lambda: deque[tuple[Operation, Place]](maxlen=WINDOW)
    )
    after: list[Operation] = field(default_factory=list[Operation])
    pinned: bool = False
    gone: int = 0

    @property
    def operations(self) -> list[Operation]:
        return [operation for operation, _ in self.before] + self.after

    def add(self, operation: Operation, place: Place) -> None:
        if not self.pinned:
            self.gone += len(self.before) == WINDOW
            self.before.append((operation, place))
        elif len(self.after) < WINDOW:
            self.after.append(operation)
        else:
            self.gone += 1


@final
class Gallery:
    """Instances as they are met in files."""

    def __init__(self) -> None:
        self._records: Final[OrderedDict[Key, _Record]] = OrderedDict()
        self._windows: Final[OrderedDict[Key, _Window]] = OrderedDict()
        self._exhibits: Final[dict[Key, _Window]] = {}
        self._met = 0

    def add(self, operation: Operation, place: Place) -> None:
        """Take in an operation, before it is judged."""
        run = operation.run
        key = (run.engine, run.workflow, run.instance)
        record = self._record(key)
        record.operations += 1
        record.lowest = min(record.lowest or run.epoch, run.epoch)
        record.highest = max(record.highest, run.epoch)
        self._window(key).add(operation, place)

    def find(self, finding: Finding, place: Place) -> Sighting:
        """Take in a finding that the operation at `place` led to."""
        key = (finding.engine, finding.workflow, finding.instance)
        window = self._window(key)
        seen = {id(operation): at for operation, at in window.before}
        at = seen.get(id(finding.culprit), place)
        sighting = Sighting(finding=finding, file=at.file, line=at.line)
        record = self._record(key)
        record.findings[finding.severity.value] += 1
        record.violated = record.violated or sighting.proven
        if finding.severity in _EXHIBITED and len(self._exhibits) < MAX_EXHIBITS:
            self._exhibits[key] = window
            window.pinned = True
        return sighting

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What is kept: around violations first, then the newest of other instances."""
        windows = [*self._exhibits.values()]
        windows += [
            window for key, window in self._windows.items() if key not in self._exhibits
        ]
        return tuple(operation for window in windows for operation in window.operations)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not kept, in words; empty if everything is."""
        windows = {**self._windows, **self._exhibits}
        found = [
            f"{counted(window.gone, 'operation')} of {key[1]}/{key[2]}"
            for key, window in windows.items()
            if window.gone
        ]
        others = self._met - len(windows)
        if others > 0:
            found.append(
                f"{counted(others, 'instance')} in which nothing grave was found"
            )
        return tuple(found)

    def reports(
        self, missing: Mapping[tuple[str, str], tuple[str, ...]], *, doubtful: bool
    ) -> tuple[InstanceReport, ...]:
        """Return what may be said of each instance.

        Args:
            missing: What is missing of each workflow and instance.
            doubtful: Whether anything else was lost, of whatever instance.
        """
        reports = [
            InstanceReport(
                engine=key[0],
                workflow=key[1],
                instance=key[2],
                verdict=_verdict(record, bool(doubtful or missing.get(key[1:]))),
                operations=record.operations,
                epochs=(record.lowest, record.highest),
                findings=by_severity(record.findings),
                missing=missing.get(key[1:], ()),
            )
            for key, record in self._records.items()
        ]
        return tuple(sorted(reports, key=lambda report: _URGENCY[report.verdict]))

    def sort(
        self, missing: Iterable[str]
    ) -> tuple[dict[tuple[str, str], tuple[str, ...]], bool]:
        """Sort what is missing by instance.

        Args:
            missing: What a detector says is missing: `workflow/instance: what`, or what
                belongs to no single instance.

        Returns:
            What is missing of each workflow and instance, and whether anything else is.
        """
        known = {f"{key[1]}/{key[2]}": key[1:] for key in self._records}
        sorted_: dict[tuple[str, str], list[str]] = {}
        doubtful = False
        for sentence in missing:
            cuts = [match.start() for match in re.finditer(": ", sentence)]
            cut = next((at for at in cuts if sentence[:at] in known), None)
            if cut is None:
                doubtful = True
            else:
                names = known[sentence[:cut]]
                sorted_.setdefault(names, []).append(sentence[cut + 2 :])
        return {names: tuple(found) for names, found in sorted_.items()}, doubtful

    def _record(self, key: Key) -> _Record:
        record = self._records.get(key)
        if record is None:
            record = self._records[key] = _Record()
            self._met += 1
            if len(self._records) > MAX_INSTANCES:
                # One of which nothing was found is the least loss.
                dull = next(
                    (k for k, r in self._records.items() if not r.findings), key
                )
                del self._records[dull]
        return record

    def _window(self, key: Key) -> _Window:
        window = self._exhibits.get(key) or self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
            if len(self._windows) > MAX_WINDOWS:
                self._windows.popitem(last=False)
        elif key in self._windows:
            self._windows.move_to_end(key)
        return window


_EXHIBITED: Final = frozenset({Severity.VIOLATION, Severity.WARNING})
_URGENCY: Final = {Verdict.VIOLATED: 0, Verdict.INCONCLUSIVE: 1, Verdict.CLEAN: 2}


def _verdict(record: _Record, lacking: bool) -> Verdict:  # noqa: FBT001 - a private pair
    if record.violated:
        return Verdict.VIOLATED
    return Verdict.INCONCLUSIVE if lacking else Verdict.CLEAN
