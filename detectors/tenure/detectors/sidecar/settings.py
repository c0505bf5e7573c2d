"""What a sidecar is asked to do, checked before anything is started."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from tenure.detectors.anomalies import Severity
from tenure.detectors.sidecar.errors import SettingsError

GRPC_PORT: Final = 4317
"""Where OTLP over gRPC is received, by convention."""

HTTP_PORT: Final = 4318
"""Where OTLP over HTTP is received, by convention."""

_MIB: Final = 1 << 20
_LARGEST_MESSAGE: Final = 1 << 31
"""gRPC counts the bytes of a message in 32 bits."""

_FORWARD_SCHEMES: Final = ("http", "https", "grpc", "grpcs")
_WEBHOOK_SCHEMES: Final = ("http", "https")


class Endpoint(NamedTuple):
    """A host and a port.

    Attributes:
        host: Name or address.
        port: The port.
    """

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a sidecar is asked to do.

    Attributes:
        host: Address to listen on; only this machine reaches the default.
        grpc_port: Port of OTLP over gRPC, 0 for any free one, `None` for none.
        http_port: Port of OTLP over HTTP, likewise.
        message_bytes: How large a message may be, unpacked.
        memory_bytes: How many bytes of messages may be in memory until judged.
        forward: Where received messages go on to: `http[s]://host:port[/path]` or
            `grpc[s]://host:port`.
        forward_headers: What is sent along, such as a token.
        forward_bytes: How many bytes of messages may wait to be sent on.
        webhook: Where findings are posted.
        webhook_headers: What is sent along, such as a token.
        command: Program and arguments that get each finding on standard input.
        debounce: Seconds for which a hook is not called again for the same anomaly of
            the same instance.
        hook_severity: The least severity that hooks are called for.
        hook_possible: Whether hooks are called for what is not proven as well.
        hook_timeout: Seconds that one call of a hook may take.
        drain_timeout: Seconds that the end may take.
        max_instances: How many instances the detector remembers.

    Raises:
        SettingsError: One of them cannot be used.
    """

    host: str = "127.0.0.1"
    grpc_port: int | None = GRPC_PORT
    http_port: int | None = HTTP_PORT
    message_bytes: int = 4 * _MIB
    memory_bytes: int = 64 * _MIB
    forward: str | None = None
    forward_headers: Mapping[str, str] = field(
        default_factory=dict[str, str], repr=False
    )
    forward_bytes: int = 64 * _MIB
    webhook: str | None = field(default=None, repr=False)
    webhook_headers: Mapping[str, str] = field(
        default_factory=dict[str, str], repr=False
    )
    command: tuple[str, ...] = ()
    debounce: float = 60.0
    hook_severity: Severity = Severity.WARNING
    hook_possible: bool = False
    hook_timeout: float = 5.0
    drain_timeout: float = 20.0
    max_instances: int = 10_000

    def __post_init__(self) -> None:
        self._check_ports()
        self._check_bounds()
        for name in ("debounce", "hook_timeout", "drain_timeout"):
            seconds: float = getattr(self, name)
            if not math.isfinite(seconds) or seconds < 0:
                raise SettingsError(name, f"{seconds} is not a number of seconds")
        if self.forward is not None:
            endpoint("forward", self.forward, _FORWARD_SCHEMES)
        if self.webhook is not None:
            endpoint("webhook", self.webhook, _WEBHOOK_SCHEMES)

    @property
    def forward_endpoint(self) -> Endpoint | None:
        """Host and port that messages go on to."""
        if self.forward is None:
            return None
        return endpoint("forward", self.forward, _FORWARD_SCHEMES)

    def _check_ports(self) -> None:
        if not self.host:
            raise SettingsError("host", "it is empty")
        if self.grpc_port is None and self.http_port is None:
            raise SettingsError("grpc_port", "with no http_port either, nobody listens")
        for name in ("grpc_port", "http_port"):
            port: int | None = getattr(self, name)
            if port is not None and port not in range(1 << 16):
                raise SettingsError(name, f"{port} is not a port")
        if self.grpc_port and self.grpc_port == self.http_port:
            raise SettingsError("http_port", f"grpc_port is {self.grpc_port} as well")

    def _check_bounds(self) -> None:
        for name in ("message_bytes", "memory_bytes", "forward_bytes", "max_instances"):
            if getattr(self, name) < 1:
                raise SettingsError(name, "it counts from 1")
        if self.message_bytes >= _LARGEST_MESSAGE:
            raise SettingsError("message_bytes", "it is 2 GiB or more")
        # Invariant: a message and what it unpacks to fit, so that one always gets in.
        if self.memory_bytes < 2 * self.message_bytes:
            raise SettingsError("memory_bytes", "it is less than twice message_bytes")


def endpoint(setting: str, url: str, schemes: tuple[str, ...]) -> Endpoint:
    """Return where `url` leads.

    Args:
        setting: Name of the setting that it is the value of.
        url: The address.
        schemes: Which schemes it may have.

    Raises:
        SettingsError: It has another scheme, no host, or no port where it needs one.
            The sentence does not repeat the address: it may hold a token.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or _usual_port(parts)
    except ValueError:
        raise SettingsError(setting, "it is not a URL") from None
    if parts.scheme not in schemes or not parts.hostname:
        expected = ", ".join(f"{scheme}://" for scheme in schemes)
        raise SettingsError(setting, f"it is not a URL that begins with {expected}")
    if port is None:
        raise SettingsError(setting, "it names no port")
    return Endpoint(parts.hostname, port)


def _usual_port(parts: SplitResult) -> int | None:
    return {"http": 80, "https": 443, "grpc": GRPC_PORT, "grpcs": GRPC_PORT}.get(
        parts.scheme
    )
