"""OTLP over gRPC, as the protocol wants it."""

import gzip
import os
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceStub,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceStub,
)

from tenure.detectors.sidecar import ListenError, Settings, Sidecar
from tenure.detectors.sidecar.intake import Signal
from tenure.detectors.sidecar.protocol import SERVICES

from .conftest import PATIENCE, Watched, commit, message, stale_discard


@pytest.fixture
def connect() -> Iterator[Callable[..., grpc.Channel]]:
    channels: list[grpc.Channel] = []

    def connect(watched: Watched, **options: object) -> grpc.Channel:
        channel = grpc.insecure_channel(
            watched.grpc, options=(("grpc.max_send_message_length", -1),), **options
        )
        channels.append(channel)
        return channel

    yield connect
    for channel in channels:
        channel.close()


def refused(channel: grpc.Channel, body: bytes) -> grpc.RpcError:
    """Send bytes as they are; return the error that they are answered with."""
    with pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary(SERVICES[Signal.TRACES].rpc)(body, timeout=PATIENCE)
    return caught.value


@pytest.mark.parametrize(
    "packing", [grpc.Compression.NoCompression, grpc.Compression.Gzip]
)
def test_spans_are_judged(watch, connect, packing):
    watched = watch()
    stub = TraceServiceStub(connect(watched, compression=packing))

    answered = stub.Export(message(stale_discard(1)), timeout=PATIENCE)

    assert answered == ExportTraceServiceResponse()
    assert watched.next().anomaly == "stale-discard"
    assert watched.messages("grpc", "accepted") == 1.0


def test_unreadable_spans_are_told_as_partial_success(watch, connect):
    watched = watch()
    request = message(commit(1), stale_discard(2))
    del request.resource_spans[0].scope_spans[0].spans[0].attributes[1:]

    answered = TraceServiceStub(connect(watched)).Export(request, timeout=PATIENCE)

    assert answered.partial_success.rejected_spans == 1
    assert watched.next().anomaly == "stale-discard"


def test_other_signals_are_accepted_and_not_looked_at(watch, connect):
    watched = watch()
    channel = connect(watched)

    metrics = MetricsServiceStub(channel).Export(ExportMetricsServiceRequest())
    logs = LogsServiceStub(channel).Export(ExportLogsServiceRequest())

    assert metrics == ExportMetricsServiceResponse()
    assert logs == ExportLogsServiceResponse()
    assert watched.messages("grpc", "accepted", "metrics") == 1.0
    assert watched.messages("grpc", "accepted", "logs") == 1.0


@pytest.mark.parametrize(
    "body", [b"\xff\xfe garbage", b"\x1f\x8b garbage", os.urandom(4096)]
)
def test_garbage_is_an_invalid_argument_and_counted(watch, connect, caplog, body):
    watched = watch()

    error = refused(connect(watched), body)

    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.details().startswith("The message cannot be read: ")
    assert watched.messages("grpc", "unreadable") == 1.0
    assert watched.sidecar.detector.verdict == "inconclusive"
    assert caplog.records == []


@pytest.mark.parametrize("size", [1 << 17, 1 << 24])
@pytest.mark.parametrize(
    "packing", [grpc.Compression.NoCompression, grpc.Compression.Gzip]
)
def test_a_message_that_is_too_large_exhausts_a_resource(watch, connect, packing, size):
    watched = watch(message_bytes=1 << 16, memory_bytes=1 << 18)

    error = refused(connect(watched, compression=packing), bytes(size))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "retryinfo" not in str(error.trailing_metadata()).lower()
    assert watched.figure("watch_memory_bytes") == 0.0


def test_a_bomb_is_refused_by_what_it_unpacks_to(watch, connect):
    watched = watch(message_bytes=1 << 16, memory_bytes=1 << 18)

    error = refused(connect(watched), gzip.compress(bytes(1 << 24)))

    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert watched.messages("grpc", "too_large") == 1.0


def test_messages_for_which_there_is_no_room_may_be_sent_again(watch, connect):
    go_on = threading.Event()
    watched = watch(
        lambda _: go_on.wait(PATIENCE), message_bytes=2048, memory_bytes=4096
    )
    channel = connect(watched)
    stub = TraceServiceStub(channel)
    stub.Export(message(stale_discard(1)), timeout=PATIENCE)
    watched.next()  # the judge is busy with it from now on

    accepted, error = 0, None
    while error is None:
        try:
            stub.Export(message(commit(1, "other"), padding=500), timeout=PATIENCE)
            accepted += 1
        except grpc.RpcError as found:
            error = found

    assert accepted > 0
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    trailing = dict(error.trailing_metadata())
    told = Status.FromString(trailing["grpc-status-details-bin"])
    assert told.message == error.details()
    details = RetryInfo()
    assert told.details[0].Unpack(details)
    assert details.retry_delay.ToMilliseconds() > 0
    assert RetryInfo.FromString(trailing["google.rpc.retryinfo-bin"]) == details

    go_on.set()
    watched.sidecar.stop()
    assert watched.figure("watch_operations_total") == accepted + 1.0


def test_a_port_that_is_taken_is_an_error(watch):
    taken = watch().sidecar.listening.grpc

    sidecar = Sidecar(Settings(grpc_port=taken.port, http_port=None))
    with pytest.raises(ListenError, match=f"cannot listen on {taken}"):
        sidecar.start()
