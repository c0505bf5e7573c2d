"""The app of examples/sse, served by uvicorn and driven over HTTP.

The app asks a model over HTTP, and here the test is that model: so it is the test that
decides when a word comes and when a clean-up ends, and the order of what happens does
not depend on time.
"""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

APP = Path(__file__).parents[2] / "examples" / "sse" / "app.py"
PATIENCE = 20.0
LONGER_THAN_ANY_TEST = 600.0

FIRST, SECOND = "Why do tides happen", "What makes waves"
SECOND_SOURCES = ["Waves"]
SECOND_ANSWER = {"text": "Wind.", "sources": SECOND_SOURCES}
RIGHT_STATE = {
    f"draft:{SECOND}": {"sources": SECOND_SOURCES},
    f"answer:{SECOND}": SECOND_ANSWER,
}


class Generation:
    """One answer of the scripted model."""

    def __init__(self) -> None:
        self.pieces: queue.Queue[str | None] = queue.Queue()
        self.told_to_stop = threading.Event()
        self.may_stop = threading.Event()

    def write(self, piece: str) -> None:
        self.pieces.put(piece)

    def end(self) -> None:
        self.pieces.put(None)


class ScriptedModel(ThreadingHTTPServer):
    """The model service that the app asks."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.answers = {FIRST: Generation(), SECOND: Generation()}
        self.addresses: dict[str, Generation] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def let_go(self) -> None:
        for generation in self.answers.values():
            generation.end()
            generation.may_stop.set()


class Asked(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        generation = self.server.answers[asked["question"]]
        self.server.addresses[self.path] = generation
        self.send_response(200)
        self.end_headers()
        while (piece := generation.pieces.get()) is not None:
            self.wfile.write(f"{piece}\n".encode())
            self.wfile.flush()

    def do_DELETE(self) -> None:
        generation = self.server.addresses[self.path]
        generation.told_to_stop.set()
        generation.may_stop.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server
        finally:
            server.let_go()
            server.shutdown()
            serving.join()


Told = tuple[str, dict[str, Any]]


class App:
    """A client of the app."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False)

    @contextmanager
    def ask(self, question: str) -> Iterator[Iterator[Told]]:
        """Ask; leaving the block disconnects."""
        asked = self.http.stream("GET", "/answers", params={"question": question})
        with asked as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            yield events(response.iter_lines())

    def get(self, path: str) -> dict[str, Any]:
        return self.http.get(path).raise_for_status().json()

    def findings(self) -> list[tuple[str, str, tuple[str, ...]]]:
        return [
            (each["anomaly"], each["severity"], tuple(each["keys"]))
            for each in self.get("/findings")["findings"]
        ]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            pass


def events(lines: Iterator[str]) -> Iterator[Told]:
    name = ""
    for line in lines:
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)
