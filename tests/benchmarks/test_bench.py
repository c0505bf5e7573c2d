"""The benchmarks do the work that they claim to measure. Nothing is timed here."""

import asyncio
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "benchmarks"

CALLS = [
    "chain 20",
    "fan 2 --workers 3",
    "state 20 --keys 4",
    "runs 5 --steps 2",
    "concurrent 5 --steps 1",
    "traced 10",
]
OPTIONS = {
    "asyncio": [
        "checkpoint 5",
        "checkpoint 5 --opt memory=1",
        "traced 10 --opt spans=1 --opt attributes=6",
        "traced 5 --opt spans=0",
    ],
    "tenure": [
        "checkpoint 5",
        "checkpoint 5 --opt blocking=1",
        "checkpoint 5 --opt memory=1",
        "chain 20 --opt stream=1",
        "chain 20 --opt listen=1",
        "chain 40 --opt memory=1",
        "runs 40 --opt memory=1",
        "state 20 --opt held=50",
        "traced 10 --opt detail=1",
        "traced 10 --opt detail=2",
        "traced 10 --opt detect=1",
    ],
}

pytestmark = pytest.mark.skipif(
    not SCRIPTS.exists(), reason="benchmarks are not a part of the wheel"
)


@pytest.fixture(autouse=True)
def scripts_in_reach(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let scripts be imported as they import each other."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    names = {file.stem for file in SCRIPTS.glob("*.py")}
    for name in names & (set(sys.modules) - before):
        del sys.modules[name]


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


def measured(peer: str, command: str) -> dict[str, Any]:
    harness, script = load("harness"), load(f"bench_{peer}")
    request = harness.parse(script.PEER, [*command.split(), "--rounds", "2"])
    return asyncio.run(harness.measure(script.PEER, request))


@pytest.mark.parametrize("command", [*CALLS, *OPTIONS["asyncio"]])
def test_bare_asyncio_does_the_work(command: str) -> None:
    assert measured("asyncio", command)["ok"] is True


@pytest.mark.parametrize("command", [*CALLS, *OPTIONS["tenure"]])
def test_tenure_does_the_work(command: str) -> None:
    assert measured("tenure", command)["ok"] is True


@pytest.mark.parametrize("command", CALLS[:-1])
def test_agent_framework_does_the_work(command: str) -> None:
    pytest.importorskip("agent_framework")
    assert measured("agent_framework", command)["ok"] is True


def test_both_peers_of_the_traced_case_emit_equally_many_spans_a_superstep() -> None:
    by_hand = measured("asyncio", "traced 10")["spans"]
    by_tenure = measured("tenure", "traced 10")["spans"]
    assert (by_hand, by_tenure) == (31, 32)


def test_a_result_that_is_wrong_is_not_ok() -> None:
    harness = load("harness")

    def lazy(request: Any) -> Any:
        async def go() -> int:
            return 0

        return harness.Prepared(go=go, units=request.n, check=lambda got: got == 3)

    peer = harness.Peer("lazy", None, {"chain": lazy})
    record = asyncio.run(harness.measure(peer, harness.Request("chain", 3)))
    assert record["ok"] is False


def test_memory_that_settles_is_no_growth_and_memory_that_grows_is() -> None:
    harness = load("harness")
    settled, growing = harness.MemoryProbe(), harness.MemoryProbe()
    settled.samples = [10.0, 20.0, 20.0, 19.0, 20.0]
    growing.samples = [10.0, 11.0, 12.0, 13.0, 14.0]
    assert settled.growth() == 0
    assert growing.growth() == 3


def test_the_probe_sees_memory_that_the_work_keeps() -> None:
    probe = load("harness").MemoryProbe()
    kept: list[bytes] = []
    for _ in range(10):
        probe.mark()
        kept.append(b"x" * 2**23)
    assert probe.growth() > 30


def test_every_measurement_of_the_matrix_is_one_that_its_peer_understands() -> None:
    harness, matrix = load("harness"), load("matrix")
    pytest.importorskip("agent_framework")
    for row in matrix.MATRIX:
        for spec in row.specs:
            script = load(matrix.SCRIPTS[spec.peer].removesuffix(".py"))
            request = harness.parse(script.PEER, spec.command.split())
            assert request.case in script.PEER.cases


def records(label: str, *pairs: tuple[str, str, float]) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "peer": peer,
            "command": command,
            "repetition": place // 2,
            "cpu_us": figure,
            "ok": True,
            "calibration_ms": 3.0,
            "python": "3.11.7",
            "version": "1",
        }
        for place, (peer, command, figure) in enumerate(pairs)
    ]


