"""Readers who leave while words come, and ask again at once: what becomes of the state.

    python examples/sse/impatient.py --engine agent-framework --read plain

The app runs in a process of its own and asks a model that this program plays. The model
never pauses; told to stop, it lets the app wait until the next question is drafted.
When exactly a reader leaves is left to chance.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import httpx
from reading import READERS

APP: Final = Path(__file__).with_name("app.py")
ALL_AT_ONCE: Final = ("word{number}", 0.0005)
TYPED: Final = ("word{number} word{number}", 0.05)
PACE: Final = 0.02
PATIENCE: Final = 20.0


class Asked(BaseHTTPRequestHandler):
    server: "Model"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        first, _, number = asked["question"].partition(" ")
        self.send_response(200)
        self.end_headers()
        if first == "second":
            self.wfile.write(b"answered\n")
            return
        piece, every = self.server.load
        stop = self.server.told[self.path] = threading.Event()
        self.server.newest = stop
        try:
            while not stop.wait(every):
                self.wfile.write(f"{piece.format(number=number)}\n".encode())
        except OSError:
            pass  # the app has left

    def do_DELETE(self) -> None:
        stop = self.server.told.get(self.path)
        if stop is not None:
            stop.set()
            self.server.may_stop.wait(PATIENCE)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, load: tuple[str, float]) -> None:
        super().__init__(("127.0.0.1", 0), Asked)
        self.load: Final = load
        self.told: Final[dict[str, threading.Event]] = {}
        self.newest = threading.Event()
        self.may_stop: Final = threading.Event()


def told(app: httpx.Client, question: str) -> Generator[tuple[str, dict[str, Any]]]:
    """Ask, and return the events; closing the iterator disconnects."""
    with app.stream("GET", "/answers", params={"question": question}) as response:
        name = ""
        for line in response.iter_lines():
            kind, _, value = line.partition(": ")
            if kind == "data":
                yield name, json.loads(value)
            name = value if kind == "event" else name


def leave(app: httpx.Client, number: int) -> None:
    """Ask the first question, and leave after some words."""
    words = 1 + number * 7 % 60
    while words:
        events = told(app, f"first {number}")
        for event, data in events:
            words -= event == "word" and data["text"] == f"word{number}"
            if not words or event == "failed":
                break
        events.close()


def ask_again(app: httpx.Client, model: Model, number: int) -> Iterator[str]:
    """Ask the second question until it is answered; return what was wrong."""
    answered = refused = foreign = False
    while not answered:
        for event, data in told(app, f"second {number}"):
            refused |= event == "failed"
            answered |= event == "end"
            foreign |= event == "word" and data["text"] != "answered"
            if event == "failed" or data == {"number": 2}:
                model.may_stop.set()
    yield from ["refused"] * refused + ["foreign words"] * foreign
    state = app.get("/state").json()
    if f"draft:first {number}" in state:
        yield "leaked"
    if f"draft:second {number}" not in state:
        yield "lost"


def play(app: httpx.Client, model: Model, readers: int) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(readers):
        model.may_stop.clear()
        leave(app, number)
        model.newest.wait(PATIENCE / 100)
        seen.update(ask_again(app, model, number))
        # A finalizer that is late by some turns of the loop is not late by this.
        time.sleep(0.05)
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="agent-framework")
    parser.add_argument("--read", choices=READERS, default="typewriter")
    parser.add_argument("--readers", type=int, default=40)
    arguments = parser.parse_args()
    typed = arguments.read in ("typewriter", "block")
    model = Model(TYPED if typed else ALL_AT_ONCE)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    serve = [sys.executable, str(APP), "--port", "0", "--engine", arguments.engine]
    serve += ["--read", arguments.read, "--pace", str(PACE)]
    serve += ["--model", f"http://127.0.0.1:{model.server_port}"]
    with subprocess.Popen(
        serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with httpx.Client(base_url=url, timeout=2 * PATIENCE) as app:
                seen = play(app, model, arguments.readers)
                found = app.get("/findings").json()
        finally:
            process.terminate()
    names = ("lost", "leaked", "foreign words", "refused")
    counts = ", ".join(f"{name} {seen[name]}" for name in names)
    print(f"{found['engine']} {arguments.read}: {arguments.readers} readers: {counts}")
    kinds = Counter((each["anomaly"], each["severity"]) for each in found["findings"])
    for (anomaly, severity), number in sorted(kinds.items()):
        print(f"  {number} x {anomaly} ({severity})")
    print(f"  {found['verdict']}")


if __name__ == "__main__":
    main()
