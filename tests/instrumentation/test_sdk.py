"""`configure_otlp` against real OTLP receivers, each in a process of its own.

OpenTelemetry's providers are global and can be set once, hence the processes.
"""

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics
from opentelemetry.proto.collector.metrics.v1 import (
    metrics_service_pb2_grpc as metrics_grpc,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as traces
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as traces_grpc


class Receiver:
    """What arrived over OTLP, as plain data, whichever way it came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.endpoint = ""
        self.batches: list[dict] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()

    def take(self, message) -> None:
        with self._lock:
            self.batches.append(MessageToDict(message))
        self.asked.set()

    def spans(self) -> list[dict]:
        return [
            {**span, "scope": scope["scope"]["name"], "resource": resource["resource"]}
            for batch in self.batches
            for resource in batch.get("resourceSpans", ())
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def span_names(self) -> list[str]:
        return [span["name"] for span in self.spans()]

    def metric_names(self) -> set[str]:
        """What the program measures; what the SDK says of itself is left out."""
        return {
            metric["name"]
            for batch in self.batches
            for resource in batch.get("resourceMetrics", ())
            for scope in resource["scopeMetrics"]
            for metric in scope["metrics"]
            if not metric["name"].startswith("otel.sdk.")
        }

    def log_names(self) -> set[str]:
        return {
            record["eventName"]
            for batch in self.batches
            for resource in batch.get("resourceLogs", ())
            for scope in resource["scopeLogs"]
            for record in scope["logRecords"]
        }

    def service_name(self) -> str:
        attributes = self.spans()[0]["resource"]["attributes"]
        return {item["key"]: item["value"]["stringValue"] for item in attributes}[
            "service.name"
        ]


@pytest.fixture
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    requests = {
        "/v1/traces": traces.ExportTraceServiceRequest,
        "/v1/metrics": metrics.ExportMetricsServiceRequest,
        "/v1/logs": logs.ExportLogsServiceRequest,
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = requests[self.path]()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            message.ParseFromString(body)
            receiver.headers.append({
                name.lower(): value for name, value in self.headers.items()
            })
            receiver.take(message)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield receiver
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def grpc_receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    def answering(response):
        def export(_self, request, _context):
            receiver.take(request)
            return response()

        return type("Servicer", (), {"Export": export})()

    server = grpc.server(ThreadPoolExecutor(2))
    traces_grpc.add_TraceServiceServicer_to_server(
        answering(traces.ExportTraceServiceResponse), server
    )
    metrics_grpc.add_MetricsServiceServicer_to_server(
        answering(metrics.ExportMetricsServiceResponse), server
    )
    logs_grpc.add_LogsServiceServicer_to_server(
        answering(logs.ExportLogsServiceResponse), server
    )
    receiver.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield receiver
    server.stop(None).wait()


SIGNALS = """
from opentelemetry import metrics, trace
from opentelemetry._logs import get_logger
from tenure.instrumentation import configure_otlp

def emit(count=1):
    for number in range(count):
        trace.get_tracer("test").start_span(f"span {number}").end()
    metrics.get_meter("test").create_counter("things").add(1)
    get_logger("test").emit(event_name="it.happened", body="it")
"""


def run_python(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("OTEL")
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**clean, **variables},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def succeed(script: str, **variables: str) -> str:
    done = run_python(script, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_all_three_signals_arrive_over_http(http_receiver: Receiver):
    told = succeed(
        SIGNALS + "t = configure_otlp(); emit(); print(t.shutdown(), t.kept)",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert told == "True frozenset()\n"
    assert http_receiver.span_names() == ["span 0"]
    assert http_receiver.metric_names() == {"things"}
    assert http_receiver.log_names() == {"it.happened"}


def test_all_three_signals_arrive_over_grpc_which_is_the_default(
    grpc_receiver: Receiver,
):
    told = succeed(
        SIGNALS + "t = configure_otlp(); emit(); print(t.shutdown())",
        OTEL_EXPORTER_OTLP_ENDPOINT=grpc_receiver.endpoint,
    )

    assert told == "True\n"
    assert grpc_receiver.span_names() == ["span 0"]
    assert grpc_receiver.metric_names() == {"things"}
    assert grpc_receiver.log_names() == {"it.happened"}


def test_a_signal_can_have_a_transport_of_its_own(
    http_receiver: Receiver, grpc_receiver: Receiver
):
    succeed(
        SIGNALS + "configure_otlp(); emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=grpc_receiver.endpoint,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{http_receiver.endpoint}/v1/traces",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf",
    )

    assert http_receiver.span_names() == ["span 0"]
    assert grpc_receiver.span_names() == []
    assert grpc_receiver.metric_names() == {"things"}


def test_what_waits_is_exported_when_the_process_ends(http_receiver: Receiver):
    succeed(
        SIGNALS + "configure_otlp(); emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert http_receiver.span_names() == ["span 0"]
    assert http_receiver.metric_names() == {"things"}
    assert http_receiver.log_names() == {"it.happened"}


def test_a_burst_of_twenty_thousand_spans_is_not_lost(grpc_receiver: Receiver):
    succeed(
        SIGNALS + "t = configure_otlp(); emit(20_000); assert t.shutdown(30)",
        OTEL_EXPORTER_OTLP_ENDPOINT=grpc_receiver.endpoint,
    )

    assert len(grpc_receiver.span_names()) == 20_000


def test_a_signal_that_is_turned_off_is_not_exported(http_receiver: Receiver):
    succeed(
        SIGNALS + "configure_otlp(); emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )

    assert http_receiver.span_names() == ["span 0"]
    assert http_receiver.metric_names() == set()
    assert http_receiver.log_names() == set()


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "press"),
        ({"OTEL_SERVICE_NAME": "from-env"}, "from-env"),
        (
            {"OTEL_RESOURCE_ATTRIBUTES": "service.name=from-attributes"},
            "from-attributes",
        ),
    ],
)
def test_the_environment_names_the_service_before_the_code_does(
    http_receiver: Receiver, variables: dict[str, str], name: str
):
    succeed(
        SIGNALS
        + "configure_otlp(service_name='press', resource_attributes={'a': 'b'})\n"
        + "emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        **variables,
    )

    assert http_receiver.service_name() == name
    assert {"key": "a", "value": {"stringValue": "b"}} in http_receiver.spans()[0][
        "resource"
    ]["attributes"]


PROCESSOR = """
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

class Seen(SpanProcessor):
    def __init__(self):
        self.spans = []
    def on_start(self, span, parent_context=None):
        span.set_attribute("stamped", True)
    def on_end(self, span):
        self.spans.append(span.name)
"""


def test_processors_that_are_handed_in_see_spans_before_the_exporter(
    http_receiver: Receiver,
):
    told = succeed(
        SIGNALS
        + PROCESSOR
        + "seen = Seen(); configure_otlp(span_processors=[seen]); emit()\n"
        + "print(seen.spans)",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert told == "['span 0']\n"
    (span,) = http_receiver.spans()
    assert {"key": "stamped", "value": {"boolValue": True}} in span["attributes"]


def test_an_application_that_has_a_provider_keeps_it_and_gets_the_processors(
    http_receiver: Receiver,
):
    told = succeed(
        SIGNALS
        + PROCESSOR
        + """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(message)s")
logging.getLogger("urllib3").setLevel(logging.WARNING)
own = TracerProvider()
trace.set_tracer_provider(own)
seen = Seen()
telemetry = configure_otlp(span_processors=[seen])
assert trace.get_tracer_provider() is own
emit()
print(seen.spans, sorted(telemetry.kept))
telemetry.shutdown()
trace.get_tracer("test").start_span("later").end()
print(seen.spans)
""",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert told.splitlines() == [
        "The application's own providers stay in use for: traces",
        "['span 0'] ['traces']",
        "['span 0', 'later']",
    ]
    assert http_receiver.spans() == []
    assert http_receiver.metric_names() == {"things"}


def test_a_second_call_adds_processors_and_no_second_exporter(
    http_receiver: Receiver,
):
    told = succeed(
        SIGNALS
        + PROCESSOR
        + "configure_otlp(); seen = Seen()\n"
        + "again = configure_otlp(span_processors=[seen]); emit()\n"
        + "print(seen.spans, sorted(again.kept))",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert told == "['span 0'] ['logs', 'metrics', 'traces']\n"
    assert http_receiver.span_names() == ["span 0"]


def test_a_provider_that_is_not_the_sdks_is_refused():
    told = succeed(
        SIGNALS
        + """
from opentelemetry.trace import NoOpTracerProvider
from tenure.instrumentation import TelemetryConfigError
trace.set_tracer_provider(NoOpTracerProvider())
try:
    configure_otlp()
except TelemetryConfigError as error:
    print(error)
"""
    )

    assert told.startswith("tracer provider='NoOpTracerProvider' cannot be used: ")


def test_shutdown_keeps_its_timeout_when_nobody_answers():
    # A port that is bound and does not listen refuses or ignores every connection.
    told = succeed(
        SIGNALS
        + """
import os, socket, sys, time
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
telemetry = configure_otlp()
emit(3)
started = time.monotonic()
in_time = telemetry.shutdown(timeout=0.3)
print(in_time, time.monotonic() - started < 3, telemetry.shutdown())
sys.stdout.flush(); os._exit(0)
"""
    )

    assert told == "False True False\n"


def test_a_flush_that_fails_says_so_and_counts_what_was_lost():
    told = succeed(
        SIGNALS
        + """
import os, socket, sys
bound = socket.socket()
bound.bind(("127.0.0.1", 0))
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{bound.getsockname()[1]}"
telemetry = configure_otlp()
emit(3)
print(telemetry.force_flush(timeout=20), telemetry.lost_spans)
sys.stdout.flush(); os._exit(0)
""",
        OTEL_EXPORTER_OTLP_TIMEOUT="0.2",
        OTEL_METRICS_EXPORTER="none",
        OTEL_LOGS_EXPORTER="none",
    )

    assert told == "False 3\n"


@pytest.mark.parametrize(
    ("variable", "value", "remedy"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "use grpc or http/protobuf"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grcp", "use grpc or http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "give a positive number of seconds"),
        ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "-1", "give a positive number"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zip", "use gzip, or unset it"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named_with_what_to_do(
    variable: str, value: str, remedy: str
):
    told = succeed(
        SIGNALS
        + """
from tenure.instrumentation import TelemetryConfigError
try:
    configure_otlp()
except TelemetryConfigError as error:
    print(error)
from opentelemetry.sdk.trace import TracerProvider
assert not isinstance(trace.get_tracer_provider(), TracerProvider)
""",
        **{variable: value},
    )

    assert told.startswith(f"{variable}={value!r} cannot be used: {remedy}")


def test_a_queue_that_the_sdk_refuses_is_named_too():
    told = succeed(
        SIGNALS
        + """
from tenure.instrumentation import TelemetryConfigError
try:
    configure_otlp()
except TelemetryConfigError as error:
    print(error)
""",
        OTEL_BSP_MAX_QUEUE_SIZE="10",
    )

    assert told.startswith("OTEL_BSP_*=\"{'OTEL_BSP_MAX_QUEUE_SIZE': '10'}\"")
    assert "max_export_batch_size" in told


def test_a_sampler_that_is_handed_in_decides(http_receiver: Receiver):
    succeed(
        SIGNALS
        + """
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
configure_otlp(sampler=ALWAYS_OFF)
emit()
""",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert http_receiver.spans() == []
    assert http_receiver.log_names() == {"it.happened"}


def test_an_http_endpoint_without_a_scheme_is_refused():
    told = succeed(
        SIGNALS
        + """
from tenure.instrumentation import TelemetryConfigError
try:
    configure_otlp()
except TelemetryConfigError as error:
    print(error)
""",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_ENDPOINT="collector:4318",
    )

    assert told == (
        "OTEL_EXPORTER_OTLP_ENDPOINT='collector:4318' cannot be used: begin with "
        "http:// or https://, as in http://collector:4318\n"
    )


WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith(ABSENT):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    "absent", ["opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc"]
)
def test_without_the_extra_it_says_what_to_install(absent: str):
    told = succeed(
        f"ABSENT = {absent!r}\n"
        + WITHOUT
        + """
from tenure.instrumentation import TelemetryConfigError, configure_otlp
try:
    configure_otlp()
except TelemetryConfigError as error:
    print(error)
"""
    )

    assert "tenure[otlp]" in told
    assert "pip install 'tenure[otlp]'" in told


def test_importing_the_door_loads_no_sdk():
    told = succeed(
        """
import json, sys
import tenure.instrumentation
from tenure.instrumentation import configure_otlp
print(json.dumps([name for name in sys.modules if name.startswith(
    ("opentelemetry.sdk", "opentelemetry.exporter", "google.protobuf", "grpc"))]))
"""
    )

    assert json.loads(told) == []


def test_the_sdk_that_is_disabled_emits_nothing(http_receiver: Receiver):
    succeed(
        SIGNALS + "configure_otlp(); emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_SDK_DISABLED="true",
    )

    assert http_receiver.spans() == []


def test_headers_compression_and_limits_come_from_the_environment(
    http_receiver: Receiver,
):
    succeed(
        SIGNALS
        + """
configure_otlp()
tracer = trace.get_tracer("test")
tracer.start_span("full", attributes={str(n): n for n in range(9)}).end()
""",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20x",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="3",
    )

    assert {each["authorization"] for each in http_receiver.headers} == {"Bearer x"}
    assert {each["content-encoding"] for each in http_receiver.headers} == {"gzip"}
    (span,) = http_receiver.spans()
    assert len(span["attributes"]) == 3
    assert span["droppedAttributesCount"] == 6


def test_the_environment_chooses_the_sampler(http_receiver: Receiver):
    succeed(
        SIGNALS + "configure_otlp(); emit()",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_TRACES_SAMPLER="always_off",
    )

    assert http_receiver.spans() == []
    assert http_receiver.log_names() == {"it.happened"}


@pytest.mark.parametrize(
    ("variable", "other"),
    [
        ("OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRICS_EXPORTER"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "OTEL_TRACES_EXPORTER"),
    ],
)
def test_the_environment_says_how_often_something_is_exported(
    http_receiver: Receiver, variable: str, other: str
):
    # Nothing is flushed: what arrives while the process lives was sent in time.
    script = SIGNALS + "configure_otlp(); emit(); import sys; sys.stdin.read()"
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith("OTEL")
    }
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": http_receiver.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_LOGS_EXPORTER": "none",
        other: "none",
        variable: "50",
    }
    with subprocess.Popen(
        [sys.executable, "-c", script],
        env={**clean, **settings},
        stdin=subprocess.PIPE,
    ) as process:
        try:
            # By default a batch of spans waits five seconds, and metrics a minute.
            assert http_receiver.asked.wait(4)
            assert process.poll() is None
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("value", "counted"), [(None, True), ("true", True), ("false", False)]
)
def test_what_is_exported_is_counted_unless_the_environment_says_no(
    http_receiver: Receiver, value: str | None, counted: bool
):
    told = succeed(
        SIGNALS
        + """
import json
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
telemetry = configure_otlp()
emit(7)
assert telemetry.force_flush()
print(json.dumps({
    metric.name: [point.value for point in metric.data.data_points]
    for resource in reader.get_metrics_data().resource_metrics
    for scope in resource.scope_metrics
    for metric in scope.metrics
    if metric.name.endswith((".exported", ".processed"))
}))
""",
        OTEL_EXPORTER_OTLP_ENDPOINT=http_receiver.endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        **(
            {} if value is None else {"OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": value}
        ),
    )

    expected = {
        "otel.sdk.exporter.span.exported": [7],
        "otel.sdk.exporter.log.exported": [1],
        "otel.sdk.processor.span.processed": [7],
        "otel.sdk.processor.log.processed": [1],
    }
    assert json.loads(told) == (expected if counted else {})
