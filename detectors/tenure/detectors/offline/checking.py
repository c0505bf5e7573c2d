"""Trace files in, a report out: the detector's rules over what was recorded.

Files of any size are read in constant memory, one span at a time, and several of them
side by side, as the recording of one story that they are. What cannot be read
is counted and named; it never hides what can, and nothing is called clean over it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, final

from tenure.detectors._lift import Lifted, lift
from tenure.detectors.detector import Detector
from tenure.detectors.findings import Finding
from tenure.detectors.offline._gallery import Gallery, Place
from tenure.detectors.offline.merging import side_by_side
from tenure.detectors.offline.outcome import (
    FileReport,
    Report,
    Sighting,
    Unreadable,
    by_severity,
)
from tenure.detectors.offline.reading import STDIN, Source, size_of
from tenure.detectors.offline.recognise import (
    HEAD,
    Encoding,
    UnrecognisedError,
    recognise,
)
from tenure.detectors.offline.spans import Found, Problem, RawSpan
from tenure.detectors.offline.text import Limits
from tenure.detectors.offline.values import JsonReader
from tenure.instrumentation import semconv

MAX_SIGHTINGS: Final = 10_000
"""How many findings a report holds; all are counted."""

GLANCE: Final = 1 << 20
"""In how many bytes of a file its first span is looked for, to know when it begins."""

DROPPED: Final = "set of attributes, which the exporter says it cut"
"""What a span lacks whose exporter dropped attributes: any may have been the proof."""

Progress = Callable[[str, int], object]
"""Called with the name of a file and how many of its bytes have been read."""


def check(
    paths: Iterable[str],
    detector: Detector,
    *,
    limits: Limits | None = None,
    on_progress: Progress | None = None,
) -> Report:
    """Read trace files and let a detector judge what they say.

    Formats are told by content: OTLP JSON on lines or as documents, OTLP protobuf,
    the JSON of Jaeger's user interface and of its api/v3; each of them gzipped or not.

    Args:
        paths: Files; `-` is standard input. They are judged together, as parts of one
            recording; a span that is in several of them counts once.
        detector: What judges; its verdict is that of the report. Give it no channels to
            announce to, unless findings of the past are to be announced now.
        limits: How much may be held in memory, and how much is reported.
        on_progress: Called as bytes are read.

    Returns:
        The report. A file that cannot be read is part of it, not an error.
    """
    checking = _Check(detector, limits or Limits(), on_progress)
    return checking.report(checking.files(tuple(paths)))


def read_spans(source: Source, limits: Limits) -> Iterator[Found | Problem]:
    """Read the spans of an open file of any known format.

    Args:
        source: The file.
        limits: How much may be held in memory.

    Yields:
        Each span, and each place where something could not be read, in their order.
    """
    try:
        encoding = recognise(source.peek(HEAD))
        if encoding is Encoding.JSON:
            yield from JsonReader(source, limits)
        else:
            from tenure.detectors.offline.otlp_proto import ProtobufReader

            yield from ProtobufReader(source, limits, encoding)
    except UnrecognisedError as error:
        if source.problem is None:
            yield Problem(source.name, 0, error.reason, unfinished=error.empty)
    except ImportError as error:
        reason = f"{error.name} is not installed; run pip install 'tenure[offline]'"
        yield Problem(source.name, 0, reason)
    if source.problem is not None:
        yield Problem(source.name, 0, source.problem)


class _EnoughError(Exception):
    """Enough has been read."""


class _Tally:
    """What was read of one file so far."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name: Final = name
        self._most: Final = limits.problems
        self.formats: Final[dict[str, None]] = {}
        self.spans = 0
        self.operations = 0
        self._unreadable: Final[dict[str, Unreadable]] = {}
        self._problems: Final[list[Problem]] = []
        self._problem_count = 0
        self._unfinished = True

    def problem(self, problem: Problem) -> None:
        self._problem_count += 1
        self._unfinished = self._unfinished and problem.unfinished
        if len(self._problems) < self._most:
            self._problems.append(problem)

    def lacks(self, found: Found, what: str) -> None:
        known = self._unreadable.get(what)
        self._unreadable[what] = (
            Unreadable(what, 1, found.span.name, found.line)
            if known is None
            else replace(known, count=known.count + 1)
        )

    def report(self) -> FileReport:
        return FileReport(
            name=self._name,
            formats=tuple(self.formats),
            spans=self.spans,
            operations=self.operations,
            unreadable=tuple(self._unreadable.values()),
            problems=tuple(self._problems),
            problem_count=self._problem_count,
            unfinished=bool(self._problem_count) and self._unfinished,
        )


