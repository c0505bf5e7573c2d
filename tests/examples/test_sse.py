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


def disconnect_and_ask_again(
    app: App,
    model: ScriptedModel,
    *,
    leave_after: str = "The",
    once_noticed: bool = False,
    until: str | None = None,
) -> Seen:
    """Play a reader who leaves in the middle of a superstep, and asks again at once.

    Args:
        app: The app.
        model: The model that it asks.
        leave_after: The word of the first answer after which the reader leaves.
        once_noticed: Whether to ask again only when the first run's clean-up has begun.
        until: What the detector must find before the second answer is complete.
    """
    first, second = model.generations[FIRST], model.generations[SECOND]
    # Both pieces come at once; a typewriter pauses for ever after the first word.
    first.write("The moon.", "Pulls.")
    second.write("Wind.")
    with app.ask(FIRST) as told:
        assert ("word", {"text": leave_after}) in told
    assert not once_noticed or first.told_to_stop.wait(PATIENCE)
    seen = Seen()
    while not seen.second:
        with app.ask(SECOND) as told:
            for event, data in told:
                if event == "failed":
                    seen.refusals.add(data["reason"])
                else:
                    seen.second.append((event, data))
                if event == "failed" or data == {"number": 2}:
                    # The second answer is being drafted, or will not be before this.
                    first.may_stop.set()
                if data == {"text": "Wind."}:
                    if until is not None:
                        app.wait_for(until)
                    second.end()
    assert first.told_to_stop.wait(PATIENCE)
    return seen


def options(engine: str, reader: str, model: ScriptedModel) -> list[str]:
    url = f"http://127.0.0.1:{model.server_port}"
    pace = ["--pace", ENDLESS]
    return ["--engine", engine, "--read", reader, "--model", url, *pace]


def test_agent_framework_loses_a_write_leaks_one_and_the_detector_names_both(
    tmp_path: Path, model: ScriptedModel
) -> None:
    with served(tmp_path, *options("agent-framework", "typewriter", model)) as app:
        seen = disconnect_and_ask_again(
            app, model, once_noticed=True, until="stale-discard"
        )
        state, told = app.get("/state"), app.get("/findings")
        found = app.found("violation", "warning")

    assert FIRST_DRAFT in state, "of a run that nobody waited for, and that was cut off"
    assert SECOND_DRAFT not in state, "of a run that ended well"
    assert seen.second[-2:] == [
        ("published", {"text": "Wind.", "sources": []}),
        ("end", {}),
    ]
    assert seen.words == ["Pulls.", "Wind."], "a word of the first answer in the second"
    assert seen.refusals == set()
    assert found == {
        ("leaked-write", (FIRST_DRAFT,)),
        ("stale-discard", (SECOND_DRAFT,)),
        ("foreign-delivery", ()),
    }
    assert {each["certainty"] for each in told["findings"]} == {"certain"}
    assert told["engine"] == f"agent-framework/{version('agent-framework-core')}"
    assert told["verdict"] == "violated"


@pytest.mark.parametrize("reader", READERS)
def test_tenure_loses_nothing_however_the_response_reads_the_run(
    tmp_path: Path, model: ScriptedModel, reader: str
) -> None:
    with served(tmp_path, *options("tenure", reader, model)) as app:
        seen = disconnect_and_ask_again(app, model, until="stale-discard")
        state, told = app.get("/state"), app.get("/findings")
        found, averted = app.found("violation", "warning"), app.found("averted")

    assert state == RIGHT_STATE
    assert seen == Seen(second=RIGHT_STORY)
    assert found == set()
    assert averted == {("stale-discard", ())}, "the first run asked, and was refused"
    assert told["engine"] == f"tenure/{version('tenure')}"
    assert told["verdict"] == "clean"


@pytest.mark.parametrize(
    ("reader", "leave_after", "refused"),
    [
        pytest.param("plain", "Pulls.", False, id="plain, while it waits"),
        pytest.param("queue", "Pulls.", True, id="queue, while it waits"),
        pytest.param("block", "The", False, id="block, while it types"),
    ],
)
def test_agent_framework_keeps_its_state_where_the_run_is_closed(
    tmp_path: Path,
    model: ScriptedModel,
    reader: str,
    leave_after: str,
    *,
    refused: bool,
) -> None:
    with served(tmp_path, *options("agent-framework", reader, model)) as app:
        seen = disconnect_and_ask_again(
            app, model, leave_after=leave_after, once_noticed=True
        )
        state, verdict = app.get("/state"), app.get("/findings")["verdict"]
        found = app.found("violation", "warning")

    assert state == RIGHT_STATE
    # What the first reader was never told, the second one is.
    foreign = [] if leave_after == "Pulls." else ["Pulls."]
    assert seen.words == [*foreign, "Wind."]
    assert any("already running" in each for each in seen.refusals) == refused
    assert found == ({("foreign-delivery", ())} if foreign else set())
    assert verdict == ("violated" if found else "clean")


@pytest.mark.parametrize("engine", ["agent-framework", "tenure"])
def test_an_answer_that_is_read_to_its_end_is_committed_and_nothing_is_found(
    tmp_path: Path, engine: str
) -> None:
    question = "Why is there salt in the sea"
    with served(tmp_path, "--engine", engine, "--pace", "0") as app:
        with app.ask(question) as told:
            *_, published, end = told
        state, told = app.get("/state"), app.get("/findings")

    text, sources = published[1]["text"], published[1]["sources"]
    assert (published[0], end) == ("published", ("end", {}))
    assert text.startswith(f"You ask: {question}. Rivers")
    assert sources == ["Salt in the sea"]
    assert state == {
        f"draft:{question}": {"sources": sources},
        f"answer:{question}": {"text": text, "sources": sources},
    }
    assert (told["verdict"], told["findings"]) == ("clean", [])


def test_a_reader_whose_question_is_taken_over_is_told_so(
    tmp_path: Path, model: ScriptedModel
) -> None:
    first, second = model.generations[FIRST], model.generations[SECOND]
    first.write("Moon.")
    first.may_stop.set()
    second.write("Wind.")
    second.end()
    with (
        served(tmp_path, *options("tenure", "plain", model)) as app,
        app.ask(FIRST) as still_read,
    ):
        assert ("word", {"text": "Moon."}) in still_read
        with app.ask(SECOND) as told:
            assert list(told) == RIGHT_STORY
        ((event, data),) = still_read
        state = app.get("/state")

    assert event == "failed"
    assert "epoch 1" in data["reason"]
    assert state == RIGHT_STATE


def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    with served(tmp_path, "--engine", "tenure") as app:
        page = app.http.get("/")
        unasked = app.http.get("/answers")

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "new EventSource(" in page.text
    assert "//" not in page.text.replace("    // ", "")
    assert unasked.status_code == 400


def test_impatient_readers_are_counted() -> None:
    program = [sys.executable, "-W", "error", str(APP.with_name("impatient.py"))]
    done = subprocess.run(
        [*program, "--engine", "tenure", "--read", "block", "--readers", "3"],
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    counts = "lost 0, leaked 0, foreign words 0, refused 0"
    assert done.stdout.splitlines()[0].endswith(f" block: 3 readers: {counts}")
    assert done.stdout.splitlines()[-1] == "  clean"
