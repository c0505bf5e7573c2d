"""`tenure watch`: a detector for other processes, beside them."""

import os
import re
import shlex
from enum import StrEnum
from typing import Annotated, Final
from urllib.parse import unquote

import typer

from tenure.cli._extras import require

_NEEDED: Final = (
    "google.rpc",
    "grpc",
    "httpx",
    "opentelemetry.proto",
    "prometheus_client",
    "starlette",
    "tenacity",
    "uvicorn",
)
_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_SIZE: Final = re.compile(r"([0-9]{1,12})\s*([kmg]?)(?:i?b)?", re.ASCII | re.IGNORECASE)


class HookSeverity(StrEnum):
    """From which severity on hooks are called."""

    VIOLATION = "violation"
    WARNING = "warning"
    AVERTED = "averted"
    INFORMATION = "information"


def _variable(option: str) -> str:
    return f"TENURE_WATCH_{option}"


def _size(written: str | int) -> int:
    """Read a number of bytes such as `4MiB`."""
    if isinstance(written, int):
        return written
    match = _SIZE.fullmatch(written.strip())
    if match is None:
        raise typer.BadParameter(f"{written!r} is not a size such as 4MiB")
    return int(match[1]) * _UNITS[match[2].lower()]


def _headers(written: str) -> dict[str, str]:
    """Read `name=value,…`, values percent-encoded, as in OTEL_EXPORTER_OTLP_HEADERS."""
    found: dict[str, str] = {}
    for pair in filter(None, (pair.strip() for pair in written.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            # What is wrong is not repeated: it may be a token.
            raise typer.BadParameter("headers are written name=value,name=value")
        found[name.strip()] = unquote(value.strip())
    return found


def _arguments(written: str) -> tuple[str, ...]:
    """Split a command line into a program and its arguments, as a shell would."""
    try:
        return tuple(shlex.split(written))
    except ValueError as error:
        raise typer.BadParameter(f"{written!r} cannot be split: {error}") from None


def watch(
    *,
    host: Annotated[
        str,
        typer.Option(
            envvar=_variable("HOST"),
            help="Address to listen on; others than this machine reach it if told so.",
        ),
    ] = "127.0.0.1",
    grpc_port: Annotated[
        int,
        typer.Option(
            envvar=_variable("GRPC_PORT"),
            help="Port of OTLP over gRPC; 0 for any free one.",
        ),
    ] = 4317,
    http_port: Annotated[
        int,
        typer.Option(
            envvar=_variable("HTTP_PORT"),
            help="Port of OTLP over HTTP, /healthz and /metrics; 0 for any free one.",
        ),
    ] = 4318,
    no_grpc: Annotated[
        bool, typer.Option("--no-grpc", help="Do not listen for gRPC.")
    ] = False,
    no_http: Annotated[
        bool, typer.Option("--no-http", help="Do not listen for HTTP.")
    ] = False,
    max_message: Annotated[
        int,
        typer.Option(
            envvar=_variable("MAX_MESSAGE"),
            parser=_size,
            metavar="SIZE",
            help="How large a message may be, unpacked.",
        ),
    ] = 4 << 20,
    max_memory: Annotated[
        int,
        typer.Option(
            envvar=_variable("MAX_MEMORY"),
            parser=_size,
            metavar="SIZE",
            help="How many bytes of messages may wait to be judged.",
        ),
    ] = 64 << 20,
    max_instances: Annotated[
        int,
        typer.Option(
            envvar=_variable("MAX_INSTANCES"),
            min=1,
            help="How many workflow instances are remembered.",
        ),
    ] = 10_000,
    forward: Annotated[
        str | None,
        typer.Option(
            envvar=_variable("FORWARD"),
            metavar="URL",
            help="Where messages go on to: http[s]://… or grpc[s]://….",
        ),
    ] = None,
    forward_headers: Annotated[
        str,
        typer.Option(
            envvar=_variable("FORWARD_HEADERS"),
            metavar="NAME=VALUE,…",
            help="What is sent along, values percent-encoded.",
        ),
    ] = "",
    forward_queue: Annotated[
        int,
        typer.Option(
            envvar=_variable("FORWARD_QUEUE"),
            parser=_size,
            metavar="SIZE",
            help="How many bytes of messages may wait to be sent on.",
        ),
    ] = 64 << 20,
    webhook: Annotated[
        str | None,
        typer.Option(
            envvar=_variable("WEBHOOK"),
            metavar="URL",
            help="Where findings are posted, as JSON.",
        ),
    ] = None,
    webhook_headers: Annotated[
        str,
        typer.Option(
            envvar=_variable("WEBHOOK_HEADERS"),
            metavar="NAME=VALUE,…",
            help="What is sent along, values percent-encoded.",
        ),
    ] = "",
    exec_: Annotated[
        str,
        typer.Option(
            "--exec",
            envvar=_variable("EXEC"),
            metavar="COMMAND",
            help="Program and arguments, run for each finding, which is JSON on its "
            "standard input; no shell.",
        ),
    ] = "",
    debounce: Annotated[
        float,
        typer.Option(
            envvar=_variable("DEBOUNCE"),
            min=0.0,
            metavar="SECONDS",
            help="For how long a hook is not called again for the same anomaly of the "
            "same instance.",
        ),
    ] = 60.0,
    hook_severity: Annotated[
        HookSeverity,
        typer.Option(
            envvar=_variable("HOOK_SEVERITY"),
            help="The least severity that hooks are called for.",
        ),
    ] = HookSeverity.WARNING,
    hook_possible: Annotated[
        bool,
        typer.Option(
            "--hook-possible",
            envvar=_variable("HOOK_POSSIBLE"),
            help="Call hooks for what is not proven, too.",
        ),
    ] = False,
    hook_timeout: Annotated[
        float,
        typer.Option(
            envvar=_variable("HOOK_TIMEOUT"),
            min=0.1,
            metavar="SECONDS",
            help="How long one call of a hook may take.",
        ),
    ] = 5.0,
    drain_timeout: Annotated[
        float,
        typer.Option(
            envvar=_variable("DRAIN_TIMEOUT"),
            min=0.0,
            metavar="SECONDS",
            help="How long the end may take.",
        ),
    ] = 20.0,
    json: Annotated[
        bool,
        typer.Option(
            "--json", envvar=_variable("JSON"), help="Print JSON lines instead of text."
        ),
    ] = False,
    exit_zero: Annotated[
        bool,
        typer.Option(
            "--exit-zero",
            envvar=_variable("EXIT_ZERO"),
            help="End with status 0 whatever was found, for supervisors.",
        ),
    ] = False,
) -> None:
    """Find races in what other processes send, and between them.

    Listens for OTLP, as a collector does, and judges the operations of all processes
    together. Point OTEL_EXPORTER_OTLP_ENDPOINT of each process here; --forward sends
    what comes on to the collector that they had before.

    SIGTERM and SIGINT end it in order: nothing that was accepted is lost.
    """
    require("watch", *_NEEDED)
    # gRPC's own log would repeat, unasked, what is counted here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from tenure.cli._watch import run_watch
    from tenure.detectors import Severity
    from tenure.detectors.sidecar import Settings, SettingsError

    try:
        settings = Settings(
            host=host,
            grpc_port=None if no_grpc else grpc_port,
            http_port=None if no_http else http_port,
            message_bytes=max_message,
            memory_bytes=max_memory,
            forward=forward or None,
            forward_headers=_headers(forward_headers),
            forward_bytes=forward_queue,
            webhook=webhook or None,
            webhook_headers=_headers(webhook_headers),
            command=_arguments(exec_),
            debounce=debounce,
            hook_severity=Severity(hook_severity.value),
            hook_possible=hook_possible,
            hook_timeout=hook_timeout,
            drain_timeout=drain_timeout,
            max_instances=max_instances,
        )
    except SettingsError as error:
        option = _OPTIONS.get(error.setting, error.setting.replace("_", "-"))
        raise typer.BadParameter(error.problem, param_hint=f"--{option}") from error
    status = run_watch(settings, as_json=json)
    raise typer.Exit(0 if exit_zero else status)


_OPTIONS: Final = {
    "message_bytes": "max-message",
    "memory_bytes": "max-memory",
    "forward_bytes": "forward-queue",
}
"""Options that are not called what the setting is called."""
