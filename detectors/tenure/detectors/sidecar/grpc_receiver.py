"""OTLP over gRPC.

Messages come as bytes and packed: they go on as they came, and are unpacked within a
bound, which not every release of gRPC keeps to.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any, Final, Never, final

import grpc

from tenure.detectors.sidecar.bodies import GZIP
from tenure.detectors.sidecar.errors import ListenError
from tenure.detectors.sidecar.intake import (
    LET_IN,
    Answer,
    Format,
    Message,
    Signal,
)
from tenure.detectors.sidecar.protocol import (
    RETRYABLE,
    SERVICES,
    retry_info,
    status,
)
from tenure.detectors.sidecar.receiving import Receiver
from tenure.detectors.sidecar.settings import Endpoint

_logger = logging.getLogger(__name__)

_WORKERS: Final = 4
"""Messages that are read at once; others wait where gRPC's flow control holds them."""

_TRANSPORT: Final = "grpc"
_UNPACKED_OR_GZIP: Final = 0b101
"""Identity and gzip in gRPC's set of compression algorithms."""

_DETAILS: Final = "grpc-status-details-bin"
"""Where gRPC's richer error model has the whole status."""

_RETRY_INFO: Final = "google.rpc.retryinfo-bin"
"""Where some exporters look for the delay instead of in the status' details."""


@final
class GrpcReceiver:
    """Listens for OTLP over gRPC.

    Args:
        receiver: What takes messages in.
        address: Where to listen; port 0 for any free one.

    Raises:
        ListenError: The address is taken or cannot be used.
    """

    def __init__(self, receiver: Receiver, address: Endpoint) -> None:
        self._server: Final = grpc.server(
            ThreadPoolExecutor(_WORKERS, thread_name_prefix="tenure-watch-grpc"),
            options=(
                ("grpc.max_receive_message_length", receiver.message_bytes),
                ("grpc.per_message_decompression", 0),
                ("grpc.compression_enabled_algorithms_bitset", _UNPACKED_OR_GZIP),
                # Else a second process could take a part of the messages.
                ("grpc.so_reuseport", 0),
            ),
        )
        self._server.add_generic_rpc_handlers(tuple(_handlers(receiver)))
        try:
            port = self._server.add_insecure_port(str(address))
        except RuntimeError as error:
            # gRPC logs the reason and tells nobody.
            problem = "it is in use, or not an address of this machine"
            raise ListenError(str(address), problem) from error
        self.address: Final = Endpoint(address.host, port)

    def start(self) -> None:
        """Begin to take in messages."""
        self._server.start()

    def stop(self, timeout: float) -> bool:
        """Take in no more messages and end those that are being taken in.

        Args:
            timeout: Seconds after which the latter are cut off.

        Returns:
            Whether everything has ended.
        """
        return self._server.stop(timeout).wait(timeout + 1.0)


def _handlers(receiver: Receiver) -> list[grpc.GenericRpcHandler]:
    handlers: list[grpc.GenericRpcHandler] = []
    for signal, service in SERVICES.items():
        # Without a deserializer a message comes as the bytes that it is.
        handler: grpc.RpcMethodHandler[bytes, Any] = (
            grpc.unary_unary_rpc_method_handler(
                _exporting(receiver, signal), response_serializer=_serialized
            )
        )
        handlers.append(
            grpc.method_handlers_generic_handler(
                service.service, {service.method: handler}
            )
        )
    return handlers


def _serialized(response: Any) -> bytes:  # noqa: ANN401 - a message
    found: bytes = response.SerializeToString()
    return found


def _exporting(
    receiver: Receiver, signal: Signal
) -> Callable[[Any, grpc.ServicerContext], Any]:
    service = SERVICES[signal]

    def export(packed: bytes, context: grpc.ServicerContext) -> Any:  # noqa: ANN401 - a message
        answer = _taken_in(receiver, signal, packed)
        if answer.admission in LET_IN:
            return service.respond(answer)
        return _abort(context, answer)

    return export


def _taken_in(receiver: Receiver, signal: Signal, packed: bytes) -> Answer:
    share = receiver.share()
    if not share.grow(len(packed)):
        return receiver.refuse(_TRANSPORT, signal, receiver.full())
    gzipped = packed.startswith(GZIP)
    message = Message(signal, Format.PROTOBUF, packed, gzipped, _TRANSPORT)
    return receiver.receive(message, share)


def _abort(context: grpc.ServicerContext, answer: Answer) -> Never:
    """Answer with an error; gRPC's way to do so is an exception that it catches."""
    refused = status(answer)
    told = [(_DETAILS, refused.SerializeToString())]
    if answer.admission in RETRYABLE:
        told.append((_RETRY_INFO, retry_info().SerializeToString()))
    context.set_trailing_metadata(tuple(told))
    context.abort(_CODES[refused.code], answer.reason)


_CODES: Final[Mapping[int, grpc.StatusCode]] = MappingProxyType({
    code.value[0]: code for code in grpc.StatusCode
})
