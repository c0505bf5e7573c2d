"""OTLP over HTTP, as the protocol wants it; health and figures."""

import gzip
import json
import os
import socket
import threading

import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from tenure.detectors.sidecar import ListenError, Settings, Sidecar

from .conftest import PATIENCE, commit, message, stale_discard
from .test_bodies import as_json

JSON = "application/json"


def get(url: str, **headers: str) -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.get(url, headers=headers, timeout=PATIENCE)


class TestAccepting:
    def test_protobuf_is_judged_and_answered_in_protobuf(self, watch):
        watched = watch()

        response = watched.post(message(stale_discard(1)).SerializeToString())

        assert response.status_code == 200
        assert response.headers["content-type"] == "application/x-protobuf"
        answered = ExportTraceServiceResponse.FromString(response.content)
        assert answered == ExportTraceServiceResponse()
        assert watched.next().anomaly == "stale-discard"

    def test_json_is_judged_and_answered_in_json(self, watch):
        watched = watch()

        response = watched.post(
            as_json(message(stale_discard(1))),
            content_type="application/json; charset=utf-8",
        )

        assert (response.status_code, response.json()) == (200, {})
        assert response.headers["content-type"] == JSON
        assert watched.next().anomaly == "stale-discard"

    @pytest.mark.parametrize("written", [JSON, "application/x-protobuf"])
    def test_gzip_is_unpacked(self, watch, written):
        watched = watch()
        request = message(stale_discard(1))
        body = as_json(request) if written == JSON else request.SerializeToString()

        response = watched.post(
            gzip.compress(body), content_type=written, content_encoding="gzip"
        )

        assert response.status_code == 200
        assert watched.next().anomaly == "stale-discard"

    def test_a_body_that_comes_in_pieces_is_one_message(self, watch):
        watched = watch()
        body = message(stale_discard(1)).SerializeToString()

        with httpx.Client(trust_env=False) as client:
            response = client.post(
                f"{watched.http}/v1/traces",
                content=iter([body[:10], body[10:]]),
                headers={"content-type": "application/x-protobuf"},
            )

        assert response.status_code == 200
        assert watched.next().anomaly == "stale-discard"

    def test_unreadable_spans_are_told_as_partial_success(self, watch):
        watched = watch()
        request = message(commit(1), stale_discard(2))
        del request.resource_spans[0].scope_spans[0].spans[0].attributes[1:]

        binary = watched.post(request.SerializeToString())
        text = watched.post(as_json(request), content_type=JSON)

        assert binary.status_code == text.status_code == 200
        partial = ExportTraceServiceResponse.FromString(binary.content).partial_success
        assert partial.rejected_spans == 1
        assert "cannot be read" in partial.error_message
        assert text.json()["partialSuccess"]["rejectedSpans"] == "1"
        assert watched.next().anomaly == "stale-discard"
        assert watched.figure("watch_rejected_spans_total") == 2.0

    @pytest.mark.parametrize(
        ("signal", "answer"),
        [
            ("metrics", ExportMetricsServiceResponse),
            ("logs", ExportLogsServiceResponse),
        ],
    )
    def test_other_signals_are_accepted_and_not_looked_at(self, watch, signal, answer):
        watched = watch()

        response = watched.post(b"whatever", signal)

        assert response.status_code == 200
        assert answer.FromString(response.content) == answer()
        assert watched.messages("http", "accepted", signal) == 1.0


