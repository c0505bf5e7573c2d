"""Messages on to the next collector: the very bytes, tried again, or counted."""

import gzip

import pytest

from .conftest import commit, message, stale_discard
from .test_bodies import as_json


def results(watched) -> dict[str, float]:
    return {
        result: count
        for result in ("sent", "failed", "refused", "dropped")
        if (count := watched.figure("watch_forwarded_total", result=result))
    }


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("written", ["application/json", "application/x-protobuf"])
def test_the_very_bytes_go_on(watch, called, packed, written):
    watched = watch(forward=f"{called.url}/otlp", forward_headers={"x-token": "t"})
    request = message(commit(1))
    body = as_json(request) if "json" in written else request.SerializeToString()
    headers = {"content_type": written}
    if packed:
        body = gzip.compress(body)
        headers["content_encoding"] = "gzip"

    assert watched.post(body, **headers).status_code == 200

    path, got, received = called.next()
    assert (path, received) == ("/otlp/v1/traces", body)
    assert got["content-type"] == written
    assert got.get("content-encoding") == ("gzip" if packed else None)
    assert got["x-token"] == "t"
    assert watched.sidecar.stop().left == ()
    assert results(watched) == {"sent": 1.0}


@pytest.mark.parametrize("signal", ["metrics", "logs"])
def test_other_signals_go_on_as_well(watch, called, signal):
    watched = watch(forward=called.url)

    watched.post(b"whatever", signal)

    path, _, received = called.next()
    assert (path, received) == (f"/v1/{signal}", b"whatever")


def test_what_was_refused_does_not_go_on(watch, called):
    watched = watch(forward=called.url)

    assert watched.post(b"\xff").status_code == 400

    watched.sidecar.stop()
    assert called.requests.empty()
    assert results(watched) == {}


def test_an_answer_that_may_pass_is_tried_again(watch, called):
    called.answers = [503, 429]
    watched = watch(forward=called.url)

    watched.post(message(commit(1)).SerializeToString())

    assert len({called.next()[2] for _ in range(3)}) == 1
    watched.sidecar.stop()
    assert results(watched) == {"sent": 1.0}


def test_an_answer_that_will_not_pass_is_counted(watch, called, caplog):
    called.answers = [400]
    watched = watch(forward=called.url)

    watched.post(message(commit(1)).SerializeToString())

    called.next()
    watched.sidecar.stop()
    assert results(watched) == {"refused": 1.0}
    assert "refused a message: status 400" in caplog.text


def test_a_collector_that_is_not_there_keeps_no_race_from_being_found(
    watch, nobody, caplog
):
    body = message(stale_discard(1)).SerializeToString()
    watched = watch(forward=f"http://{nobody}", forward_bytes=4 * len(body) + 1)

    for _ in range(20):
        assert watched.post(body).status_code == 200

    assert watched.next().anomaly == "stale-discard"
    watched.sidecar.stop()
    found = results(watched)
    # Four threads try, four messages wait, and there is no room for the others.
    assert found == {"failed": 8.0, "dropped": 12.0}
    assert "ConnectError" in caplog.text


class TestOverGrpc:
    @pytest.mark.parametrize("packed", [False, True])
    def test_messages_go_on_to_another_sidecar(self, watch, packed):
        last = watch()
        first = watch(forward=f"grpc://{last.grpc}", forward_headers={"X-Token": "t"})
        body = message(stale_discard(1)).SerializeToString()
        headers = {"content_encoding": "gzip"} if packed else {}

        first.post(gzip.compress(body) if packed else body, **headers)

        assert last.next().anomaly == first.next().anomaly == "stale-discard"
        assert last.messages("grpc", "accepted") == 1.0
        first.sidecar.stop()
        assert results(first) == {"sent": 1.0}

    def test_json_cannot_and_is_counted(self, watch, caplog):
        last = watch()
        first = watch(forward=f"grpc://{last.grpc}")

        first.post(as_json(message(stale_discard(1))), content_type="application/json")

        assert first.next().anomaly == "stale-discard"
        first.sidecar.stop()
        assert results(first) == {"refused": 1.0}
        assert "JSON cannot be sent over gRPC" in caplog.text
