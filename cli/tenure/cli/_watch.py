"""What `tenure watch` does: serve, say so, print findings as they come, report."""

import json
import logging
import sys
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, Final, Protocol, final

from rich.text import Text

from tenure.cli import _console
from tenure.cli._status import CommandError, Status
from tenure.detectors import Finding, Severity, Verdict
from tenure.detectors.sidecar import (
    Drained,
    ListenError,
    Listening,
    Settings,
    SettingsError,
    serve,
)

_logger = logging.getLogger("tenure.watch")

_STATUS: Final[Mapping[Verdict, Status]] = MappingProxyType({
    Verdict.CLEAN: Status.CLEAN,
    Verdict.VIOLATED: Status.VIOLATED,
    Verdict.INCONCLUSIVE: Status.INCONCLUSIVE,
})
_STYLE: Final[Mapping[Severity, str]] = MappingProxyType({
    Severity.VIOLATION: "bold red",
    Severity.WARNING: "yellow",
    Severity.AVERTED: "green",
    Severity.INFORMATION: "dim",
})
_MISSING_SHOWN: Final = 5


def run_watch(settings: Settings, *, as_json: bool) -> Status:
    """Receive and judge until this process is asked to end.

    Args:
        settings: What the sidecar is asked to do.
        as_json: Whether JSON lines are printed instead of text.

    Returns:
        The exit status that the verdict stands for.

    Raises:
        CommandError: It cannot listen, or would forward to itself.
    """
    logging.basicConfig(format="tenure: %(message)s", level=logging.WARNING)
    _warn_of_others(settings.host)
    report: _Report = _JsonLines() if as_json else _Lines()
    tell = _Telling()
    try:
        drained = serve(
            settings,
            on_listening=lambda listening: tell(report.listening, listening),
            on_finding=lambda finding: tell(report.found, finding),
        )
    except (ListenError, SettingsError) as error:
        raise CommandError(str(error)) from error
    tell(report.ended, drained)
    return _STATUS[drained.verdict]


def _warn_of_others(host: str) -> None:
    try:
        local = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        _logger.warning(
            "Whoever reaches %s can send spans; nothing there is encrypted", host
        )


@final
class _Telling:
    """Prints, until nobody reads any more: then hooks and figures go on without."""

    def __init__(self) -> None:
        self._heard = True

    def __call__(self, tell: Callable[[Any], None], what: object) -> None:
        if not self._heard:
            return
        try:
            tell(what)
        except (OSError, ValueError):  # a closed pipe, a closed file
            self._heard = False
            _logger.warning("Nobody reads standard output; nothing is printed any more")


class _Report(Protocol):
    """A way to print."""

    def listening(self, listening: Listening) -> None: ...
    def found(self, finding: Finding) -> None: ...
    def ended(self, drained: Drained) -> None: ...


@final
class _Lines:
    """Text for people."""

    def __init__(self) -> None:
        self._console: Final = _console.output()

    def listening(self, listening: Listening) -> None:
        if listening.grpc is not None:
            self._line(f"OTLP over gRPC on {listening.grpc}")
        if listening.http is not None:
            self._line(f"OTLP over HTTP on http://{listening.http}")

    def found(self, finding: Finding) -> None:
        self._line(str(finding), _STYLE[finding.severity])

    def ended(self, drained: Drained) -> None:
        for name, count in drained.left:
            self._line(f"no time was left for {count} of {name}", "yellow")
        self._line(f"verdict: {drained.verdict.value}", "bold")
        if drained.verdict is not Verdict.INCONCLUSIVE:
            return
        for missing in drained.missing[:_MISSING_SHOWN]:
            self._line(f"  missing: {missing}")
        more = len(drained.missing) - _MISSING_SHOWN
        if more > 0:
            self._line(f"  and {more} more")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style), soft_wrap=True)
        self._console.file.flush()


@final
class _JsonLines:
    """One JSON document a line, for programs."""

    def listening(self, listening: Listening) -> None:
        grpc, http = listening.grpc, listening.http
        self._line(
            "listening",
            grpc=None if grpc is None else str(grpc),
            http=None if http is None else f"http://{http}",
        )

    def found(self, finding: Finding) -> None:
        self._line("finding", **finding.as_dict())

    def ended(self, drained: Drained) -> None:
        self._line(
            "ended",
            verdict=drained.verdict.value,
            missing=list(drained.missing),
            left=dict(drained.left),
        )

    def _line(self, event: str, **facts: object) -> None:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()
