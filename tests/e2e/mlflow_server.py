"""An MLflow that takes traces over OTLP, and what it shows of them."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from .backends import ROOT, free_port, started, until

SERVER = ROOT / ".venvs" / "mlflow" / "bin" / "mlflow"
_STARTING_TAKES = 90.0
_ARRAY, _IDS = "arrayValue", {"trace_id", "span_id", "parent_span_id"}


class MLflow:
    """One experiment on a server."""

    def __init__(self, url: str) -> None:
        self.url = url
        answer = httpx.post(
            f"{url}/api/2.0/mlflow/experiments/create", json={"name": "tenure"}
        )
        self.experiment = answer.raise_for_status().json()["experiment_id"]

    @property
    def header(self) -> str:
        """What says where traces belong, as exporters want it."""
        return f"x-mlflow-experiment-id={self.experiment}"

    def traces(self) -> list[list[dict[str, Any]]]:
        """Return the spans of every trace, as OTLP JSON."""
        place = {
            "type": "MLFLOW_EXPERIMENT",
            "mlflow_experiment": {"experiment_id": self.experiment},
        }
        found = httpx.post(
            f"{self.url}/api/3.0/mlflow/traces/search",
            json={"locations": [place], "max_results": 100},
        ).json()
        return [self._spans(trace["trace_id"]) for trace in found.get("traces", ())]

    def spans(self) -> list[dict[str, Any]]:
        return [span for trace in self.traces() for span in trace]

    def _spans(self, trace: str) -> list[dict[str, Any]]:
        answer = httpx.get(
            f"{self.url}/api/3.0/mlflow/traces/get", params={"trace_id": trace}
        )
        spans = answer.raise_for_status().json()["trace"].get("spans", ())
        return [otlp(span) for span in spans]


def otlp(found: Any) -> Any:
    """Turn MLflow's way to write a span into OTLP's: names, and ids in hexadecimal."""
    if isinstance(found, list):
        return [otlp(each) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        _camel(name): (base64.b64decode(value).hex() if name in _IDS else otlp(value))
        for name, value in found.items()
    }


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span as plain values."""
    return {each["key"]: _plain(each["value"]) for each in span["attributes"]}


def _plain(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    if kind == _ARRAY:
        return [_plain(each) for each in content.get("values", ())]
    return content


@contextmanager
def mlflow(folder: Path) -> Iterator[MLflow]:
    """Start a server with a database of its own."""
    assert SERVER.exists(), "make e2e installs it"
    port = free_port()
    command = [
        str(SERVER),
        "server",
        *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", "sqlite:///mlflow.db"),
    ]
    quiet = {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    with started("mlflow", command, folder, **quiet):
        url = f"http://127.0.0.1:{port}"
        until(
            lambda: httpx.get(f"{url}/health").text,
            lambda answer: answer == "OK",
            patience=_STARTING_TAKES,
        )
        yield MLflow(url)