@final
class _Check:
    """One check: a detector, and what is remembered for the report."""

    def __init__(
        self, detector: Detector, limits: Limits, on_progress: Progress | None
    ) -> None:
        self._detector: Final = detector
        self._limits: Final = limits
        self._on_progress: Final = on_progress
        self._gallery: Final = Gallery()
        self._sightings: Final[list[Sighting]] = []
        self._counts: Final[Counter[str]] = Counter()

    def files(self, paths: Sequence[str]) -> tuple[FileReport, ...]:
        """Read files to their ends."""
        names = ["standard input" if path == STDIN else path for path in paths]
        tallies = [_Tally(name, self._limits) for name in names]
        for place, found in side_by_side(paths, self._read, self._begins):
            if isinstance(found, Problem):
                tallies[place].problem(found)
            else:
                self._span(found, tallies[place], names[place])
        reports = tuple(tally.report() for tally in tallies)
        for report in reports:
            for lost in report.lost:
                self._detector.doubt(lost)
        return reports

    def _read(self, path: str) -> Iterator[Found | Problem]:
        progress = self._on_progress
        try:
            with Source(
                path, None if progress is None else lambda read: progress(path, read)
            ) as source:
                yield from read_spans(source, self._limits)
        except OSError as error:
            yield Problem(path, 0, f"{error.strerror or error}")

    def _begins(self, path: str) -> int:
        """Return when the first span of a file ended; 0 if that is not soon known."""
        if size_of(path) is None:
            return 0  # a pipe can be read once only

        def enough(read: int) -> None:
            if read > GLANCE:
                raise _EnoughError

        with suppress(OSError, _EnoughError), Source(path, enough) as source:
            for found in read_spans(source, self._limits):
                if isinstance(found, Found):
                    return found.span.end
        return 0

    def _span(self, found: Found, tally: _Tally, file: str) -> None:
        span = found.span
        tally.spans += 1
        tally.formats.setdefault(found.format)
        lifted = lift_raw(span)
        operations = lifted.operations
        if span.incomplete and (operations or lifted.unreadable):
            tally.lacks(found, DROPPED)
            return
        for what in lifted.unreadable:
            tally.lacks(found, what)
        for operation in operations:
            tally.operations += 1
            place = Place(file, found.line)
            self._gallery.add(operation, place)
            for finding in self._detector.feed(operation):
                self._keep(finding, place)

    def _keep(self, finding: Finding, place: Place) -> None:
        self._counts[finding.severity.value] += 1
        sighting = self._gallery.find(finding, place)
        if len(self._sightings) < MAX_SIGHTINGS:
            self._sightings.append(sighting)

    def report(self, files: tuple[FileReport, ...]) -> Report:
        """Say what came out."""
        missing = self._detector.missing
        by_instance, doubtful = self._gallery.sort(missing)
        return Report(
            verdict=self._detector.verdict,
            files=files,
            instances=self._gallery.reports(by_instance, doubtful=doubtful),
            sightings=tuple(self._sightings),
            finding_counts=by_severity(self._counts),
            missing=missing,
            operations_kept=self._gallery.operations,
            left_out=self._gallery.left_out,
        )


def lift_raw(span: RawSpan) -> Lifted:
    """Read the operations that a span carries, as `lift` does."""
    attributes = span.attributes
    if span.scope.startswith(_OURS) and span.scope != semconv.DETECTORS_SCOPE:
        # A span of ours that lacks every attribute is unreadable, not a stranger.
        attributes = {semconv.ENGINE: None, **attributes}
    return lift(
        span.name, attributes, start=span.start, end=span.end, span=span.reference
    )


_OURS: Final = "tenure."
