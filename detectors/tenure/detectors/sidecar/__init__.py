"""The sidecar: a detector over what other processes send, whoever they are.

It receives OTLP over gRPC and over HTTP, judges the operations of all senders together,
and so finds races between processes, which none of them could see alone. This package
needs `tenure[sidecar]`.
"""

from tenure.detectors.sidecar.errors import ListenError, SettingsError
from tenure.detectors.sidecar.serve import Drained, Listening, Sidecar, serve
from tenure.detectors.sidecar.settings import (
    GRPC_PORT,
    HTTP_PORT,
    Endpoint,
    Settings,
)

__all__ = [
    "GRPC_PORT",
    "HTTP_PORT",
    "Drained",
    "Endpoint",
    "ListenError",
    "Listening",
    "Settings",
    "SettingsError",
    "Sidecar",
    "serve",
]
