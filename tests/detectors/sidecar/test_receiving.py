"""What happens to a message at the end, and while a part of the sidecar is broken."""

import httpx
import pytest

from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.http_receiver import application
from tenure.detectors.sidecar.intake import Admission, Format, Message, Room, Signal
from tenure.detectors.sidecar.receiving import Batch, Receiver
from tenure.detectors.sidecar.worker import Worker

from .conftest import PATIENCE, commit, message


@pytest.fixture
def receiver() -> Receiver:
    """A receiver whose judge has ended."""
    judge: Worker[Batch] = Worker("judge", print, capacity=10)
    assert judge.finish(PATIENCE)
    return Receiver(
        Room(1 << 16), judge, None, Figures(), message_bytes=1 << 14, doubt=print
    )


def received(receiver: Receiver) -> Admission:
    body = message(commit(1)).SerializeToString()
    share = receiver.share()
    assert share.grow(len(body))
    sent = Message(Signal.TRACES, Format.PROTOBUF, body, False, "http")
    admission = receiver.receive(sent, share).admission
    assert share.size == 0
    return admission


def test_a_message_that_nobody_judges_any_more_may_be_sent_again(receiver):
    receiver.stopping = True

    assert received(receiver) is Admission.STOPPING


def test_a_message_that_nobody_judges_is_never_accepted(receiver):
    assert received(receiver) is Admission.FULL


async def test_over_http_it_is_told_so(receiver):
    receiver.stopping = True
    app = application(receiver, Figures(), lambda: True)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://sidecar"
    ) as client:
        response = await client.post(
            "/v1/traces",
            content=message(commit(1)).SerializeToString(),
            headers={"content-type": "application/x-protobuf"},
        )
        health = await client.get("/healthz")

    assert response.status_code == 503
    assert "retry-after" in response.headers
    assert (health.status_code, health.json()) == (503, {"status": "stopping"})


async def test_a_part_that_is_broken_is_not_healthy(receiver):
    app = application(receiver, Figures(), lambda: False)

    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://sidecar"
    ) as client:
        health = await client.get("/healthz")

    assert (health.status_code, health.json()) == (503, {"status": "broken"})
