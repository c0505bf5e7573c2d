"""`tenure check`, run as a person and as a CI system run it."""

import gzip
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tenure.cli._plain import plain
from tenure.detectors import CATALOGUE

DATA = Path(__file__).parents[1] / "detectors" / "offline" / "data"
VIOLATED = DATA / "mlflow.jsonl"
CLEAN = DATA / "sdk-json-file.jsonl"
PROGRAM = "import sys; from tenure.cli import main; sys.exit(main())"


def run(
    *arguments: str | Path, given: bytes = b"", program: str = PROGRAM, **variables: str
) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL", "TENURE"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, "check", *map(str, arguments)],
        env={**clean, "PYTHONIOENCODING": "utf-8", **variables},
        input=given,
        capture_output=True,
        timeout=50,
        check=False,
    )
    stdout, stderr = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in stdout + stderr
    return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)


@pytest.fixture
def inconclusive(tmp_path: Path) -> Path:
    """A clean recording whose last line is torn."""
    path = tmp_path / "torn.jsonl"
    path.write_bytes(CLEAN.read_bytes()[:-100])
    return path


@pytest.fixture
def no_trace(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text("<html>not found</html>")
    return path


# Exit status.


@pytest.mark.parametrize("format_", ["text", "json", "html", "junit", "sarif"])
def test_the_exit_status_is_that_of_the_verdict_in_every_format(
    format_: str, inconclusive: Path, no_trace: Path
) -> None:
    for paths, status in (
        ([CLEAN], 0),
        ([VIOLATED], 1),
        ([CLEAN, no_trace], 2),
        ([VIOLATED, no_trace], 1),
        ([inconclusive], 3),
        ([inconclusive, no_trace], 2),
    ):
        done = run("--format", format_, *paths)
        assert (done.returncode, done.stderr) == (status, ""), paths
        assert done.stdout


def test_processes_that_were_killed_before_they_told_anything_leave_it_inconclusive(
    tmp_path: Path,
) -> None:
    empty, torn = tmp_path / "empty.jsonl", tmp_path / "torn.jsonl"
    empty.touch()
    torn.write_bytes(CLEAN.read_bytes()[:300])

    for paths, status in (
        ([CLEAN, empty], 3),
        ([CLEAN, torn], 3),
        ([empty], 3),
        ([VIOLATED, empty, torn], 1),
    ):
        done = run(*paths)
        assert (done.returncode, done.stderr) == (status, ""), paths
    assert "it is empty" in done.stdout
    assert "it ends too early" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [(), ("--format", "yaml", "x"), ("--json", "--format", "html", "x"), ("-", "-")],
)
def test_bad_usage_is_two(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


def test_a_file_that_is_not_there_is_two_and_named() -> None:
    done = run("nowhere.jsonl")

    assert done.returncode == 2
    assert "nowhere.jsonl" in done.stdout
    assert "No such file or directory" in done.stdout


# What is read.


def test_a_dash_is_standard_input() -> None:
    for content in (VIOLATED.read_bytes(), gzip.compress(VIOLATED.read_bytes())):
        done = run("--json", "-", given=content)
        document = json.loads(done.stdout)

        assert done.returncode == 1
        assert document["files"][0]["name"] == "standard input"
        assert document["counts"]["spans"] == 32


def test_a_limit_can_be_set(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    span = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"%s"}]}]}]}\n'
    path.write_bytes((span % ("x" * (2 << 20))).encode() + CLEAN.read_bytes())
    done = run("--max-value", "1", path)

    assert done.returncode == 3
    assert "line 1: one value has more than 1 MiB" in done.stdout
    assert run(path).returncode == 0


# Text.


def test_the_text_proves_each_violation_on_a_timeline() -> None:
    done = run(VIOLATED)

    assert done.stdout.count("however, epoch") == 3
    assert done.stdout.count("✗ epoch") == 2
    assert "stale discard (violation, certain)" in done.stdout
    assert "leaked write (violation, certain)" in done.stdout
    assert done.stdout.splitlines()[-1] == (
        "violated: 2 violations, 1 averted in 1 file, 32 spans, 27 operations, "
        "0 unreadable"
    )
    assert "\x1b" not in done.stdout


