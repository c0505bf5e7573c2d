"""The files of the stack, read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def read(path: str) -> Any:
    """Return a YAML or JSON file of the repository as plain data."""
    text = (ROOT / path).read_text("utf-8")
    return json.loads(text) if path.endswith(".json") else yaml.safe_load(text)


def services() -> dict[str, dict[str, Any]]:
    return read("docker-compose.yml")["services"]


def rules() -> list[dict[str, Any]]:
    groups = read("deploy/prometheus/rules/tenure.yml")["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard() -> dict[str, Any]:
    return read("deploy/grafana/dashboards/tenure.json")


def panel_expressions() -> Iterator[tuple[str, str]]:
    """Return the title of each panel that asks, and what it asks."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], settled(target["expr"])


def settled(expression: str) -> str:
    """Put something in the place of Grafana's variables."""
    for name, value in {
        "$__rate_interval": "1m",
        "$__range": "30m",
        "$workflow": ".*",
    }.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, "a variable of Grafana that this does not know"
    return expression


def strings(found: object) -> Iterator[str]:
    """Return every string in plain data, keys left out."""
    match found:
        case str():
            yield found
        case dict():
            for value in found.values():
                yield from strings(value)
        case list():
            for value in found:
                yield from strings(value)


def addresses(found: object) -> Iterator[tuple[str, int]]:
    """Return every host and port in plain data."""
    for text in strings(found):
        for host, port in re.findall(r"(?<![\w.])([a-z][\w.-]*|[\d.]+):(\d+)\b", text):
            yield host, int(port)
