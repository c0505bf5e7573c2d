"""What `tenure check` does: read, judge, report."""

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from tenure.cli import _console
from tenure.cli._check import documents
from tenure.cli._check.text import print_report
from tenure.cli._plain import plain
from tenure.cli._status import CommandError, Status
from tenure.detectors import Detector, Verdict
from tenure.detectors.offline import Limits, Report, check, size_of
from tenure.detectors.report import render_html

_REFRESH: Final = 8


def run_check(
    paths: Sequence[str], format_: str, output: Path | None, *, max_value: int
) -> Status:
    """Read trace files and print what was found.

    Args:
        paths: Files; `-` is standard input.
        format_: `text`, `json`, `html`, `junit` or `sarif`.
        output: Where the report goes; to standard output if `None`.
        max_value: How many bytes the largest span may have.

    Returns:
        The exit status.

    Raises:
        CommandError: The report cannot be written.
    """
    render = _renderer(format_)
    # Findings are about the past: they are reported, and announced nowhere.
    detector = Detector(announce=())
    with _progress(paths) as on_progress:
        report = check(
            paths, detector, limits=Limits(value=max_value), on_progress=on_progress
        )
    with _opened(output) as file:
        render(report, file)
    return status_of(report)


def status_of(report: Report) -> Status:
    """Return the exit status for `report`.

    A proven violation outweighs a file that could not be read; such a file outweighs
    what is inconclusive.
    """
    if report.verdict is Verdict.VIOLATED:
        return Status.VIOLATED
    if report.refused:
        return Status.UNUSABLE
    if report.verdict is Verdict.INCONCLUSIVE:
        return Status.INCONCLUSIVE
    return Status.CLEAN


_Render = Callable[[Report, TextIO], None]


def _renderer(format_: str) -> _Render:
    if format_ == "text":
        return lambda report, file: print_report(_console.on(file), report)
    document = _DOCUMENTS[format_]

    def render(report: Report, file: TextIO) -> None:
        file.write(document(report))
        file.flush()

    return render


_DOCUMENTS: Final[Mapping[str, Callable[[Report], str]]] = MappingProxyType({
    "html": lambda report: render_html(report.drawn()),
    "json": documents.as_json,
    "junit": documents.as_junit,
    "sarif": documents.as_sarif,
})


@contextmanager
def _opened(output: Path | None) -> Generator[TextIO]:
    if output is None:
        yield sys.stdout
        return
    try:
        with output.open("w", encoding="utf-8", newline="\n") as file:
            yield file
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from error


@contextmanager
def _progress(
    paths: Sequence[str],
) -> Generator[Callable[[str, int], object] | None]:
    """Show how far reading is, on standard error, where that is a terminal."""
    console = _console.errors()
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=_REFRESH
    ) as progress:
        tasks = {
            path: progress.add_task(plain(path), total=size_of(path))
            for path in dict.fromkeys(paths)
        }
        yield lambda path, read: progress.update(tasks[path], completed=read)
