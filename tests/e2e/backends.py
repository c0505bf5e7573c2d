"""Real programs on loopback: started on free ports, asked until they answer, ended."""

import importlib.util
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx
import yaml

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "deploy" / "demo"
DEBIAN = ROOT / ".venvs" / "debian" / "usr" / "bin"
TENURE = [
    sys.executable,
    "-c",
    "import sys; from tenure.cli import main; sys.exit(main())",
]
PATIENCE = 30.0
_T = TypeVar("_T")


def program(*names: str) -> str:
    """Return where one of `names` is; `.ci/backends` says how it gets there."""
    scripts = Path(sys.executable).parent
    path = os.pathsep.join([str(scripts), str(DEBIAN), os.environ["PATH"]])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise AssertionError(f"none of {names} is installed: use make e2e")


def compose() -> str:
    """Return Docker Compose, not the wrapper of its package, which hides failures."""
    found = importlib.util.find_spec("compose")
    assert found is not None, "use make e2e"
    assert found.origin is not None
    return str(Path(found.origin).with_name("docker-compose"))


def until(
    ask: Callable[[], _T],
    accept: Callable[[_T], object] = bool,
    *,
    patience: float = PATIENCE,
) -> _T:
    """Ask a backend until its answer is accepted; what was sent takes its time."""
    deadline = time.monotonic() + patience
    pause = threading.Event()
    while True:
        answer: Any = None
        try:
            answer = ask()
            if accept(answer):
                return answer
        except httpx.HTTPError as error:
            answer = error
        assert time.monotonic() < deadline, f"after {patience} s: {answer!r}"
        pause.wait(0.1)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        return bound.getsockname()[1]


def environment(**variables: str) -> dict[str, str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE", "ROTEL", "MLFLOW"))
    }
    return {**clean, **variables}


class Running:
    """A process, what it prints line by line, and its log."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self.log = log
        self.lines: queue.Queue[str | None] = queue.Queue()  # None: it has ended
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, patience: float = PATIENCE) -> str:
        """Return the next line; fail with the log if there is none in time."""
        try:
            line = self.lines.get(timeout=patience)
        except queue.Empty:
            line = None
        assert line is not None, f"it says no more: {self.log.read_text()}"
        return line

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join(PATIENCE)
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()


@contextmanager
def started(
    name: str, command: list[str], folder: Path, **variables: str
) -> Iterator[Running]:
    """Start a program; it is ended with the block, whatever happens."""
    log = folder / f"{name}-{time.monotonic_ns()}.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            command,
            env=environment(**variables),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    running = Running(process, log)
    try:
        yield running
    finally:
        running.end()
        # What it has started, such as the workers of a server, ends with it.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


class Prometheus:
    """A Prometheus and what it answers."""

    def __init__(self, url: str) -> None:
        self.url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": expression})
        found = answer.json()
        assert found["status"] == "success", found
        return found["data"]["result"]

    def value(self, expression: str) -> float:
        return sum(float(each["value"][1]) for each in self.query(expression))

    def alerts(self) -> list[dict[str, Any]]:
        return httpx.get(f"{self.url}/api/v1/alerts").json()["data"]["alerts"]

    def firing(self) -> set[str]:
        return {
            alert["labels"]["alertname"]
            for alert in self.alerts()
            if alert["state"] == "firing"
        }


def quick(text: str) -> str:
    """Shorten the durations of the rules: what ends after minutes ends here."""
    for minutes, seconds in {"[10m]": "[12s]", "offset 10m": "offset 12s"}.items():
        assert minutes in text
        text = text.replace(minutes, seconds)
    return text


@contextmanager
def prometheus(
    folder: Path,
    targets: Mapping[str, str],
    *,
    alertmanager: str | None = None,
    rules: str | None = None,
) -> Iterator[Prometheus]:
    """Start Prometheus with the configuration of the stack, for other addresses."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "500ms", "evaluation_interval": "500ms"}
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    config["scrape_configs"] = [
        {
            **jobs[job],
            "scrape_timeout": "500ms",
            "static_configs": [{"targets": [target]}],
        }
        for job, target in targets.items()
    ]
    if alertmanager is None:
        del config["alerting"]
    else:
        (manager,) = config["alerting"]["alertmanagers"]
        manager["static_configs"] = [{"targets": [alertmanager]}]
    (folder / "rules").mkdir(exist_ok=True)
    if rules is not None:
        (folder / "rules" / "tenure.yml").write_text(rules)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        program("prometheus"),
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
        # What fires before Alertmanager is known, a few seconds after the start, is
        # repeated after a minute otherwise.
        "--rules.alert.resend-delay=1s",
    ]
    with started("prometheus", command, folder):
        until(
            lambda: httpx.get(f"http://{address}/-/ready").status_code,
            lambda status: status == 200,
        )
        yield Prometheus(f"http://{address}")


