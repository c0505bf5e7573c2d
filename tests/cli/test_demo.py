"""`tenure demo`, run as a person runs it."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

PROGRAM = "import sys; from tenure.cli import main; sys.exit(main())"
AGENT_FRAMEWORK = f"agent-framework/{version('agent-framework-core')}"
TENURE = f"tenure/{version('tenure')}"


def run(
    *arguments: str, cwd: Path, program: str = PROGRAM, **variables: str
) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        env={**clean, **variables},
        cwd=cwd,
        capture_output=True,
        timeout=50,
        check=False,
        encoding="utf-8",
    )


@pytest.fixture(scope="module")
def as_json(tmp_path_factory: pytest.TempPathFactory) -> dict:
    done = run("demo", "--json", cwd=tmp_path_factory.mktemp("json"))
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module")
def as_text(folder: Path) -> str:
    done = run("demo", cwd=folder, PYTHONIOENCODING="utf-8")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def engine(document: dict, name: str) -> dict:
    (found,) = [each for each in document["engines"] if each["engine"] == name]
    return found


def unfolded(text: str) -> str:
    """The text of a report without lanes and line breaks."""
    return re.sub(r"[\s│|─-]*[\s│|─][\s│|─-]*", " ", text)


def summary(findings: list[dict]) -> set[tuple]:
    return {
        (
            each["anomaly"],
            each["severity"],
            each["certainty"],
            each["culprit_epoch"],
            each["owner_epoch"],
            tuple(each["keys"]),
        )
        for each in findings
    }


def test_the_document_names_both_engines_in_the_form_that_is_promised(as_json: dict):
    assert as_json.keys() == {"engines"}
    assert [each["engine"] for each in as_json["engines"]] == [AGENT_FRAMEWORK, TENURE]
    for each in as_json["engines"]:
        assert each.keys() == {
            "engine",
            "expected",
            "state",
            "lost",
            "leaked",
            "findings",
        }


def test_agent_framework_loses_the_second_write_and_commits_the_first(as_json: dict):
    found = engine(as_json, AGENT_FRAMEWORK)

    assert found["expected"] == {"answer:second": "the answer to second"}
    assert found["state"] == {"answer:first": "the answer to first"}
    assert found["lost"] == ["answer:second"]
    assert found["leaked"] == ["answer:first"]


def test_the_detector_names_both_with_keys_and_epochs(as_json: dict):
    findings = engine(as_json, AGENT_FRAMEWORK)["findings"]

    assert summary(findings) == {
        ("stale-discard", "violation", "certain", 1, 2, ("answer:second",)),
        ("leaked-write", "violation", "certain", 2, 2, ("answer:first",)),
    }
    for finding in findings:
        assert finding["engine"] == AGENT_FRAMEWORK
        assert finding["evidence"][0]["span"] is not None


def test_tenure_loses_and_leaks_nothing_and_averts_the_late_discard(as_json: dict):
    found = engine(as_json, TENURE)

    assert found["expected"] == {"answer:second": "the answer to second"}
    assert found["state"] == found["expected"]
    assert (found["lost"], found["leaked"]) == ([], [])
    assert summary(found["findings"]) == {
        ("stale-discard", "averted", "certain", 1, 2, ())
    }


def test_the_report_ends_with_one_line_per_engine(as_text: str):
    *_, first, second = as_text.splitlines()

    assert (
        first.split()
        == (
            f"{AGENT_FRAMEWORK} lost: answer:second leaked: answer:first "
            "violated (2 violations)"
        ).split()
    )
    assert (
        second.split()
        == (f"{TENURE} lost: nothing leaked: nothing clean (1 averted)").split()
    )


def test_the_timeline_marks_the_guilty_operations_and_proves_them(as_text: str):
    before, _, after = unfolded(as_text).partition(f" {TENURE} ")

    assert "✗ commits at run entry: answer:first of epoch 1" in before
    assert re.search(r"✗ discards \(\w+\): answer:second of epoch 2", before)
    assert "leaked-write (violation, certain)" in before
    assert "stale-discard (violation, certain)" in before
    assert before.count("however, epoch") == 2
    assert before.count("✗") == 3  # one of them in the legend
    assert "✗" not in after
    assert re.search(r"✓ discard \(\w+\) refused", after)
    assert "stale-discard (averted, certain)" in after


def test_the_timeline_fits_a_hundred_columns_and_needs_no_colour(as_text: str):
    assert max(len(line) for line in as_text.splitlines()) <= 100
    assert "\x1b" not in as_text


def test_the_client_takes_the_same_steps_on_both_engines(as_text: str):
    steps = ["asks, reads the stream", "disconnects", "asks again", "gets its answer"]
    before, _, after = as_text.partition(f" {TENURE} ")

    for half in (before, after):
        # The first lines tell the story; the timelines come after the headings.
        timeline = half.partition("seq client")[2]
        places = [timeline.index(step) for step in steps]
        assert places == sorted(places)


def spans(path: Path) -> list[dict]:
    return [
        {**span, "scope": scope["scope"]["name"]}
        for line in path.read_text(encoding="utf-8").splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def attributes(span: dict) -> dict:
    return {item["key"]: item["value"] for item in span["attributes"]}


def test_the_spans_of_both_engines_are_in_the_file(as_text: str, folder: Path):
    found = spans(folder / "tenure-demo.jsonl")

    assert f"{len(found)} spans in tenure-demo.jsonl" in as_text
    told = [span for span in found if span["scope"] != "tenure.detectors"]
    for name in (AGENT_FRAMEWORK, TENURE):
        of_engine = [
            span
            for span in told
            if attributes(span).get("tenure.engine") == {"stringValue": name}
        ]
        names = [span["name"] for span in of_engine]
        for expected in (
            "run answers",
            "own answers",
            "superstep",
            "commit",
            "discard",
        ):
            assert expected in names
        epochs = [
            attributes(span)["tenure.run.epoch"]["intValue"] for span in of_engine
        ]
        assert set(epochs) == {"1", "2"}
    assert os.listdir(folder) == ["tenure-demo.jsonl"]


def test_ids_in_the_file_are_hexadecimal(as_text: str, folder: Path):
    assert as_text
    for span in spans(folder / "tenure-demo.jsonl"):
        assert re.fullmatch(r"[0-9a-f]{32}", span["traceId"])
        assert re.fullmatch(r"[0-9a-f]{16}", span["spanId"])
        assert re.fullmatch(r"[0-9a-f]{16}|", span.get("parentSpanId", ""))
        assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]) > 0
        assert span["kind"] == 1


def test_the_evidence_points_into_the_file(tmp_path: Path):
    done = run("demo", "--json", "-o", "out.jsonl", cwd=tmp_path)
    found = {
        (span["traceId"], span["spanId"]) for span in spans(tmp_path / "out.jsonl")
    }

    for each in json.loads(done.stdout)["engines"]:
        for finding in each["findings"]:
            for operation in finding["evidence"]:
                span = operation["span"]
                assert (span["trace_id"], span["span_id"]) in found


def test_one_engine_can_be_chosen(tmp_path: Path):
    done = run("demo", "--json", "--engine", "tenure", cwd=tmp_path)

    assert done.returncode == 0
    assert [each["engine"] for each in json.loads(done.stdout)["engines"]] == [TENURE]


def test_an_output_that_cannot_be_written_is_one_line(tmp_path: Path):
    done = run("demo", "-o", "missing/spans.jsonl", cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tenure: missing/spans.jsonl cannot be written: No such file or directory\n"
    )


def test_characters_that_a_terminal_lacks_are_replaced(tmp_path: Path):
    done = run("demo", cwd=tmp_path, PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert re.search(r"x discards \(\w+\): answer:second", unfolded(done.stdout))


@pytest.mark.parametrize("form", ["--json", "--output=spans.jsonl"])
def test_a_reader_that_goes_away_ends_the_demo_quietly(tmp_path: Path, form: str):
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "demo", "--engine", "tenure", form],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read()

    assert told == b""
    assert process.returncode == 1


def test_a_setting_that_cannot_be_used_is_one_line(tmp_path: Path):
    done = run("demo", "--json", cwd=tmp_path, TENURE_DETAIL="everything")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tenure: TENURE_DETAIL='everything' cannot be used: use one of ownership, "
        "supersteps, executors, messages\n"
    )


@pytest.mark.parametrize("detail", ["ownership", "supersteps"])
def test_less_detail_changes_nothing_of_the_outcome(tmp_path: Path, detail: str):
    done = run("demo", "--json", cwd=tmp_path, TENURE_DETAIL=detail)

    assert (done.returncode, done.stderr) == (0, "")


WITHOUT_WATCHING = """
import sys
from pathlib import Path
from tenure.cli._demo.command import run_demo
names = ["agent-framework", "tenure"]
sys.exit(run_demo(names, Path("spans.jsonl"), as_json=True, watch=False))
"""


def test_without_the_instrumentor_nothing_is_found_and_the_demo_says_so(
    tmp_path: Path,
):
    done = run(cwd=tmp_path, program=WITHOUT_WATCHING)

    found = engine(json.loads(done.stdout), AGENT_FRAMEWORK)
    assert done.returncode == 1
    assert found["lost"] == ["answer:second"]
    assert found["leaked"] == ["answer:first"]
    assert found["findings"] == []
    told = {
        attributes(span)["tenure.engine"]["stringValue"]
        for span in spans(tmp_path / "spans.jsonl")
        if span["scope"].startswith("tenure.")
    }
    assert told == {TENURE}


def test_what_is_not_as_described_is_said_in_the_report(tmp_path: Path):
    program = WITHOUT_WATCHING.replace("as_json=True", "as_json=False")

    done = run(cwd=tmp_path, program=program)

    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert (
        f"not as described on {AGENT_FRAMEWORK}: the detector was to find a "
        "stale-discard of answer:second, and did not"
    ) in told


def test_hashed_keys_change_what_is_shown_and_not_how_it_turns_out(tmp_path: Path):
    done = run("demo", "--json", cwd=tmp_path, TENURE_KEYS="hashed")

    findings = engine(json.loads(done.stdout), AGENT_FRAMEWORK)["findings"]
    assert done.returncode == 0
    assert len(findings) == 2
    for finding in findings:
        assert re.fullmatch(r"[0-9a-f]{12}", *finding["keys"])


@pytest.fixture
def backend() -> Iterator[tuple[str, list[str]]]:
    names: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces":
                message = ExportTraceServiceRequest()
                message.ParseFromString(body)
                names.extend(
                    span.name
                    for resource in message.resource_spans
                    for scope in resource.scope_spans
                    for span in scope.spans
                )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", names
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_are_exported_live_where_a_backend_is_named(
    backend: tuple[str, list[str]], tmp_path: Path
):
    endpoint, names = backend

    done = run(
        "demo",
        cwd=tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert f"and live to {endpoint}" in done.stdout
    written = [span["name"] for span in spans(tmp_path / "tenure-demo.jsonl")]
    assert sorted(names) == sorted(written)
    assert names.count("violation") == 2


def test_a_backend_that_does_not_answer_is_one_line_and_no_failure(tmp_path: Path):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{bound.getsockname()[1]}"

        done = run(
            "demo",
            "--json",
            cwd=tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
            OTEL_EXPORTER_OTLP_TIMEOUT="0.3",
        )

    assert done.returncode == 0
    assert len(json.loads(done.stdout)["engines"]) == 2
    assert done.stderr.startswith(f"tenure: spans did not reach {endpoint}: ")
    assert done.stderr.count("\n") == 1
    assert spans(tmp_path / "tenure-demo.jsonl")


def test_a_variable_that_cannot_be_used_is_one_line(tmp_path: Path):
    done = run(
        "demo",
        cwd=tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_PROTOCOL="carrier-pigeon",
    )

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tenure: OTEL_EXPORTER_OTLP_PROTOCOL='carrier-pigeon' cannot be used: use grpc "
        "or http/protobuf\n"
    )
    assert list(tmp_path.iterdir()) == []