def test_the_text_says_what_was_not_read_and_what_is_missing(
    inconclusive: Path,
) -> None:
    done = run(inconclusive)
    text = " ".join(done.stdout.split())

    assert "line 10: it ends too early" in text
    assert "Missing" in text
    assert re.search(r"what stood in 1 place of \S+torn.jsonl that cannot be", text)
    assert text.endswith("0 unreadable, 1 place not read")


def test_a_file_cannot_make_the_terminal_obey(tmp_path: Path) -> None:
    hostile = tmp_path / "hostile.jsonl"
    keys = VIOLATED.read_text().replace("answer:second", "\\u001b[2J\\u202e\\ud800")
    hostile.write_text(keys)

    for format_ in ("text", "junit", "sarif", "html"):
        done = run("--format", format_, hostile)
        assert done.returncode == 1
        assert "\x1b" not in done.stdout
        assert "\u202e" not in done.stdout
        assert r"\x1b[2J" in done.stdout or r"\\x1b[2J" in done.stdout


def test_a_terminal_without_unicode_gets_ascii() -> None:
    done = run(VIOLATED, PYTHONIOENCODING="ascii")

    assert done.returncode == 1
    assert done.stdout.isascii()
    assert "x epoch" in done.stdout


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    # The report goes to a file: what is left on the terminal is the progress bar.
    report = tmp_path / "report.txt"
    terminal, side = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "check", str(CLEAN), "-o", str(report)],
        stdin=subprocess.DEVNULL,
        stdout=side,
        stderr=side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    ) as process:
        os.close(side)
        shown = drained(terminal)
        status = process.wait(timeout=50)

    assert status == 0
    assert CLEAN.name in shown
    assert "%" in shown or "kB" in shown
    assert "clean: no findings" in report.read_text()
    assert run(CLEAN).stderr == ""


def drained(terminal: int) -> str:
    pieces: list[bytes] = []
    try:
        while piece := os.read(terminal, 4096):
            pieces.append(piece)
    except OSError:  # how Linux says that the other side is closed
        pass
    finally:
        os.close(terminal)
    return b"".join(pieces).decode(errors="replace")


# Documents.


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    done = run("--json", VIOLATED)
    assert done.stdout == run("--format", "json", VIOLATED).stdout
    return json.loads(done.stdout)


def test_the_json_document_has_the_form_that_is_promised(
    document: dict[str, Any],
) -> None:
    assert document.keys() == {
        "verdict",
        "counts",
        "files",
        "instances",
        "findings",
        "missing",
    }
    assert document["verdict"] == "violated"
    assert document["counts"] == {
        "files": 1,
        "spans": 32,
        "operations": 27,
        "unreadable": 0,
        "problems": 0,
        "findings": {"violation": 2, "averted": 1},
    }
    assert [each["verdict"] for each in document["instances"]] == ["violated", "clean"]


def test_each_finding_names_file_and_line_of_its_culprit(
    document: dict[str, Any],
) -> None:
    traces = VIOLATED.read_text().splitlines()
    for finding in document["findings"]:
        span = bytes.fromhex(finding["evidence"][0]["span"]["span_id"])
        ids = {
            each["span_id"]
            for each in json.loads(traces[finding["line"] - 1])["trace"]["spans"]
        }
        assert finding["file"] == str(VIOLATED)
        assert encoded(span) in ids


def encoded(raw: bytes) -> str:
    import base64

    return base64.b64encode(raw).decode()


def test_bad_lines_are_in_the_json_document(inconclusive: Path) -> None:
    (file,) = json.loads(run("--json", inconclusive).stdout)["files"]

    assert file["problems"] == [{"line": 10, "reason": "it ends too early"}]
    assert file["problem_count"] == 1


