"""Room for messages, and what their senders are told."""

import threading

import pytest

from tenure.detectors.sidecar.intake import (
    ACCEPTED,
    LET_IN,
    Admission,
    Room,
    Share,
    accepted_but,
    full,
    too_large,
)
from tenure.detectors.sidecar.protocol import RETRYABLE, SERVICES, status


def test_a_room_is_taken_up_to_its_limit_and_not_beyond():
    room = Room(10)

    assert room.take(10)
    assert not room.take(1)
    room.give_back(4)
    assert room.take(4)
    assert room.taken == 10


def test_a_share_that_does_not_fit_has_taken_nothing():
    room = Room(10)
    share = Share(room)
    assert share.grow(8)

    assert not share.grow(3)

    assert (share.size, room.taken) == (8, 8)


def test_a_share_shrinks_and_never_grows_by_it():
    room = Room(10)
    share = Share(room)
    share.grow(8)

    share.shrink_to(9)
    assert room.taken == 8
    share.shrink_to(3)
    assert (share.size, room.taken) == (3, 3)
    share.shrink_to(0)
    share.shrink_to(0)
    assert room.taken == 0


def test_many_threads_leave_a_room_as_they_found_it():
    room = Room(64)

    def come_and_go() -> None:
        for _ in range(2_000):
            if room.take(7):
                room.give_back(7)

    threads = [threading.Thread(target=come_and_go) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert room.taken == 0


@pytest.mark.parametrize(
    ("rejected", "sentence"),
    [
        (1, "1 span cannot be read: 1 without a readable tenure.seq."),
        (2, "2 spans cannot be read: 1 without a readable tenure.seq."),
    ],
)
def test_a_message_with_unreadable_spans_is_accepted_in_part(rejected, sentence):
    answer = accepted_but(rejected, ("1 without a readable tenure.seq",))

    assert (answer.admission, answer.rejected) == (Admission.PARTIAL, rejected)
    assert answer.reason == sentence


def test_a_message_without_unreadable_spans_is_accepted():
    assert accepted_but(0, ()) is ACCEPTED


def test_what_is_refused_for_want_of_room_may_be_sent_again_and_else_nothing():
    assert full(1).admission in RETRYABLE
    assert too_large(1).admission not in RETRYABLE
    assert not RETRYABLE & LET_IN


def test_every_refusal_has_a_status_and_says_when_to_try_again():
    for admission in set(Admission) - LET_IN:
        answer = full(1) if admission is Admission.FULL else too_large(1)
        assert bool(status(answer).details) is (admission is Admission.FULL)


def test_paths_are_those_of_the_protocol():
    assert {service.path for service in SERVICES.values()} == {
        "/v1/traces",
        "/v1/metrics",
        "/v1/logs",
    }
    assert {service.rpc for service in SERVICES.values()} == {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }


def test_every_service_can_say_how_much_it_rejected():
    answer = accepted_but(3, ("why",))
    for service in SERVICES.values():
        partial = service.respond(answer).partial_success
        assert getattr(partial, service.rejected) == 3
        assert partial.error_message == answer.reason
