"""Print alerts, one line each: where a pager would be.

Alertmanager posts to /alerts and /heartbeat. The last heartbeat is in the answer to any
GET, so that whoever wants to know can see that the alarm itself works.
"""

import argparse
import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

_SHOWN: Final = ("tenure_engine", "tenure_workflow_name", "tenure_anomaly", "job")


class Pager(ThreadingHTTPServer):
    """Listens for Alertmanager."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__((host, port), _Called)
        self.heard: str | None = None
        # One line at a time, whoever calls.
        self.printing: Final = threading.Lock()


class _Called(BaseHTTPRequestHandler):
    server: Pager

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/heartbeat":
            self.server.heard = datetime.now(UTC).isoformat(timespec="seconds")
        else:
            with self.server.printing:
                for alert in json.loads(body)["alerts"]:
                    print(line(alert), flush=True)
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({"heartbeat": self.server.heard}).encode())

    def log_message(self, *arguments: object) -> None:
        """Say nothing of requests."""


def line(alert: dict) -> str:
    """Return an alert as a line: state, name, what it is about, the runbook."""
    labels, notes = alert["labels"], alert["annotations"]
    about = " ".join(f"{name}={labels[name]}" for name in _SHOWN if name in labels)
    said = f"{alert['status']} {labels['alertname']} [{labels['severity']}] {about}"
    return f"{said}: {notes['summary']} ({notes['runbook']})"


def main() -> None:
    """Listen until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080, help="0 picks a free one")
    arguments = parser.parse_args()
    with Pager(arguments.host, arguments.port) as pager:
        print(f"http://{arguments.host}:{pager.server_port}", flush=True)
        pager.serve_forever()


if __name__ == "__main__":
    main()
