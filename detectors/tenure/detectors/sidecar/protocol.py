"""What OTLP calls its services, its paths and its answers, from its own definitions."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from google.protobuf.descriptor import FileDescriptor
from google.rpc import code_pb2  # pyright: ignore[reportMissingTypeStubs]
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1 import (  # pyright: ignore[reportMissingTypeStubs]
    logs_service_pb2,
)
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tenure.detectors.sidecar.intake import Admission, Answer, Signal

RETRY_AFTER: Final = 1.0
"""Seconds after which a sender is asked to try again."""

RETRYABLE: Final = frozenset({Admission.FULL, Admission.STOPPING})
"""What is worth sending again."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where messages of one signal go, and what answers one that was accepted.

    Attributes:
        service: Full name of the gRPC service.
        method: Name of its one method.
        path: Path over HTTP.
        response: The answer's message class.
        rejected: Name of the field that counts what was rejected.
    """

    service: str
    method: str
    path: str
    response: Callable[..., Any]
    rejected: str

    @property
    def rpc(self) -> str:
        """The path over gRPC."""
        return f"/{self.service}/{self.method}"

    def respond(self, answer: Answer) -> Any:  # noqa: ANN401 - of one of three classes
        """Return the message that answers one that was accepted."""
        if not answer.rejected:
            return self.response()
        partial = {self.rejected: answer.rejected, "error_message": answer.reason}
        return self.response(partial_success=partial)


def _service(
    described: FileDescriptor, path: str, response: Callable[..., Any], rejected: str
) -> Service:
    (service,) = cast("Mapping[str, Any]", described.services_by_name).values()
    (method,) = service.methods
    return Service(service.full_name, method.name, path, response, rejected)


SERVICES: Final[Mapping[Signal, Service]] = MappingProxyType({
    Signal.TRACES: _service(
        trace_service_pb2.DESCRIPTOR,
        "/v1/traces",
        trace_service_pb2.ExportTraceServiceResponse,
        "rejected_spans",
    ),
    Signal.METRICS: _service(
        metrics_service_pb2.DESCRIPTOR,
        "/v1/metrics",
        metrics_service_pb2.ExportMetricsServiceResponse,
        "rejected_data_points",
    ),
    Signal.LOGS: _service(
        logs_service_pb2.DESCRIPTOR,
        "/v1/logs",
        logs_service_pb2.ExportLogsServiceResponse,
        "rejected_log_records",
    ),
})
"""The service of each signal."""

_CODES: Final[Mapping[Admission, int]] = MappingProxyType({
    Admission.TOO_LARGE: code_pb2.RESOURCE_EXHAUSTED,
    Admission.UNREADABLE: code_pb2.INVALID_ARGUMENT,
    Admission.UNSUPPORTED: code_pb2.INVALID_ARGUMENT,
    Admission.FULL: code_pb2.UNAVAILABLE,
    Admission.STOPPING: code_pb2.UNAVAILABLE,
})


def status(answer: Answer) -> Status:
    """Return what a sender is told whose message was refused."""
    found = Status(code=_CODES[answer.admission], message=answer.reason)
    if answer.admission in RETRYABLE:
        found.details.add().Pack(retry_info())
    return found


def retry_info() -> RetryInfo:
    """Return when a sender should try again, as gRPC says it."""
    found = RetryInfo()
    found.retry_delay.FromMilliseconds(round(RETRY_AFTER * 1000))
    return found


def retry_after() -> str:
    """Return when a sender should try again, as HTTP says it."""
    return str(math.ceil(RETRY_AFTER))
