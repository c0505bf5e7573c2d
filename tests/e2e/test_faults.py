"""Telemetry that fails: runs are right and do not wait, and what is lost is counted."""

import json
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .backends import PATIENCE, Rotel, Running, started, until, watch

WORKER = [sys.executable, str(Path(__file__).with_name("worker.py"))]
SPANS_OF_A_RUN = 8
"""run, own, two supersteps, two executions, two commits: one run of the worker."""


class Worker:
    """The application, and what it answers."""

    def __init__(self, running: Running) -> None:
        self.running = running

    def ask(self, what: str) -> Any:
        stdin = self.running.process.stdin
        assert stdin is not None
        stdin.write(f"{what}\n")
        stdin.flush()
        return json.loads(self.running.line())

    def leave(self) -> float:
        """Let it end by itself, and return how long that took."""
        begun = time.monotonic()
        assert self.running.process.stdin is not None
        self.running.process.stdin.close()
        assert self.running.process.wait(PATIENCE) == 0, self.running.log.read_text()
        return time.monotonic() - begun


@contextmanager
def worker(folder: Path, endpoint: str, **variables: str) -> Iterator[Worker]:
    export = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "OTEL_LOGS_EXPORTER": "none",
        "EXIT_TIMEOUT": "1",
    }
    with started("worker", WORKER, folder, **{**export, **variables}) as running:
        yield Worker(running)


class Backend(ThreadingHTTPServer):
    """Takes what is sent and answers with `status`, when it may answer at all."""

    daemon_threads = True

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Asked)
        self.status = status
        self.may_answer = threading.Event()
        self.asked = threading.Event()
        self.answered = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Asked(BaseHTTPRequestHandler):
    server: Backend

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.asked.set()
        self.server.may_answer.wait(PATIENCE * 2)
        self.server.answered += 1
        try:
            self.send_response(self.server.status)
            self.send_header("content-length", "0")
            self.end_headers()
        except OSError:
            pass  # who asked has given up

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def backend(status: int = 200, *, answering: bool) -> Iterator[Backend]:
    server = Backend(status)
    if answering:
        server.may_answer.set()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What becomes of the runs where there is no telemetry at all."""
    folder = tmp_path_factory.mktemp("right")
    with worker(folder, "http://127.0.0.1:1", OTEL_TRACES_EXPORTER="none") as silent:
        told = silent.ask("runs")
        silent.leave()
    assert told["outputs"] == [number + 1 for number in range(1, 102)]
    assert told["state"] == {"number": 101}
    assert told["findings"] == [["stale-discard", "averted"]]
    assert told["verdict"] == "clean"
    return told


def same(told: dict[str, Any], right: dict[str, Any]) -> bool:
    """Say whether runs went as they should and the detector saw it all."""
    assert told.pop("slowest") < 2
    expected = {name: value for name, value in right.items() if name != "slowest"}
    assert told == expected
    return True


HTTP = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}


def test_a_collector_that_is_dead(tmp_path: Path, right: dict[str, Any]):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"
        with worker(tmp_path, endpoint, OTEL_EXPORTER_OTLP_TIMEOUT="0.5") as alone:
            assert same(alone.ask("runs"), right)
            assert alone.ask("flush") is False
            lost = alone.ask("losses")
            assert lost["exporter export_failed"] == lost["processor"]
            assert lost["processor"] >= 100 * SPANS_OF_A_RUN
            assert "Failed to export" in alone.running.log.read_text()
            assert alone.leave() < 4


@pytest.mark.parametrize("status", [400, 503], ids=["for good", "for now"])
def test_a_collector_that_refuses(tmp_path: Path, right: dict[str, Any], status: int):
    with (
        backend(status, answering=True) as refusing,
        worker(
            tmp_path, refusing.url, OTEL_EXPORTER_OTLP_TIMEOUT="0.5", **HTTP
        ) as alone,
    ):
        assert same(alone.ask("runs"), right)
        assert alone.ask("flush") is False
        lost = alone.ask("losses")
        assert lost["exporter export_failed"] == lost["processor"]
        assert lost["processor"] >= 100 * SPANS_OF_A_RUN
        assert refusing.answered > 0
        assert alone.leave() < 4


def test_a_collector_that_never_answers_holds_up_no_run_and_no_end(
    tmp_path: Path, right: dict[str, Any]
):
    with (
        backend(answering=False) as hanging,
        worker(tmp_path, hanging.url, **HTTP) as alone,
    ):
        assert same(alone.ask("runs"), right)
        assert hanging.asked.wait(PATIENCE)
        assert same(alone.ask("runs"), right)
        assert hanging.answered == 0
        assert alone.leave() < 4, "the bound was a second"


def test_the_bound_of_an_end_is_ten_seconds_where_nobody_sets_one(tmp_path: Path):
    with (
        backend(answering=False) as hanging,
        started(
            "worker",
            WORKER,
            tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=hanging.url,
            OTEL_EXPORTER_OTLP_TIMEOUT="60",
            **HTTP,
        ) as running,
    ):
        alone = Worker(running)
        alone.ask("runs")
        assert 5 < alone.leave() < 13
        assert hanging.answered == 0


def test_a_queue_that_is_full_loses_the_oldest_and_counts_them(
    tmp_path: Path, right: dict[str, Any]
):
    size = 64
    with (
        backend(answering=False) as hanging,
        worker(
            tmp_path,
            hanging.url,
            OTEL_BSP_MAX_QUEUE_SIZE=str(size),
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE=str(size),
            EXIT_TIMEOUT="10",
            **HTTP,
        ) as alone,
    ):
        assert same(alone.ask("runs"), right)
        assert hanging.asked.wait(PATIENCE)
        assert same(alone.ask("runs"), right)
        before = alone.ask("losses")
        # All spans but one batch in flight and one queue; races may hide a few more.
        assert before["processor queue_full"] >= 100 * SPANS_OF_A_RUN - 2 * size
        hanging.may_answer.set()
        assert alone.ask("flush") is True
        after = alone.ask("losses")
        assert after["exporter"] == after["processor"] <= 4 * size
        assert alone.leave() < 10


def test_a_collector_that_restarts_in_mid_run_gets_the_rest(
    tmp_path: Path, right: dict[str, Any]
):
    with watch(tmp_path) as (watching, listening):
        collector = Rotel(tmp_path, f"http://{listening['grpc']}")
        with worker(
            tmp_path, f"http://{collector.grpc}", OTEL_EXPORTER_OTLP_TIMEOUT="1"
        ) as alone:
            with collector.running():
                assert same(alone.ask("runs"), right)
                assert alone.ask("flush") is True
            assert same(alone.ask("runs"), right)
            assert alone.ask("flush") is False, "nobody is there"
            lost = alone.ask("losses")
            assert lost["exporter export_failed"] > 0
            with collector.running():
                assert same(alone.ask("runs"), right)
                until(lambda: alone.ask("flush"))
                after = alone.ask("losses")
                assert after["exporter"] > lost["exporter"]
                assert after["processor"] == sum(
                    count for name, count in after.items() if name[:8] == "exporter"
                )
                alone.leave()
        watching.process.terminate()
        while (line := json.loads(watching.line()))["event"] != "ended":
            assert line["severity"] == "averted"
    assert line["verdict"] == "inconclusive", "there is a gap"