def test_junit_counts_failures_and_errors(inconclusive: Path, no_trace: Path) -> None:
    root = ET.fromstring(run("-f", "junit", VIOLATED, inconclusive, no_trace).stdout)

    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["files", "instances", "recording"]
    for suite in root:
        cases = suite.findall("testcase")
        assert int(suite.get("tests", "")) == len(cases)
        assert int(suite.get("failures", "")) == len(suite.findall("*/failure"))
        assert int(suite.get("errors", "")) == len(suite.findall("*/error"))
    failures = root.findall(".//failure")
    assert len(failures) == 1
    assert (failures[0].text or "").count("however, epoch") == 2
    assert {error.get("type") for error in root.findall(".//error")} == {
        "unreadable",
        "inconclusive",
    }
    assert root.find(".//system-out") is not None


def test_junit_of_a_clean_recording_passes() -> None:
    root = ET.fromstring(run("-f", "junit", CLEAN).stdout)

    assert (root.get("failures"), root.get("errors")) == ("0", "0")
    assert int(root.get("tests", "")) == 3


def test_sarif_has_what_the_standard_asks_for(no_trace: Path) -> None:
    log = json.loads(run("-f", "sarif", VIOLATED, no_trace).stdout)
    (tool_run,) = log["runs"]
    rules = tool_run["tool"]["driver"]["rules"]

    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-schema-2.1.0.json")
    assert [rule["id"] for rule in rules] == list(CATALOGUE)
    assert [result["level"] for result in tool_run["results"]] == levels(tool_run)
    assert sorted(levels(tool_run)) == ["error", "error", "note"]
    for result in tool_run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == VIOLATED.as_uri()
        assert place["region"]["startLine"] >= 1
    (invocation,) = tool_run["invocations"]
    assert invocation["executionSuccessful"] is False
    notices = invocation["toolExecutionNotifications"]
    assert notices[0]["message"]["text"] == "it is HTML or XML"
    assert {notice["level"] for notice in notices} == {"error", "warning"}


def levels(tool_run: dict[str, Any]) -> list[str]:
    level = {"violation": "error", "warning": "warning", "averted": "note"}
    return [level[each["properties"]["severity"]] for each in tool_run["results"]]


def test_sarif_places_are_uris_whatever_a_file_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd = Path("a b:#ü?.jsonl")
    odd.write_bytes(VIOLATED.read_bytes())
    log = json.loads(run("-f", "sarif", odd).stdout)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]

    assert place["artifactLocation"]["uri"] == "a%20b%3A%23%C3%BC%3F.jsonl"


def test_the_report_may_go_to_a_file(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    done = run("-f", "html", "-o", report, VIOLATED)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert "<html" in report.read_text("utf-8")
    assert "stale discard" in report.read_text("utf-8")


def test_a_report_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = run("-o", tmp_path / "missing" / "report", CLEAN)

    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"tenure: .*report cannot be written: No such file or directory\n", done.stderr
    )


@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_reader_that_goes_away_ends_the_check_quietly(format_: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "check", "-f", format_, str(VIOLATED)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=50) != 0


def test_a_large_report_says_how_much_it_leaves_out(
    tmp_path: Path, instances: Callable[[int], str]
) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(instances(30))
    done = run(path)

    assert done.returncode == 3
    assert "… and 10 more; --format json lists them" in done.stdout
    assert len(done.stdout.splitlines()) < 400


@pytest.fixture
def instances() -> Callable[[int], str]:
    """The clean recording, of as many instances, each without its first span."""
    text = "".join(CLEAN.read_text().splitlines(keepends=True)[1:])
    (name,) = set(re.findall(r"default@\w+", text))
    return lambda count: "".join(
        text.replace(name, f"{name}-{number}") for number in range(count)
    )


def test_what_shows_stays_and_what_does_not_is_spelt_out() -> None:
    assert plain("a — ü 漢") == "a — ü 漢"
    assert plain("a\x1b[1m\n\u202e\ud800") == r"a\x1b[1m\n\u202e\ud800"
