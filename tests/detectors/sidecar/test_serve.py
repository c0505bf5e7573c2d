"""The life of a sidecar: what it judges, and how it ends."""

import socket
import threading
from dataclasses import replace

import httpx
import pytest

from tenure.detectors import Verdict
from tenure.detectors.sidecar import Settings, SettingsError, Sidecar
from tenure.instrumentation.operations import Claim, Outcome, Owner, Release, RunRef

from .conftest import PATIENCE, commit, message, stale_discard


def own(epoch: int, run_id: str, process: str) -> list:
    run = RunRef("x/1", "press", "shared", run_id, epoch, process)
    owner = Owner(epoch, run_id)
    return [
        Claim(run=run, seq=1, owner=owner),
        Release(run=run, seq=2, owner=owner, outcome=Outcome.COMPLETED),
    ]


def tell(watched, *operations) -> None:
    claims = [each for each in operations if not isinstance(each, Release)]
    request = message(*claims)
    spans = request.resource_spans[0].scope_spans[0].spans
    for span, claim in zip(spans, claims, strict=True):
        if isinstance(claim, Claim):
            span.attributes.add(key="tenure.end.seq").value.int_value = claim.seq + 1
            span.attributes.add(
                key="tenure.run.outcome"
            ).value.string_value = "completed"
    assert watched.post(request.SerializeToString()).status_code == 200


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


class TestListening:
    def test_only_this_machine_reaches_it_unless_told_otherwise(self, watch):
        listening = watch().sidecar.listening

        assert listening.grpc.host == listening.http.host == "127.0.0.1"

    @pytest.mark.parametrize("other", ["grpc_port", "http_port"])
    def test_it_may_listen_one_way_only(self, watch, other):
        listening = watch(**{other: None}).sidecar.listening

        assert (listening.grpc is None) is (other == "grpc_port")
        assert (listening.http is None) is (other == "http_port")

    def test_it_listens_on_addresses_of_six_groups(self, watch):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("this machine has none")
        watched = watch(host="::1")

        assert watched.http.startswith("http://[::1]:")
        assert watched.post(message(stale_discard(1)).SerializeToString()).is_success

    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
    def test_it_does_not_forward_to_itself(self, host):
        port = free_port()
        settings = Settings(
            grpc_port=None, http_port=port, forward=f"http://{host}:{port}"
        )

        with pytest.raises(SettingsError, match="is where this sidecar listens"):
            Sidecar(settings).start()

        socket.create_server(("127.0.0.1", port)).close()  # nothing listens there


class TestBetweenProcesses:
    def test_two_processes_with_one_epoch_are_certain(self, watch):
        watched = watch()

        tell(watched, *own(1, "a", "host-1"))
        tell(watched, *own(1, "b", "host-2"))

        finding = watched.next()
        assert (finding.anomaly, finding.certainty) == ("epoch-reuse", "certain")
        assert {each.run.process for each in finding.evidence} == {"host-1", "host-2"}

    def test_two_processes_that_may_both_own_are_possible(self, watch):
        watched = watch()

        tell(watched, *own(2, "b", "host-2"))
        tell(watched, *own(1, "a", "host-1"))

        finding = watched.next()
        assert (finding.anomaly, finding.certainty) == (
            "overlapping-owners",
            "possible",
        )
        assert finding.missing == ("the order of processes host-1 and host-2",)

    def test_one_after_the_other_is_nothing(self, watch):
        watched = watch()

        tell(watched, *own(1, "a", "host-1"))
        tell(watched, *own(2, "b", "host-2"))

        assert watched.sidecar.stop().verdict is Verdict.CLEAN
        assert watched.found.empty()


class TestEnding:
    def test_everything_that_was_accepted_is_judged(self, watch):
        go_on = threading.Event()
        watched = watch(lambda _: go_on.wait(PATIENCE))
        watched.post(message(stale_discard(1)).SerializeToString())
        watched.next()
        for seq in range(2, 52):
            watched.post(message(stale_discard(seq)).SerializeToString())
        ended: list = []
        ending = threading.Thread(target=lambda: ended.append(watched.sidecar.stop()))

        ending.start()
        go_on.set()
        ending.join(PATIENCE)

        assert ended[0].verdict is Verdict.VIOLATED
        assert ended[0].left == ()
        assert len(watched.sidecar.detector.findings) == 51

    def test_nothing_is_accepted_any_more(self, watch):
        watched = watch()
        watched.sidecar.stop()

        with pytest.raises(httpx.TransportError):
            watched.post(message(commit(1)).SerializeToString())

    def test_ending_twice_says_the_same(self, watch):
        watched = watch()

        assert watched.sidecar.stop() is watched.sidecar.stop()

    def test_what_there_was_no_time_for_is_told_and_nothing_is_clean(self, watch):
        go_on = threading.Event()
        watched = watch(lambda _: go_on.wait(PATIENCE), drain_timeout=0.0)
        watched.post(message(stale_discard(1)).SerializeToString())
        watched.next()
        for seq in range(2, 5):
            watched.post(message(commit(seq, "j")).SerializeToString())

        drained = watched.sidecar.stop()
        go_on.set()

        assert drained.left == (("judge", 4),)
        assert "messages for which there was no time" in drained.missing

    def test_silence_is_inconclusive(self, watch):
        drained = watch().sidecar.stop()

        assert drained.verdict is Verdict.INCONCLUSIVE
        assert drained.missing == ("any operation",)

    def test_no_thread_is_left(self, watch):
        before = set(threading.enumerate())
        watched = watch(webhook="http://127.0.0.1:9/", command=("true",))
        watched.post(message(commit(1)).SerializeToString())

        watched.sidecar.stop()

        left = {
            thread.name
            for thread in set(threading.enumerate()) - before
            if thread.name.startswith("tenure-watch")
        }
        # gRPC's pool keeps idle threads until the pool is dropped.
        assert left <= {name for name in left if name.startswith("tenure-watch-grpc")}


def test_a_detector_that_is_told_of_many_instances_forgets_the_oldest(watch):
    watched = watch(max_instances=2)
    for number in range(5):
        watched.post(message(commit(1, f"i{number}")).SerializeToString())

    drained = watched.sidecar.stop()

    assert "instances forgotten for want of room" in drained.missing


def test_names_in_messages_do_not_fill_the_figures(watch, monkeypatch):
    monkeypatch.setattr("tenure.detectors.sidecar.figures.MAX_SERIES", 3)
    watched = watch()
    for number in range(6):
        run = RunRef("x/1", f"w{number}", "i", "run-1", 1, "p")
        request = message(replace(stale_discard(1), run=run))
        watched.post(request.SerializeToString())
        watched.next()
    watched.sidecar.stop()

    samples = [
        sample
        for metric in watched.sidecar.figures.registry.collect()
        for sample in metric.samples
        if sample.name == "tenure_violations_total"
    ]
    assert len(samples) == 4
    assert sum(sample.value for sample in samples) == 6.0
