"""Other processes, with OpenTelemetry's own exporters, over real connections."""

import threading

import pytest

from .conftest import PATIENCE, commit, message, sent, stale_discard

TRANSPORTS = ("grpc", "http")


@pytest.mark.parametrize("packing", ["none", "gzip"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_two_processes_that_own_one_instance_are_found(watch, send, transport, packing):
    watched = watch()
    endpoint = getattr(watched, transport)

    for run_id in ("first", "second"):
        run = {"epoch": 1, "run_id": run_id, "restores": ["checkpoint-1"]}
        assert sent(send(transport, endpoint, run, packing=packing)) == "SUCCESS"

    finding = watched.next()
    assert (finding.anomaly, finding.certainty) == ("epoch-reuse", "certain")
    processes = {operation.run.process for operation in finding.evidence}
    assert len(processes) == 2
    watched.sidecar.stop()
    # Claim, restore and release of each.
    assert watched.figure("watch_operations_total") == 6.0


def test_a_checkpoint_from_which_two_processes_went_on_is_found(watch, send):
    watched = watch()

    for epoch, transport in enumerate(TRANSPORTS, 1):
        run = {
            "epoch": epoch,
            "run_id": f"run-{epoch}",
            "restores": ["checkpoint-1"],
            "saves": [[f"checkpoint-1-{epoch}", "checkpoint-1"]],
        }
        assert sent(send(transport, getattr(watched, transport), run)) == "SUCCESS"

    finding = watched.next()
    # No clock counts between processes.
    assert (finding.anomaly, finding.certainty) == ("fork", "possible")
    assert finding.missing[0].startswith("the order of processes ")


def test_processes_that_own_one_after_the_other_are_clean(watch, send):
    watched = watch()

    for epoch, transport in enumerate(TRANSPORTS, 1):
        endpoint = getattr(watched, transport)
        run = {"epoch": epoch, "run_id": f"run-{epoch}", "writes": {"k": epoch}}
        assert sent(send(transport, endpoint, run)) == "SUCCESS"

    drained = watched.sidecar.stop()
    assert (drained.verdict, drained.missing) == ("clean", ())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nothing_is_lost_when_the_sidecar_has_no_room_for_a_while(
    watch, send, transport
):
    go_on = threading.Event()
    watched = watch(
        lambda _: go_on.wait(PATIENCE), message_bytes=8192, memory_bytes=16_384
    )
    watched.post(message(stale_discard(1)).SerializeToString())
    watched.next()  # the judge is busy with it from now on
    for padding in (6_000, 1):
        body = message(commit(1, "other"), padding=padding).SerializeToString()
        while watched.post(body).status_code == 200:
            pass

    runs = [{"epoch": 1, "run_id": name, "writes": {"k": 1}} for name in "ab"]
    sender = send(transport, getattr(watched, transport), *runs, packing="none")
    # The exporter says that it was refused and will try again.
    assert "Transient error" in sender.stderr.readline()
    go_on.set()

    assert sent(sender) == "SUCCESS"
    drained = watched.sidecar.stop()
    assert drained.left == ()
    anomalies = [finding.anomaly for finding in watched.sidecar.detector.findings]
    assert anomalies == ["stale-discard", "epoch-reuse"]
    assert watched.messages(transport, "full") >= 1.0


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_message_that_is_too_large_is_an_error_that_the_exporter_reports(
    watch, send, transport
):
    watched = watch(message_bytes=1024, memory_bytes=4096)
    runs = [{"epoch": each, "run_id": f"run-{each}"} for each in range(1, 9)]

    sender = send(transport, getattr(watched, transport), *runs, timeout=2.0)

    assert sent(sender) == "FAILURE"
    assert watched.sidecar.detector.findings == ()
