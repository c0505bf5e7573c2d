"""The app of examples/sse, served by uvicorn and driven over HTTP.

The app asks a model over HTTP, and here the test is that model: so it is the test that
decides when a word comes and when a clean-up ends, and the order of what happens does
not depend on time.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import pytest

APP = Path(__file__).parents[2] / "examples" / "sse" / "app.py"
PATIENCE = 20.0
ENDLESS = "3600"

FIRST, SECOND = "Why do tides happen", "What makes waves"
FIRST_DRAFT, SECOND_DRAFT = f"draft:{FIRST}", f"draft:{SECOND}"
RIGHT_STATE = {
    SECOND_DRAFT: {"sources": ["Waves"]},
    f"answer:{SECOND}": {"text": "Wind.", "sources": ["Waves"]},
}
RIGHT_STORY = [
    ("superstep", {"number": 1}),
    ("superstep", {"number": 2}),
    ("word", {"text": "Wind."}),
    ("superstep", {"number": 3}),
    ("published", {"text": "Wind.", "sources": ["Waves"]}),
    ("end", {}),
]
READERS = ["typewriter", "plain", "polling", "queue", "block"]
Told = tuple[str, dict[str, Any]]


class Generation:
    """One answer of the scripted model."""

    def __init__(self) -> None:
        self.pieces: queue.Queue[bytes | None] = queue.Queue()
        self.told_to_stop = threading.Event()
        self.may_stop = threading.Event()

    def write(self, *pieces: str) -> None:
        self.pieces.put("".join(f"{piece}\n" for piece in pieces).encode())

    def end(self) -> None:
        self.pieces.put(None)


class Asked(BaseHTTPRequestHandler):
    server: "ScriptedModel"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        generation = self.server.generations[asked["question"]]
        self.server.addresses[self.path] = generation
        self.send_response(200)
        self.end_headers()
        while (pieces := generation.pieces.get()) is not None:
            self.wfile.write(pieces)

    def do_DELETE(self) -> None:
        generation = self.server.addresses[self.path]
        generation.told_to_stop.set()
        generation.may_stop.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class ScriptedModel(ThreadingHTTPServer):
    """The model service that the app asks."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.generations = {FIRST: Generation(), SECOND: Generation()}
        self.addresses: dict[str, Generation] = {}

    def let_go(self) -> None:
        for generation in self.generations.values():
            generation.may_stop.set()
            generation.end()


class App:
    """A client of the app."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    @contextmanager
    def ask(self, question: str) -> Iterator[Iterator[Told]]:
        """Ask; leaving the block disconnects."""
        asked = self.http.stream("GET", "/answers", params={"question": question})
        with asked as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            yield parsed(response.iter_lines())

    def get(self, path: str) -> dict[str, Any]:
        return self.http.get(path).raise_for_status().json()

    def wait_for(self, anomaly: str) -> None:
        """Wait until the detector has found one; the test's own timeout is the end."""
        while anomaly not in [each["anomaly"] for each in self.findings()]:
            pass

    def findings(self) -> list[dict[str, Any]]:
        return self.get("/findings")["findings"]

    def found(self, *severities: str) -> set[tuple[str, tuple[str, ...]]]:
        return {
            (each["anomaly"], tuple(each["keys"]))
            for each in self.findings()
            if each["severity"] in severities
        }


def parsed(lines: Iterator[str]) -> Iterator[Told]:
    name = ""
    for line in lines:
        kind, _, value = line.partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield name, json.loads(value)


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


@contextmanager
def served(folder: Path, *arguments: str) -> Iterator[App]:
    """Serve the app in a process of its own, on a port that is free."""
    log = folder / "log.txt"
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE")) and "proxy" not in name.lower()
    }
    with (
        log.open("wb") as written,
        subprocess.Popen(
            [sys.executable, "-W", "error", str(APP), "--port", "0", *arguments],
            env=clean,
            stdout=subprocess.PIPE,
            stderr=written,
            encoding="utf-8",
        ) as process,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url, log.read_text("utf-8")
            with httpx.Client(base_url=url, timeout=PATIENCE, trust_env=False) as http:
                yield App(http)
        finally:
            process.terminate()
    assert process.returncode == -signal.SIGTERM
    # It logs findings and answers that ended early, and nothing else.
    logged = log.read_text("utf-8").splitlines()
    assert [line for line in logged if not line.startswith("WARNING answers: ")] == []


@dataclass
class Seen:
    """What the client of a story has seen.

    Attributes:
        second: The stream of the answer to the second question.
        refusals: Reasons for which that question was refused before.
    """

    second: list[Told] = field(default_factory=list)
    refusals: set[str] = field(default_factory=set)

    @property
    def words(self) -> list[str]:
        return [data["text"] for event, data in self.second if event == "word"]


def disconnect_and_ask_again(app: App, model: ScriptedModel, engine: str) -> Seen:
    """Play a reader who leaves in the middle of a superstep, and asks again at once."""
    first, second = model.generations[FIRST], model.generations[SECOND]
    # Both pieces come at once; a typewriter pauses for ever after the first word.
    first.write("The moon.", "Pulls.")
    second.write("Wind.")
    with app.ask(FIRST) as told:
        assert next(each for each in told if each[0] == "word")[1] == {"text": "The"}
    if engine == "agent-framework":
        # It would refuse the next question until it has noticed that nobody reads.
        assert first.told_to_stop.wait(PATIENCE)
    seen = Seen()
    while not seen.second:
        with app.ask(SECOND) as told:
            listen(app, model, told, seen)
    assert first.told_to_stop.wait(PATIENCE)
    return seen


def listen(app: App, model: ScriptedModel, told: Iterator[Told], seen: Seen) -> None:
    """Read the second answer; once it is drafted, the first one's clean-up ends."""
    stop = model.generations[FIRST].may_stop
    for event, data in told:
        if event == "failed":
            seen.refusals.add(data["reason"])
            stop.set()
            return
        seen.second.append((event, data))
        if data == {"number": 2} and not stop.is_set():
            stop.set()
        if data == {"text": "Wind."} and event == "word":
            if app.get("/findings")["findings"]:
                app.wait_for("stale-discard")
            model.generations[SECOND].end()
