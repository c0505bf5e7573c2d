"""Spans as OTLP JSON lines: the format of the OpenTelemetry collector's file exporter.

Each line is one batch: a whole `{"resourceSpans": [...]}` document that `tenure check`,
the collector's receivers and many other tools read. The encoding is that of the OTLP
exporters; only trace and span ids differ from protobuf's own JSON, which would write
them in base64 where OTLP wants hexadecimal digits.

This module needs `tenure[otlp]`.
"""

import base64
import errno
import json
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, final

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.metrics import MeterProvider
from opentelemetry.sdk.trace import ReadableSpan  # noqa: TID251 - an SDK exporter
from opentelemetry.sdk.trace.export import (  # noqa: TID251 - an SDK exporter
    SpanExporter,
    SpanExportResult,
)

from tenure.instrumentation._losses import Exports

_logger = logging.getLogger(__name__)
_IDS: Final = ("traceId", "spanId", "parentSpanId")


def otlp_json_line(spans: Sequence[ReadableSpan]) -> str:
    """Encode `spans` as one line of OTLP JSON, without its line end.

    Args:
        spans: Ended spans.

    Returns:
        A JSON document with the one key `resourceSpans`.
    """
    document: dict[str, Any] = MessageToDict(
        encode_spans(spans), use_integers_for_enums=True
    )
    for span in _spans(document):
        _write_ids_in_hexadecimal(span)
        for link in span.get("links", ()):
            _write_ids_in_hexadecimal(link)
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _spans(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in document.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            yield from scope.get("spans", ())


def _write_ids_in_hexadecimal(holder: dict[str, Any]) -> None:
    for name in _IDS:
        if name in holder:
            holder[name] = base64.b64decode(holder[name]).hex()


@final
class JsonLinesSpanExporter(SpanExporter):
    """Write spans to a file as OTLP JSON lines, one line per exported batch.

    Lines are appended whole, so that several processes may share a file and a reader
    never meets half a batch that is followed by another. With `replace`, nothing is
    seen at `path` until `shutdown`, which puts the complete file there in one step;
    what is not a regular file, such as a pipe, is written to at once all the same.

    What is written and what is lost is counted in `otel.sdk.exporter.span.exported`,
    the latter with `error.type`, such as `ENOSPC` where the disk is full. Once there is
    room again, the next batch begins a line of its own.

    Safe to call from any thread.

    Args:
        path: The file. Its folder must exist.
        replace: Whether the file is replaced as a whole at `shutdown` instead of being
            appended to at once.
        meter_provider: Where that counter comes from; the global provider by default.

    Raises:
        OSError: The file cannot be opened for writing.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        replace: bool = False,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self.path: Final = Path(path)
        # A link stays one: what it points to is replaced.
        self._target: Final = Path(os.path.realpath(path))
        self._written: Final = (
            self._target.with_name(f".{self._target.name}.{os.getpid()}.partial")
            if replace and (self._target.is_file() or not self._target.exists())
            else self._target
        )
        self._writing: Final = threading.Lock()
        # Guarded by `_writing`; -1 once shut down.
        self._file = _open(self._written, fresh=replace)
        # Whether the file ends in the middle of a line, ours or a dead process's.
        self._torn = _ends_inside_a_line(self._written)
        self._kept = 0
        self._lost = 0
        self._exports: Final = Exports(
            "span", "otlp_json_lines_span_exporter", meter_provider
        )

    @property
    def written_spans(self) -> int:
        """How many spans are in the file, or will be when it takes its place."""
        return self._kept

    @property
    def lost_spans(self) -> int:
        """How many spans could not be written."""
        return self._lost

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write `spans` as one line.

        Args:
            spans: Ended spans.

        Returns:
            Whether they are in the file.
        """
        if not spans:
            return SpanExportResult.SUCCESS
        line = f"{otlp_json_line(spans)}\n".encode()
        with self._writing:
            refused = self._append(line)
            if refused is None:
                self._kept += len(spans)
            else:
                self._lost += len(spans)
        self._exports.tried(len(spans), refused)
        return SpanExportResult.FAILURE if refused else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file, and put it in its place if it replaces another."""
        with self._writing:
            file, self._file = self._file, -1
            if file < 0:
                return
            try:
                if self._written == self._target:
                    os.close(file)
                else:
                    _put(file, self._written, self._target)
            except OSError as error:
                _logger.warning("Spans could not be put at %s: %s", self.path, error)
                self._lost, self._kept = self._lost + self._kept, 0

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return true: every line is handed to the operating system when exported."""
        return True

    def _append(self, line: bytes) -> str | None:
        """Write `line`, or say why not."""
        if self._file < 0:
            return "already_shutdown"
        remaining = memoryview(b"\n" + line if self._torn else line)
        try:
            while remaining:
                written = os.write(self._file, remaining)
                remaining = remaining[written:]
                self._torn = bool(remaining)
        except OSError as error:
            _logger.warning(
                "Spans could not be written to %s: %s", self._written, error
            )
            return errno.errorcode.get(error.errno or 0, type(error).__qualname__)
        return None


def _open(path: Path, *, fresh: bool) -> int:
    """Open `path` so that each write lands whole at its end, whoever else writes."""
    start = os.O_TRUNC if fresh else 0
    binary = getattr(os, "O_BINARY", 0)  # where the system would translate line ends
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | start | binary, 0o666)


def _put(file: int, written: Path, target: Path) -> None:
    """Close `file` and move what was written to where it belongs, or fail."""
    try:
        os.fsync(file)
    finally:
        os.close(file)
    written.replace(target)


def _ends_inside_a_line(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"
