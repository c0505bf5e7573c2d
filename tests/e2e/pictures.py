"""Take the pictures of docs/observability.md: `.venv/bin/python -m tests.e2e.pictures`.

A race happens in front of MLflow. What MLflow shows of it, and the report on what it
gives back, is photographed in Chromium. It needs what `make e2e` has installed.
"""

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

from .backends import ROOT, TENURE, application, environment
from .mlflow_server import MLflow, attributes, mlflow
from .test_mlflow import ONLY_SPANS, named, race

IMAGES = ROOT / "docs" / "images"
LARGEST = 200_000
PATIENCE = 30


def browser() -> webdriver.Chrome:
    options = webdriver.ChromeOptions()
    for argument in (
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic"),
        *("--no-first-run", "--disable-background-networking", "--disable-sync"),
        *("--disable-component-update", "--hide-scrollbars"),
    ):
        options.add_argument(argument)
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            options.binary_location = found
    service = webdriver.ChromeService(shutil.which("chromedriver"))
    return webdriver.Chrome(options=options, service=service)


def take(driver: webdriver.Chrome, name: str, width: int, height: int) -> None:
    """Take the upper left part of the page."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": clip})
    picture = base64.b64decode(shot["data"])
    assert len(picture) < LARGEST, f"{name} has {len(picture)} bytes"
    (IMAGES / name).write_bytes(picture)
    sys.stdout.write(f"{name}: {len(picture):,} bytes\n")


def trace_of(span: dict[str, Any], server: MLflow) -> str:
    place = f"{server.url}/#/experiments/{server.experiment}/traces"
    return f"{place}?selectedEvaluationId=tr-{span['traceId']}"


def show(driver: webdriver.Chrome, url: str, text: str) -> None:
    driver.get("about:blank")
    driver.get(url)
    place = (By.XPATH, f"//*[contains(text(), '{text}')]")
    WebDriverWait(driver, PATIENCE).until(lambda page: page.find_elements(*place))


def report(spans: list[dict[str, Any]], folder: Path) -> Path:
    """Let `tenure check` draw what MLflow gave back, findings left out."""
    kept = [span for span in spans if span["name"] != "violation"]
    scope = {"scope": {"name": "tenure.runtime"}, "spans": kept}
    (folder / "spans.json").write_text(
        json.dumps({"resourceSpans": [{"scopeSpans": [scope]}]})
    )
    command = ["check", "spans.json", "--format", "html", "--output", "report.html"]
    subprocess.run(
        [*TENURE, *command], cwd=folder, env=environment(), timeout=60, check=False
    )
    return folder / "report.html"


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with mlflow(folder) as server:
            with application(
                folder,
                "agent-framework",
                server.url,
                OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
                OTEL_EXPORTER_OTLP_HEADERS=server.header,
                **ONLY_SPANS,
            ) as url:
                spans = race(url, server)
            driver = browser()
            try:
                driver.set_window_size(1280, 800)
                (run,) = (
                    span
                    for span in named(spans, "run answers")
                    if attributes(span)["tenure.run.outcome"] == "completed"
                )
                show(driver, trace_of(run, server), "execute publisher")
                take(driver, "mlflow-run.png", 896, 660)
                (found,) = (
                    span
                    for span in named(spans, "violation")
                    if attributes(span)["tenure.anomaly"] == "stale-discard"
                )
                driver.set_window_size(1280, 1330)
                show(driver, trace_of(found, server), "tenure.proof")
                take(driver, "mlflow-violation.png", 896, 1190)
                driver.set_window_size(1100, 900)
                driver.get(report(spans, folder).as_uri())
                take(driver, "report.png", 1100, 760)
            finally:
                driver.quit()


if __name__ == "__main__":
    main()
