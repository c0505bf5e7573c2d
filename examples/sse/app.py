"""Answers that stream to a browser, on the engine of your choice.

    python examples/sse/app.py --engine agent-framework
    python examples/sse/app.py --engine tenure

Open the address that it prints, ask, and ask something else before the answer is
complete. The detector listens on either engine; the page shows what it finds.
"""

import argparse
import logging
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import reading
import uvicorn
from engine import Engine
from model import HttpModel, Model, PretendedModel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Send

from tenure.detectors import Detector
from tenure.instrumentation import configure_otlp
from tenure.instrumentation.sdk import otlp_endpoint

PAGE: Final = Path(__file__).with_name("page.html")

_logger = logging.getLogger("answers")


class EventStream(StreamingResponse):
    """A response that ends by telling its reader what went wrong, if something does."""

    media_type = "text/event-stream"

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except Exception as error:  # noqa: BLE001 - whatever it is, the reader is told
            _logger.warning("An answer ends early: %s", error)
            told = reading.message("failed", {"reason": str(error)}).encode()
            await send({"type": "http.response.body", "body": told})


def create_app(
    engine: Engine, detector: Detector, *, reader: reading.Reader, pace: float
) -> Starlette:
    """Return the app.

    Args:
        engine: What answers.
        detector: Whose findings `/findings` shows.
        reader: How the response reads a run.
        pace: Seconds between two words.
    """

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE.read_text(encoding="utf-8"))

    async def answers(request: Request) -> Response:
        question = request.query_params.get("question", "").strip()
        if not question:
            return Response("ask a question", status_code=400)
        asked = reading.Request(question, pace, request.is_disconnected)
        return EventStream(reader(engine, asked), headers={"cache-control": "no-store"})

    async def state(request: Request) -> Response:
        return JSONResponse(dict(engine.state()))

    async def findings(request: Request) -> Response:
        found = [finding.as_dict() for finding in detector.findings]
        return JSONResponse({
            "engine": engine.name,
            "verdict": detector.verdict,
            "findings": found,
        })

    return Starlette(
        routes=[
            Route("/", page),
            Route("/answers", answers),
            Route("/state", state),
            Route("/findings", findings),
        ]
    )


def _on_agent_framework(model: Model) -> Engine:
    from on_agent_framework import AgentFramework

    return AgentFramework(model)


def _on_tenure(model: Model) -> Engine:
    from on_tenure import Tenure

    return Tenure(model)


ENGINES: Final[Mapping[str, Callable[[Model], Engine]]] = {
    "agent-framework": _on_agent_framework,
    "tenure": _on_tenure,
}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Answers that stream to a browser.")
    parser.add_argument("--engine", choices=ENGINES, default="agent-framework")
    parser.add_argument(
        "--host", default="127.0.0.1", help="who may ask; this machine by default"
    )
    parser.add_argument("--port", type=int, default=8000, help="0 picks a free one")
    parser.add_argument(
        "--read",
        choices=reading.READERS,
        default="typewriter",
        help="how the response reads a run",
    )
    parser.add_argument(
        "--pace", type=float, default=0.12, help="seconds between two words"
    )
    parser.add_argument(
        "--model", metavar="URL", help="a model service; by default one is pretended"
    )
    return parser.parse_args()


def main() -> None:
    """Serve until interrupted."""
    arguments = _arguments()
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    if otlp_endpoint() is not None:
        configure_otlp(service_name="answers")
    detector = Detector(lambda finding: _logger.warning("%s", finding)).listen()
    model = HttpModel(arguments.model) if arguments.model else PretendedModel()
    app = create_app(
        ENGINES[arguments.engine](model),
        detector,
        reader=reading.READERS[arguments.read],
        pace=arguments.pace,
    )
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    with socket.create_server((arguments.host, arguments.port)) as listening:
        print(f"http://{arguments.host}:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