@contextmanager
def alertmanager(folder: Path, pager: str) -> Iterator[str]:
    """Start Alertmanager as the stack does, with `pager` where its pager is."""
    text = (ROOT / "deploy/alertmanager.yml").read_text()
    assert "http://pager:8080" in text
    (folder / "alertmanager.yml").write_text(
        text.replace("http://pager:8080", pager).replace(
            "group_interval: 10s", "group_interval: 1s"
        )
    )
    address = f"127.0.0.1:{free_port()}"
    command = [
        program("prometheus-alertmanager", "alertmanager"),
        "--config.file=alertmanager.yml",
        "--storage.path=alertmanager",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with started("alertmanager", command, folder):
        until(
            lambda: httpx.get(f"http://{address}/-/ready").status_code,
            lambda status: status == 200,
        )
        yield address


@contextmanager
def watch(folder: Path, *options: str) -> Iterator[tuple[Running, dict[str, str]]]:
    """Start the sidecar, and say where it listens."""
    command = [*TENURE, "watch", "--grpc-port", "0", "--http-port", "0", "--json"]
    with started("watch", [*command, *options], folder) as running:
        listening = json.loads(running.line())
        assert listening["event"] == "listening"
        yield running, listening


class Rotel:
    """A collector that is not ours, and where it listens."""

    def __init__(self, folder: Path, target: str, **variables: str) -> None:
        import rotel

        self.grpc = f"127.0.0.1:{free_port()}"
        self.http = f"127.0.0.1:{free_port()}"
        self._folder = folder
        agent = Path(str(rotel.__file__)).with_name("rotel-agent")
        self._command = [str(agent), "start"]
        self._variables = {
            "ROTEL_OTLP_GRPC_ENDPOINT": self.grpc,
            "ROTEL_OTLP_HTTP_ENDPOINT": self.http,
            "ROTEL_EXPORTER": "otlp",
            "ROTEL_OTLP_EXPORTER_ENDPOINT": target,
            "ROTEL_BATCH_TIMEOUT": "200ms",
            **variables,
        }

    @contextmanager
    def running(self) -> Iterator[Running]:
        """Start it; may be done again after it has ended, on the same ports."""
        with started(
            "rotel", self._command, self._folder, **self._variables
        ) as running:
            for address in (self.grpc, self.http):
                host, port = address.split(":")
                until(lambda h=host, p=port: answers(h, int(p)))
            yield running


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@contextmanager
def application(
    folder: Path, engine: str, endpoint: str, **variables: str
) -> Iterator[str]:
    """Start the answers of examples/sse, and say where they are served."""
    command = [
        sys.executable,
        str(ROOT / "examples" / "sse" / "app.py"),
        *("--engine", engine, "--port", "0"),
    ]
    export = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_METRIC_EXPORT_INTERVAL": "500",
        "OTEL_SERVICE_NAME": "answers",
    }
    with started("app", command, folder, **{**export, **variables}) as running:
        yield running.line()


def traffic(kind: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Let the readers of the demonstration ask, as the stack does."""
    return subprocess.run(
        [sys.executable, str(DEMO / "traffic.py"), kind, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
