"""`tenure watch` as users run it: a process of its own, fed by other processes."""

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

PROGRAM = "import sys; from tenure.cli import main; sys.exit(main())"
PATIENCE = 20.0


def environment(**variables: str) -> dict[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    return {**clean, **variables}


def tenure(
    *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env=environment(**variables),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


class Watch:
    """A running `tenure watch --json`."""

    def __init__(self, *arguments: str, ports: bool = True, **variables: str) -> None:
        free = ("--grpc-port", "0", "--http-port", "0") if ports else ()
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-W", "error", "-c", PROGRAM),
                *("watch", "--json", *free, *arguments),
            ],
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.listening = self.line()

    @property
    def http(self) -> str:
        return self.listening["http"]

    @property
    def grpc(self) -> str:
        return f"http://{self.listening['grpc']}"

    def line(self) -> dict:
        """Wait for the next line."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        return json.loads(line)

    def get(self, path: str) -> httpx.Response:
        with httpx.Client(trust_env=False) as client:
            return client.get(self.http + path, timeout=PATIENCE)

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        with httpx.Client(trust_env=False) as client:
            return client.post(
                f"{self.http}/v1/traces",
                content=body,
                headers=headers,
                timeout=PATIENCE,
            )

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[list[dict], str]:
        """Ask it to end; return what it still printed, and what it complained of."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        return [json.loads(line) for line in out.splitlines()], err


@pytest.fixture
def watch() -> Iterator[Callable[..., Watch]]:
    started: list[Watch] = []

    def start(*arguments: str, **options) -> Watch:
        started.append(Watch(*arguments, **options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
        each.process.communicate()


@pytest.fixture
def posted() -> Iterator[tuple[str, "queue.SimpleQueue[dict]"]]:
    """A web server, and what is posted to it."""
    documents: queue.SimpleQueue[dict] = queue.SimpleQueue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            documents.put(json.loads(self.rfile.read(size)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", documents
    server.shutdown()
    server.server_close()
    thread.join()


def race(instance: str = "i", seq: int = 1) -> bytes:
    """A discard of a successor's write, as OTLP JSON."""
    facts = {
        "tenure.engine": "x/1",
        "tenure.workflow.name": "press",
        "tenure.instance.id": instance,
        "tenure.run.id": "run-1",
        "tenure.run.epoch": 1,
        "tenure.process.id": "p",
        "tenure.seq": seq,
        "tenure.owner.epoch": 2,
        "tenure.write.count": 1,
        "tenure.discard.cause": "abandoned",
    }
    attributes = [
        {
            "key": name,
            "value": {"stringValue": value}
            if isinstance(value, str)
            else {"intValue": str(value)},
        }
        for name, value in facts.items()
    ]
    attributes += [
        {"key": "tenure.discard.fenced", "value": {"boolValue": False}},
        {
            "key": "tenure.write.keys",
            "value": {"arrayValue": {"values": [{"stringValue": "k"}]}},
        },
        {
            "key": "tenure.write.epochs",
            "value": {"arrayValue": {"values": [{"intValue": "2"}]}},
        },
    ]
    span = {
        "name": "discard",
        "traceId": f"{seq:032x}",
        "spanId": f"{seq:016x}",
        "attributes": attributes,
    }
    scope_spans = [{"scope": {"name": "tenure.runtime"}, "spans": [span]}]
    return json.dumps({"resourceSpans": [{"scopeSpans": scope_spans}]}).encode()


JSON = {"content-type": "application/json"}


class TestTheDemo:
    @pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
    def test_its_race_is_found_told_and_counted(
        self, watch, posted, tmp_path, protocol
    ):
        url, documents = posted
        watching = watch("--webhook", url)
        endpoint = watching.grpc if protocol == "grpc" else watching.http

        told = tenure(
            *("demo", "--engine", "agent-framework", "--engine", "tenure"),
            cwd=tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
            OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        )
        assert told.returncode == 0, told.stderr

        found = [watching.line() for _ in range(3)]
        harmful = {each["anomaly"] for each in found if each["severity"] == "violation"}
        assert harmful == {"stale-discard", "leaked-write"}
        # One call for each anomaly of the instance; what was averted calls nobody.
        calls = [documents.get(timeout=PATIENCE) for _ in harmful]
        assert {each["anomaly"] for each in calls} == harmful
        figures = watching.get("/metrics").text
        assert re.search(
            r'tenure_violations_total\{tenure_anomaly="stale-discard",'
            r'tenure_certainty="certain",tenure_engine="agent-framework/[^"]+",'
            r'tenure_severity="violation",tenure_workflow_name="answers"\} 1\.0',
            figures,
        )

        rest, complaints = watching.end()
        assert [each["event"] for each in rest] == ["ended"]
        assert (rest[0]["verdict"], rest[0]["left"]) == ("violated", {})
        assert watching.process.returncode == 1
        assert documents.empty()
        assert complaints == ""


class TestEnding:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_what_was_accepted_is_judged_and_told_before_it_ends(
        self, watch, posted, number
    ):
        url, documents = posted
        watching = watch("--webhook", url, "--debounce", "0")
        for seq in range(1, 101):
            assert watching.post(race(seq=seq), **JSON).status_code == 200

        rest, _ = watching.end(number)

        assert [each["event"] for each in rest] == ["finding"] * 100 + ["ended"]
        assert documents.qsize() == 100
        assert watching.process.returncode == 1

    def test_silence_is_inconclusive(self, watch):
        watching = watch()

        (ended,), _ = watching.end()

        assert ended["verdict"] == "inconclusive"
        assert watching.process.returncode == 3

    def test_a_supervisor_gets_zero_if_it_asks_for_it(self, watch):
        watching = watch("--exit-zero")
        watching.post(race(), **JSON)

        watching.end()

        assert watching.process.returncode == 0

    def test_a_second_signal_ends_it_at_once(self, watch, tmp_path):
        fifo = tmp_path / "called"
        os.mkfifo(fifo)
        watching = watch(
            *("--exec", f"sh -c 'echo $$ > {fifo}; exec sleep 60'"),
            *("--hook-timeout", "60", "--drain-timeout", "60"),
        )
        host, port = watching.http.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as idle:
            idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            assert idle.recv(12) == b"HTTP/1.1 200"
            watching.post(race(), **JSON)
            hook = int(fifo.read_text())  # it runs, and does not end

            watching.process.send_signal(signal.SIGTERM)
            while idle.recv(4096):
                pass  # until the first signal has closed the connection
            watching.process.send_signal(signal.SIGTERM)

        assert watching.process.wait(PATIENCE) == -signal.SIGTERM
        os.kill(hook, signal.SIGKILL)

    def test_nobody_who_reads_is_no_end(self, watch):
        watching = watch()
        watching.process.stdout.close()

        for seq in range(1, 4):
            assert watching.post(race(seq=seq), **JSON).status_code == 200

        assert watching.get("/healthz").status_code == 200
        watching.process.send_signal(signal.SIGTERM)
        complaints = watching.process.stderr.read()
        assert watching.process.wait(PATIENCE) == 1
        assert complaints.count("Nobody reads standard output") == 1
        assert "Traceback" not in complaints


class TestStarting:
    def test_variables_do_what_options_do(self, watch, tmp_path):
        kept = tmp_path / "kept.json"
        watching = watch(
            ports=False,
            TENURE_WATCH_GRPC_PORT="0",
            TENURE_WATCH_HTTP_PORT="0",
            TENURE_WATCH_MAX_MESSAGE="16KiB",
            TENURE_WATCH_MAX_MEMORY="1m",
            TENURE_WATCH_EXEC=f"tee '{kept}'",
        )

        assert watching.post(b"{" + b" " * (16 << 10), **JSON).status_code == 413
        assert watching.post(race(), **JSON).status_code == 200

        watching.end()
        assert json.loads(kept.read_text())["anomaly"] == "stale-discard"

    def test_only_this_machine_reaches_it(self, watch):
        listening = watch().listening

        assert listening["grpc"].startswith("127.0.0.1:")
        assert listening["http"].startswith("http://127.0.0.1:")

    def test_whoever_opens_it_is_warned(self, watch):
        watching = watch("--host", "0.0.0.0")

        _, complaints = watching.end()

        assert "Whoever reaches 0.0.0.0 can send spans" in complaints

    def test_a_port_that_is_taken_is_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
            done = tenure("watch", "--grpc-port", "0", "--http-port", port)

        assert done.returncode == 2
        assert done.stderr == (
            f"tenure: cannot listen on 127.0.0.1:{port}: Address already in use\n"
        )

    @pytest.mark.parametrize(
        ("arguments", "option"),
        [
            (("--max-message", "huge"), "--max-message"),
            (("--max-memory", "1MiB"), "--max-memory"),
            (("--grpc-port", "70000"), "--grpc-port"),
            (("--forward", "collector:4317"), "--forward"),
            (("--webhook", "hook"), "--webhook"),
            (("--exec", "'unclosed"), "unclosed"),
            (("--webhook-headers", "s3cr3t"), "name=value"),
            (("--no-grpc", "--no-http"), "--grpc-port"),
        ],
    )
    def test_bad_usage_names_the_option(self, arguments, option):
        done = tenure("watch", *arguments)

        assert done.returncode == 2
        assert option in done.stderr
        assert "s3cr3t" not in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize("missing", ["grpc", "starlette", "opentelemetry.proto"])
    def test_a_missing_extra_is_one_line(self, missing):
        program = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r} or name.startswith({missing!r} + "."):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
{PROGRAM}
"""
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, "watch"],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=50,
            check=False,
        )

        assert done.returncode == 2
        assert done.stderr == (
            f"tenure: {missing} not installed; run pip install 'tenure[watch]'\n"
        )

    def test_text_is_for_people(self):
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", PROGRAM),
                *("watch", "--grpc-port", "0", "--http-port", "0"),
            ],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            lines = [process.stdout.readline() for _ in range(2)]
            url = lines[1].rpartition(" ")[2].strip()
            with httpx.Client(trust_env=False) as client:
                client.post(f"{url}/v1/traces", content=race(), headers=JSON)
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
            process.wait()

        assert lines[0].startswith("OTLP over gRPC on 127.0.0.1:")
        assert "stale discard (violation, certain) in press/i" in out
        assert out.splitlines()[-1] == "verdict: violated"


def test_help_names_every_option_and_loads_nothing_heavy():
    done = tenure("watch", "--help", COLUMNS="200")

    assert done.returncode == 0
    for option in ("--webhook", "--exec", "--forward", "--debounce", "--exit-zero"):
        assert option in done.stdout
    assert "TENURE_WATCH_WEBHOOK" in done.stdout
