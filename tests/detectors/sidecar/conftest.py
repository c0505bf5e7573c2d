"""A sidecar on free ports, messages for it, and those whom it calls."""

import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from tenure.detectors import Finding
from tenure.detectors.sidecar import Settings, Sidecar
from tenure.instrumentation.attributes import operation_attributes, span_name
from tenure.instrumentation.operations import (
    Commit,
    Discard,
    DiscardCause,
    Operation,
    Owner,
    RunRef,
    WriteSet,
)

SENDER = Path(__file__).with_name("sender.py")
PATIENCE = 15.0


def run_of(epoch: int, instance: str = "i") -> RunRef:
    return RunRef("x/1", "press", instance, f"run-{epoch}", epoch, "p")


def commit(seq: int, instance: str = "i") -> Commit:
    """A commit that breaks no rule."""
    return Commit(
        run=run_of(1, instance),
        seq=seq,
        owner=Owner(1, "run-1"),
        writes=WriteSet((("k", 1),)),
    )


def stale_discard(seq: int, instance: str = "i") -> Discard:
    """A discard of a successor's write, which is a violation by itself."""
    return Discard(
        run=run_of(1, instance),
        seq=seq,
        owner=Owner(2, "run-2"),
        writes=WriteSet((("k", 2),)),
        cause=DiscardCause.ABANDONED,
    )


def _put(value, found: object) -> None:
    match found:
        case bool():
            value.bool_value = found
        case int():
            value.int_value = found
        case str():
            value.string_value = found
        case _:
            for item in found:
                _put(value.array_value.values.add(), item)


def message(*operations: Operation, scope: str = "tenure.runtime", padding: int = 0):
    """Return the message of OTLP that carries `operations`, one span for each."""
    request = ExportTraceServiceRequest()
    scope_spans = request.resource_spans.add().scope_spans.add()
    scope_spans.scope.name = scope
    for number, operation in enumerate(operations, 1):
        span = scope_spans.spans.add(
            name=span_name(operation),
            trace_id=number.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            start_time_unix_nano=number,
            end_time_unix_nano=number + 1,
        )
        for name, value in operation_attributes(operation).items():
            _put(span.attributes.add(key=name).value, value)
        if padding:
            span.attributes.add(key="padding").value.string_value = "x" * padding
    return request


class Watched:
    """A sidecar that runs, and what it has found."""

    def __init__(self, sidecar: Sidecar, found: "queue.SimpleQueue[Finding]") -> None:
        self.sidecar = sidecar
        self.found = found

    @property
    def grpc(self) -> str:
        return str(self.sidecar.listening.grpc)

    @property
    def http(self) -> str:
        return f"http://{self.sidecar.listening.http}"

    def post(
        self, body: bytes, signal: str = "traces", **headers: str
    ) -> httpx.Response:
        given = {
            "content-type": "application/x-protobuf",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        with httpx.Client(trust_env=False) as client:
            return client.post(
                f"{self.http}/v1/{signal}",
                content=body,
                headers=given,
                timeout=PATIENCE,
            )

    def next(self) -> Finding:
        """Wait for the next finding."""
        return self.found.get(timeout=PATIENCE)

    def figure(self, name: str, **labels: str) -> float | None:
        return self.sidecar.figures.registry.get_sample_value(
            f"tenure_{name}", labels or None
        )

    def messages(self, transport: str, admission: str, signal: str = "traces") -> float:
        found = self.figure(
            "watch_messages_total",
            transport=transport,
            admission=admission,
            signal=signal,
        )
        return found or 0.0


@pytest.fixture
def watch() -> Iterator[Callable[..., Watched]]:
    """Start a sidecar on free ports; it is stopped at the end."""
    started: list[Sidecar] = []

    def start(
        on_finding: Callable[[Finding], object] | None = None, **settings
    ) -> Watched:
        found: queue.SimpleQueue[Finding] = queue.SimpleQueue()

        def hear(finding: Finding) -> None:
            found.put(finding)
            if on_finding is not None:
                on_finding(finding)

        asked = {"grpc_port": 0, "http_port": 0, "drain_timeout": PATIENCE, **settings}
        sidecar = Sidecar(Settings(**asked), hear)
        started.append(sidecar)
        sidecar.start()
        return Watched(sidecar, found)

    yield start
    for sidecar in started:
        sidecar.stop()


class Called:
    """A web server that keeps what is posted to it."""

    def __init__(self) -> None:
        self.requests: queue.SimpleQueue[tuple[str, dict[str, str], bytes]] = (
            queue.SimpleQueue()
        )
        # What it answers, one after the other; then 200.
        self.answers: list[int] = []
        called = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["content-length"])
                headers = {name.lower(): value for name, value in self.headers.items()}
                called.requests.put((self.path, headers, self.rfile.read(size)))
                self.send_response(called.answers.pop(0) if called.answers else 200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def next(self) -> tuple[str, dict[str, str], bytes]:
        return self.requests.get(timeout=PATIENCE)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def called() -> Iterator[Called]:
    server = Called()
    yield server
    server.close()


@pytest.fixture
def nobody() -> Iterator[str]:
    """A host and port at which nobody listens, and which nobody else can take."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def send() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start a process that sends what `runs` did, with OpenTelemetry's exporter."""
    started: list[subprocess.Popen[str]] = []

    def start(
        transport: str,
        endpoint: str,
        *runs: dict,
        packing: str = "gzip",
        timeout: float = PATIENCE,
    ) -> "subprocess.Popen[str]":
        exporter = {
            "transport": transport,
            "endpoint": endpoint,
            "packing": packing,
            "timeout": timeout,
        }
        asked = {"exporter": exporter, "runs": runs}
        process = subprocess.Popen(
            [sys.executable, str(SENDER), json.dumps(asked)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def sent(process: "subprocess.Popen[str]") -> str:
    """Wait for the end of a sender; return what its exporter said."""
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    return json.loads(out)