def test_a_ratio_is_the_median_of_the_ratios_of_neighbours_in_time() -> None:
    matrix, report = load("matrix"), load("report")
    row = matrix.MATRIX[0]
    floor = (row.floor.peer, row.floor.command)
    subject = (row.subject.peer, row.subject.command)
    found = report.lines(
        records(
            row.label,
            (*floor, 10.0),
            (*subject, 20.0),
            (*floor, 100.0),
            (*subject, 140.0),
            (*floor, 1.0),
            (*subject, 1.2),
        )
    )
    (line,) = found
    assert (line.low, line.ratio, line.high) == pytest.approx((1.2, 1.4, 2.0))
    assert line.met is True


def test_a_target_that_is_missed_is_marked_and_a_failure_is_named() -> None:
    matrix, report = load("matrix"), load("report")
    row = matrix.MATRIX[0]
    made = records(
        row.label,
        (row.floor.peer, row.floor.command, 1.0),
        (row.subject.peer, row.subject.command, row.target + 1),
    )
    made.append({
        "label": row.label,
        "peer": "tenure",
        "command": "chain 1",
        "repetition": 0,
        "ok": False,
        "note": "it broke",
    })
    (line,) = report.lines(made)
    assert line.met is False
    assert line.failures == ("tenure chain 1: it broke",)
    assert "\N{BALLOT X}" in report.markdown([line], made)


def test_the_page_has_the_markers_between_which_tables_are_put() -> None:
    run, report = load("run"), load("report")
    page = run.PAGE.read_text(encoding="utf-8")
    for name in ("in short", "table"):
        page = report.put_between(page, name, f"what is new in {name}")
    assert "what is new in in short" in page
    assert "what is new in table" in page
    with pytest.raises(ValueError, match="no markers"):
        report.put_between(page, "elsewhere", "")


def called(script: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(SCRIPTS / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_script_prints_one_line_of_json() -> None:
    done = called("bench_tenure.py", "chain", "10")
    (line,) = done.stdout.splitlines()
    record = json.loads(line)
    assert done.returncode == 0
    assert (record["peer"], record["case"], record["ok"]) == ("tenure", "chain", True)


@pytest.mark.parametrize(
    ("script", "arguments", "remedy"),
    [
        ("bench_tenure.py", "chain none", "is not a number from 1"),
        ("bench_tenure.py", "chain 0", "is not a number from 1"),
        ("bench_tenure.py", "chain 5 --opt steam=1", "tenure knows stream"),
        ("bench_tenure.py", "chain 5 --opt stream=yes", "write stream=NUMBER"),
        ("bench_asyncio.py", "dance 5", "invalid choice"),
        ("run.py", "--only dance", "known are chain"),
        ("run.py", "--write --quick", "takes the whole matrix"),
        ("run.py", "--table nowhere.jsonl", "No such file"),
    ],
)
def test_bad_usage_is_explained_without_a_traceback(
    script: str, arguments: str, remedy: str
) -> None:
    done = called(script, *arguments.split())
    assert done.returncode == 2
    assert remedy in done.stderr
    assert "Traceback" not in done.stderr


def test_one_case_can_be_measured_from_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    done = called(
        "run.py", "--only", "listen", "--quick", "--quiet", "0", "--out", str(out)
    )
    assert done.returncode == 0, done.stderr
    assert "listen" in done.stdout
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [record["peer"] for record in found] == ["asyncio", "tenure"]
    again = called("run.py", "--table", str(out))
    assert again.stdout == done.stdout