class TestRefusing:
    @pytest.mark.parametrize(
        ("body", "headers"),
        [
            (b"\xff\xfe garbage", {}),
            (b"not json", {"content_type": JSON}),
            (b"[]", {"content_type": JSON}),
            (b"\x1f\x8b garbage", {"content_encoding": "gzip"}),
            (gzip.compress(b"\xff\xfe"), {"content_encoding": "gzip"}),
            (os.urandom(4096), {}),
        ],
    )
    def test_garbage_is_a_bad_request_and_counted(self, watch, caplog, body, headers):
        watched = watch()

        response = watched.post(body, **headers)

        assert response.status_code == 400
        assert "Traceback" not in response.text
        assert watched.messages("http", "unreadable") == 1.0
        assert watched.sidecar.detector.verdict == "inconclusive"
        assert "messages that could not be read" in watched.sidecar.detector.missing
        assert caplog.records == []

    def test_errors_are_written_like_the_question(self, watch):
        watched = watch()

        binary = Status.FromString(watched.post(b"\xff").content)
        text = watched.post(b"{", content_type=JSON).json()

        assert binary.message == "The message cannot be read: it is not OTLP protobuf."
        assert text["message"] == "The message cannot be read: it is not JSON."

    @pytest.mark.parametrize(
        "headers",
        [
            {"content_type": "text/plain"},
            {"content_type": ""},
            {"content_type": "application/x-www-form-urlencoded"},
            {"content_encoding": "zstd"},
            {"content_encoding": "gzip, gzip"},
        ],
    )
    def test_what_nobody_reads_is_an_unsupported_media_type(self, watch, headers):
        watched = watch()

        response = watched.post(message(commit(1)).SerializeToString(), **headers)

        assert response.status_code == 415
        assert watched.messages("http", "unsupported") == 1.0

    def test_a_large_body_is_refused_before_it_is_sent(self, watch):
        watched = watch(message_bytes=1024, memory_bytes=4096)
        host, port = watched.http.removeprefix("http://").split(":")

        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sender:
            sender.sendall(
                b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n"
                b"content-type: application/x-protobuf\r\n"
                b"content-length: 1000000000\r\n\r\n"
            )
            answer = sender.recv(64)

        assert answer.startswith(b"HTTP/1.1 413 ")

    def test_a_body_that_grows_too_large_is_refused(self, watch):
        watched = watch(message_bytes=1024, memory_bytes=4096)

        with httpx.Client(trust_env=False) as client:
            response = client.post(
                f"{watched.http}/v1/traces",
                content=iter([bytes(1000), bytes(1000)]),
                headers={"content-type": "application/x-protobuf"},
            )

        assert response.status_code == 413
        assert watched.messages("http", "too_large") == 1.0

    def test_a_bomb_is_too_large_although_it_is_small(self, watch):
        watched = watch(message_bytes=1 << 16, memory_bytes=1 << 18)
        bomb = gzip.compress(bytes(1 << 24))
        assert len(bomb) < 1 << 16

        response = watched.post(bomb, content_encoding="gzip")

        assert response.status_code == 413
        assert "messages that were too large" in watched.sidecar.detector.missing

    def test_refused_messages_leave_no_memory_taken(self, watch):
        watched = watch(message_bytes=1 << 16, memory_bytes=1 << 18)
        for body, headers in (
            (b"\xff", {}),
            (gzip.compress(bytes(1 << 24)), {"content_encoding": "gzip"}),
            (bytes(1 << 17), {}),
            (b"x", {"content_type": "text/plain"}),
        ):
            assert watched.post(body, **headers).status_code >= 400

        assert watched.figure("watch_memory_bytes") == 0.0

    def test_a_sender_that_goes_away_leaves_no_memory_taken(self, watch):
        watched = watch()
        host, port = watched.http.removeprefix("http://").split(":")

        with socket.create_connection((host, int(port)), timeout=PATIENCE) as sender:
            sender.sendall(
                b"POST /v1/traces HTTP/1.1\r\nhost: x\r\n"
                b"content-type: application/x-protobuf\r\n"
                b"content-length: 1000\r\n\r\nhalf"
            )
        watched.sidecar.stop()

        assert watched.figure("watch_memory_bytes") == 0.0

    @pytest.mark.parametrize("path", ["/", "/v1/traces/", "/v2/traces"])
    def test_other_paths_do_not_exist(self, watch, path):
        assert get(watch().http + path).status_code == 404

    def test_traces_are_posted(self, watch):
        assert get(watch().http + "/v1/traces").status_code == 405


class TestRoom:
    def test_messages_for_which_there_is_no_room_may_be_sent_again(self, watch):
        go_on = threading.Event()
        watched = watch(
            lambda _: go_on.wait(PATIENCE), message_bytes=2048, memory_bytes=4096
        )
        watched.post(message(stale_discard(1)).SerializeToString())
        watched.next()  # the judge is busy with it from now on

        accepted = 0
        body = message(commit(1, "other"), padding=500).SerializeToString()
        while (response := watched.post(body)).status_code == 200:
            accepted += 1

        assert accepted > 0
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) > 0
        assert watched.figure("watch_memory_bytes") <= 4096
        assert get(watched.http + "/healthz").status_code == 200

        go_on.set()
        watched.sidecar.stop()
        assert watched.figure("watch_operations_total") == accepted + 1.0
        assert watched.figure("watch_memory_bytes") == 0.0

    def test_spans_of_others_wait_for_nobody(self, watch):
        go_on = threading.Event()
        watched = watch(
            lambda _: go_on.wait(PATIENCE), message_bytes=2048, memory_bytes=4096
        )
        watched.post(message(stale_discard(1)).SerializeToString())
        watched.next()
        request = message(commit(1), padding=1000)
        del request.resource_spans[0].scope_spans[0].spans[0].attributes[:-1]
        request.resource_spans[0].scope_spans[0].scope.name = "somebody"

        answers = [watched.post(request.SerializeToString()) for _ in range(10)]

        assert {answer.status_code for answer in answers} == {200}
        go_on.set()


class TestAside:
    def test_health_is_ok_while_everything_runs(self, watch):
        response = get(watch().http + "/healthz")

        assert (response.status_code, response.json()) == (200, {"status": "ok"})

    def test_figures_are_those_of_prometheus(self, watch):
        watched = watch()
        watched.post(message(stale_discard(1)).SerializeToString())
        watched.next()

        response = get(watched.http + "/metrics")

        assert response.headers["content-type"].startswith("text/plain")
        assert (
            'tenure_violations_total{tenure_anomaly="stale-discard",'
            'tenure_certainty="certain",tenure_engine="x/1",'
            'tenure_severity="violation",tenure_workflow_name="press"} 1.0'
        ) in response.text.splitlines()

    def test_figures_come_as_open_metrics_to_whom_asks(self, watch):
        response = get(
            watch().http + "/metrics",
            accept="application/openmetrics-text; version=1.0.0",
        )

        assert response.headers["content-type"].startswith(
            "application/openmetrics-text"
        )
        assert response.text.endswith("# EOF\n")

    def test_a_port_that_is_taken_is_an_error_and_nothing_is_left_running(self, watch):
        taken = watch()
        address = taken.sidecar.listening.http
        threads = threading.active_count()

        sidecar = Sidecar(Settings(grpc_port=0, http_port=address.port))
        with pytest.raises(ListenError, match=f"cannot listen on {address}") as caught:
            sidecar.start()

        assert isinstance(caught.value, OSError)
        assert threading.active_count() <= threads
        assert json.loads(get(taken.http + "/healthz").text) == {"status": "ok"}
