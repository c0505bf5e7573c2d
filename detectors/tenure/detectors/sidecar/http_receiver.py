"""OTLP over HTTP, and what else is asked for over HTTP: health and figures."""

import asyncio  # noqa: TID251 - what the server of this application runs on
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import uvicorn
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tenure.detectors.sidecar.errors import ListenError
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.intake import (
    LET_IN,
    STOPPING,
    Admission,
    Answer,
    Format,
    Message,
    Share,
    Signal,
    too_large,
)
from tenure.detectors.sidecar.protocol import (
    RETRYABLE,
    SERVICES,
    retry_after,
    status,
)
from tenure.detectors.sidecar.receiving import Receiver
from tenure.detectors.sidecar.settings import Endpoint

_logger = logging.getLogger(__name__)

_TRANSPORT: Final = "http"
_READ_TIMEOUT: Final = 30.0
"""Seconds that a sender may take for one message, which takes memory meanwhile."""

_KEEP_ALIVE: Final = 75
"""Seconds that a connection may be idle."""

_START_TIMEOUT: Final = 10.0

_CODES: Final = {
    Admission.ACCEPTED: 200,
    Admission.PARTIAL: 200,
    Admission.TOO_LARGE: 413,
    Admission.UNREADABLE: 400,
    Admission.UNSUPPORTED: 415,
    Admission.FULL: 429,
    Admission.STOPPING: 503,
}
_FORMATS: Final = {
    "application/x-protobuf": Format.PROTOBUF,
    "application/protobuf": Format.PROTOBUF,
    "application/json": Format.JSON,
}
_ENCODINGS: Final = {"": False, "identity": False, "gzip": True}


class _RefusedError(Exception):
    """A message is refused before it was read as a whole.

    Args:
        answer: Why.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer)
        self.answer = answer


def application(
    receiver: Receiver, figures: Figures, healthy: Callable[[], bool]
) -> Starlette:
    """Return what answers over HTTP.

    Args:
        receiver: What takes messages in.
        figures: What is shown at `/metrics`.
        healthy: Whether everything runs that has to.
    """
    routes = [
        Route(service.path, _exporting(receiver, signal), methods=["POST"])
        for signal, service in SERVICES.items()
    ]

    async def health(_request: Request) -> Response:
        if receiver.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        if not healthy():
            return JSONResponse({"status": "broken"}, 503)
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        accept = request.headers.get("accept", "")
        page, content_type = await run_in_threadpool(figures.page, accept)
        return Response(page, headers={"content-type": content_type})

    routes.append(Route("/healthz", health))
    routes.append(Route("/metrics", metrics))
    app = Starlette(routes=routes)
    # A redirect would go where the request says that it came.
    app.router.redirect_slashes = False
    return app


def _exporting(
    receiver: Receiver, signal: Signal
) -> Callable[[Request], Awaitable[Response]]:
    async def export(request: Request) -> Response:
        written = _FORMATS.get(_media_type(request))
        share = receiver.share()
        try:
            message = await _message(receiver, request, signal, share)
        except _RefusedError as refused:
            share.shrink_to(0)
            answer = receiver.refuse(_TRANSPORT, signal, refused.answer)
            return _response(signal, written, answer)
        except BaseException:
            share.shrink_to(0)
            raise
        # Reading takes milliseconds, in which others are to be answered too.
        answer = await run_in_threadpool(receiver.receive, message, share)
        return _response(signal, message.format, answer)

    return export


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _message(
    receiver: Receiver, request: Request, signal: Signal, share: Share
) -> Message:
    """Read a whole message, taking memory as it comes."""
    if receiver.stopping:
        raise _RefusedError(STOPPING)
    written = _FORMATS.get(_media_type(request))
    if written is None:
        raise _RefusedError(
            _unsupported("content type", request.headers.get("content-type", ""))
        )
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise _RefusedError(_unsupported("content encoding", encoding))
    packed = await _body(receiver, request, share)
    return Message(signal, written, packed, _ENCODINGS[encoding], _TRANSPORT)


def _unsupported(what: str, found: str) -> Answer:
    known = (
        _FORMATS if what == "content type" else [name for name in _ENCODINGS if name]
    )
    return Answer(
        Admission.UNSUPPORTED,
        f"The {what} {found[:80]!r} is not one of {', '.join(sorted(known))}.",
    )


async def _body(receiver: Receiver, request: Request, share: Share) -> bytes:
    limit = receiver.message_bytes
    # Who says at once that it is too large need not send it.
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise _RefusedError(too_large(limit))
    pieces: list[bytes] = []
    try:
        async with asyncio.timeout(_READ_TIMEOUT):
            async for piece in request.stream():
                if share.size + len(piece) > limit:
                    raise _RefusedError(too_large(limit))
                if not share.grow(len(piece)):
                    raise _RefusedError(receiver.full())
                pieces.append(piece)
    except TimeoutError:
        raise _RefusedError(
            Answer(Admission.UNREADABLE, "The message took too long to come.")
        ) from None
    except ClientDisconnect:
        raise _RefusedError(
            Answer(Admission.UNREADABLE, "The message ended too early.")
        ) from None
    return b"".join(pieces)


def _response(signal: Signal, written: Format | None, answer: Answer) -> Response:
    """Return the answer in the format of the question, as the protocol wants it."""
    code = _CODES[answer.admission]
    headers = {"retry-after": retry_after()} if answer.admission in RETRYABLE else {}
    if written is None:
        return PlainTextResponse(answer.reason, code, headers)
    content: Any = (
        SERVICES[signal].respond(answer)
        if answer.admission in LET_IN
        else status(answer)
    )
    headers["content-type"] = written.value
    if written is Format.JSON:
        return Response(json_format.MessageToJson(content, indent=None), code, headers)
    return Response(content.SerializeToString(), code, headers)


# The server.


class _Server(uvicorn.Server):
    """Says when it serves, and when it cannot."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready: Final = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@final
class HttpReceiver:
    """Listens for OTLP over HTTP, in a thread of its own.

    Args:
        app: What answers.
        address: Where to listen; port 0 for any free one.

    Raises:
        ListenError: The address is taken or cannot be used.
    """

    def __init__(self, app: Starlette, address: Endpoint) -> None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            self._socket: Final = socket.create_server(tuple(address), family=family)
        except OSError as error:
            # What Python adds to the sentence repeats the address.
            problem = os.strerror(error.errno) if error.errno else str(error)
            raise ListenError(str(address), problem) from error
        self.address: Final = Endpoint(address.host, self._socket.getsockname()[1])
        self._server: Final = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                # Longer than exporters wait between two exports, five seconds: a
                # connection that ends just then costs a message its first attempt.
                timeout_keep_alive=_KEEP_ALIVE,
                server_header=False,
                ws="none",
            )
        )
        self._thread: Final = threading.Thread(
            target=self._serve, name="tenure-watch-http", daemon=True
        )

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to answer.

        Raises:
            ListenError: It does not.
        """
        self._thread.start()
        if not self._server.ready.wait(_START_TIMEOUT):
            raise ListenError(str(self.address), "the server does not start")

    def stop(self, timeout: float) -> bool:
        """Answer no new questions and end those that are being answered.

        Args:
            timeout: Seconds after which the latter are cut off.

        Returns:
            Whether everything has ended.
        """
        self._server.config.timeout_graceful_shutdown = max(1, round(timeout))
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout + 1.0)
        self._socket.close()
        return not self._thread.is_alive()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except Exception:
            _logger.exception("The HTTP receiver ended")
