"""Races in trace files: what was recorded, judged by the same rules as what is live.

`check` reads files of any known format and returns a report. Reading OTLP protobuf
needs `tenure[offline]`; everything else needs the standard library only.
"""

from tenure.detectors.offline.checking import check, read_spans
from tenure.detectors.offline.outcome import (
    FileReport,
    InstanceReport,
    Report,
    Sighting,
    Unreadable,
)
from tenure.detectors.offline.reading import STDIN, Source, size_of
from tenure.detectors.offline.spans import MALFORMED, Found, Problem, RawSpan
from tenure.detectors.offline.text import Limits

__all__ = [
    "MALFORMED",
    "STDIN",
    "FileReport",
    "Found",
    "InstanceReport",
    "Limits",
    "Problem",
    "RawSpan",
    "Report",
    "Sighting",
    "Source",
    "Unreadable",
    "check",
    "read_spans",
    "size_of",
]
