"""Messages on to the next collector: the very bytes that came, retried, then counted.

A collector that does not answer must not keep races from being found, so a message for
which there is no room any more is dropped, and counted.
"""

import logging
import threading
from collections.abc import Mapping
from typing import Final, Protocol, cast, final
from urllib.parse import urlsplit

import grpc
import httpx
import tenacity

from tenure.detectors.sidecar.bodies import gunzip
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.intake import Format, Message
from tenure.detectors.sidecar.protocol import SERVICES
from tenure.detectors.sidecar.worker import Worker

_logger = logging.getLogger(__name__)

_THREADS: Final = 4
_TIMEOUT: Final = 10.0
"""Seconds that one attempt may take."""

_PATIENCE: Final = 60.0
"""Seconds after which a message is given up."""

_LONGEST_WAIT: Final = 10.0
_RETRYABLE_HTTP: Final = frozenset({429, 502, 503, 504})
_RETRYABLE_GRPC: Final = frozenset({
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DATA_LOSS,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
})


class RetryableError(Exception):
    """The next collector did not take a message, and may later.

    Args:
        reason: Why, without anything secret.
    """


class RefusedError(Exception):
    """The next collector will never take a message.

    Args:
        reason: Why, without anything secret.
    """


class Sender(Protocol):
    """Sends one message once."""

    def send(self, message: Message) -> None:
        """Send `message`.

        Raises:
            RetryableError: It was not taken, and may be later.
            RefusedError: It will never be taken.
        """
        ...

    def close(self) -> None:
        """Give up its connections."""
        ...


@final
class Forwarder:
    """Sends messages on. Safe to use from any thread.

    Args:
        sender: How.
        capacity: How many bytes may wait.
        figures: Where messages are counted, by what became of them.
    """

    def __init__(self, sender: Sender, capacity: int, figures: Figures) -> None:
        self._sender: Final = sender
        self._figures: Final = figures
        self._ending: Final = threading.Event()
        self._worker: Final = Worker(
            "tenure-watch-forward",
            self._send,
            capacity=capacity,
            cost=_size,
            threads=_THREADS,
        )
        figures.watch_queue("forward", lambda: self._worker.waiting)

    def offer(self, message: Message) -> None:
        """Send `message` on when it is its turn, or drop it if too many wait."""
        if not self._worker.offer(message):
            self._figures.forwarded("dropped")

    def finish(self, timeout: float) -> int:
        """Send what waits, each message once more at most.

        Args:
            timeout: Seconds after which this returns, done or not.

        Returns:
            How many messages were left.
        """
        self._ending.set()
        self._worker.finish(timeout)
        self._sender.close()
        return self._worker.undone

    def _send(self, message: Message) -> None:
        result = "sent"
        try:
            self._retrying(self._sender.send, message)
        except RetryableError as error:
            result = "failed"
            _logger.warning("A message was not sent on: %s", error)
        except RefusedError as error:
            result = "refused"
            _logger.warning("The next collector refused a message: %s", error)
        self._figures.forwarded(result)

    @property
    def _retrying(self) -> tenacity.Retrying:
        return tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(RetryableError),
            wait=tenacity.wait_random_exponential(max=_LONGEST_WAIT),
            stop=tenacity.stop_any(
                tenacity.stop_after_delay(_PATIENCE),
                tenacity.stop_when_event_set(self._ending),
            ),
            # Ends at once when the sidecar does.
            sleep=tenacity.sleep_using_event(self._ending),
            reraise=True,
        )


def _size(message: Message) -> int:
    return len(message.packed)


def sender(url: str, headers: Mapping[str, str], largest: int) -> Sender:
    """Return what sends messages to `url`.

    Args:
        url: `http[s]://…` or `grpc[s]://…`, checked before.
        headers: What is sent along.
        largest: How large a message may be, unpacked.
    """
    if urlsplit(url).scheme in {"http", "https"}:
        return _HttpSender(url, headers)
    return _GrpcSender(url, headers, largest)


@final
class _HttpSender:
    """Sends to an OTLP receiver over HTTP, in the format and packing that came."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._base: Final = url.rstrip("/")
        self._client: Final = httpx.Client(headers=dict(headers), timeout=_TIMEOUT)

    def send(self, message: Message) -> None:
        headers = {"content-type": message.format.value}
        if message.gzipped:
            headers["content-encoding"] = "gzip"
        try:
            response = self._client.post(
                self._base + SERVICES[message.signal].path,
                content=message.packed,
                headers=headers,
            )
        except httpx.TransportError as error:
            raise RetryableError(type(error).__name__) from error
        if response.is_success:
            return
        told = f"status {response.status_code}"
        if response.status_code in _RETRYABLE_HTTP:
            raise RetryableError(told)
        raise RefusedError(told)

    def close(self) -> None:
        self._client.close()


@final
class _GrpcSender:
    """Sends to an OTLP receiver over gRPC, which speaks protobuf only."""

    def __init__(self, url: str, headers: Mapping[str, str], largest: int) -> None:
        parts = urlsplit(url)
        self._largest: Final = largest
        self._metadata: Final = tuple(
            (name.lower(), value) for name, value in headers.items()
        )
        if parts.scheme == "grpcs":
            self._channel = grpc.secure_channel(
                parts.netloc, grpc.ssl_channel_credentials()
            )
        else:
            self._channel = grpc.insecure_channel(parts.netloc)

    def send(self, message: Message) -> None:
        if message.format is Format.JSON:
            raise RefusedError(
                "JSON cannot be sent over gRPC; forward to http:// instead"
            )
        body, compression = message.packed, grpc.Compression.NoCompression
        if message.gzipped:
            # gRPC packs by itself; what it packs are the bytes that came.
            body = gunzip(body, self._largest)
            compression = grpc.Compression.Gzip
        # Without serializers messages go as the bytes that they are.
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            SERVICES[message.signal].rpc
        )
        try:
            call(
                body,
                timeout=_TIMEOUT,
                metadata=self._metadata,
                compression=compression,
            )
        except grpc.RpcError as error:
            code = cast("grpc.Call", error).code()
            if code in _RETRYABLE_GRPC:
                raise RetryableError(code.name) from error
            raise RefusedError(code.name) from error

    def close(self) -> None:
        self._channel.close()
