"""Measure everything, interleaved, one process at a time, and print the table."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import report
from harness import counting_from
from matrix import MATRIX, NEIGHBOUR, SAVING_NEIGHBOUR, SCRIPTS, Row, Spec

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = ROOT / "docs" / "benchmarks.md"
RECORDS = ROOT / "build" / "benchmarks.jsonl"
TIMEOUT = 300


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; return the exit status."""
    parser = _parser()
    given = parser.parse_args(arguments)
    rows = _rows(given.only, parser)
    if given.write and (given.only or given.quick):
        parser.error("--write takes the whole matrix: leave out --only and --quick")
    if given.write and not PAGE.exists():
        parser.error(f"--write: there is no {PAGE.relative_to(ROOT)}")
    try:
        records = _read(given.table, parser) if given.table else _record(rows, given)
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except OSError as exc:
        parser.error(str(exc))
    found = report.lines(records)
    print(report.text(found))
    for failure in (one for line in found for one in line.failures):
        _say(f"failed: {failure}")
    if given.write:
        _write(found, records)
    return _status(found, check=given.check)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Measure what tenure costs, as ratios to bare asyncio in the same run.\n"
            "Takes some minutes; a machine that does nothing else gives steadier "
            "numbers."
        ),
        epilog="cases\n"
        + "\n".join(f"  {row.label:<14} {row.title}" for row in MATRIX)
        + "\n\nexit status: 0; 1 if a result was wrong, or, with --check, a target was"
        "\nmissed; 2 for bad usage",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--repeats",
        type=counting_from(1),
        default=5,
        metavar="R",
        help="repetitions; ratios are medians over them (5)",
    )
    parser.add_argument(
        "--only", default="", metavar="CASE,…", help="these cases only; see below"
    )
    parser.add_argument(
        "--quick", action="store_true", help="one repetition, to see that it works"
    )
    parser.add_argument(
        "--alone", action="store_true", help=f"leave out {NEIGHBOUR}, which is slow"
    )
    parser.add_argument(
        "--quiet",
        type=counting_from(0),
        default=2,
        metavar="S",
        help="before each measurement wait up to S seconds for a quiet machine (2)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=RECORDS,
        metavar="FILE",
        help="where the records go, as JSON Lines (build/benchmarks.jsonl)",
    )
    parser.add_argument(
        "--table",
        type=Path,
        metavar="FILE",
        help="measure nothing: make the table of these records",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="put the tables into docs/benchmarks.md",
    )
    parser.add_argument(
        "--check", action="store_true", help="fail if a target is missed"
    )
    return parser


def _rows(only: str, parser: argparse.ArgumentParser) -> list[Row]:
    wanted = [label.strip() for label in only.split(",") if label.strip()]
    known = {row.label: row for row in MATRIX}
    for label in wanted:
        if label not in known:
            parser.error(f"--only {label}: known are {', '.join(known)}")
    return [row for row in MATRIX if not wanted or row.label in wanted]


def _read(file: Path, parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
        records = [json.loads(line) for line in lines if line.strip()]
    except OSError as exc:
        parser.error(f"--table {file}: {exc.strerror}")
    except ValueError as exc:
        parser.error(f"--table {file}: not JSON Lines ({exc})")
    if not records:
        parser.error(f"--table {file}: there is no record in it")
    return records


def _record(rows: Sequence[Row], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure `rows` and write each record as it comes."""
    repeats = 1 if given.quick else given.repeats
    plan = list(_plan(rows, repeats, alone=given.alone))
    records: list[dict[str, Any]] = []
    started = time.monotonic()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    with given.out.open("w", encoding="utf-8") as out:
        for place, (repetition, row, spec) in enumerate(plan, 1):
            passed = time.monotonic() - started
            _say(f"[{place}/{len(plan)}, {passed:.0f} s] {spec.peer} {spec.command}")
            busy = wait_for_quiet(given.quiet)
            record = {
                "label": row.label,
                "repetition": repetition,
                "busy": busy,
                "processors": os.cpu_count(),
                **measure(spec),
                "command": spec.command,
            }
            records.append(record)
            out.write(json.dumps(record) + "\n")
            out.flush()
    _say(f"records are in {given.out}")
    return records


def _plan(
    rows: Sequence[Row], repeats: int, *, alone: bool
) -> Iterator[tuple[int, Row, Spec]]:
    """Yield the measurements so that what is compared is close in time."""
    for repetition in range(repeats):
        for row in rows:
            for spec in row.specs:
                if not (alone and spec.peer in (NEIGHBOUR, SAVING_NEIGHBOUR)):
                    yield repetition, row, spec


def measure(spec: Spec) -> dict[str, Any]:
    """Measure in a process of its own; a failure is a record too."""
    python = interpreter_of(spec.peer)
    if python is None:
        return {"peer": spec.peer, "ok": None, "note": "it is not installed"}
    command = [python, str(HERE / SCRIPTS[spec.peer]), *spec.command.split()]
    failed = {"peer": spec.peer, "ok": False}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        return {**failed, "note": f"not done after {TIMEOUT} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {**failed, "note": (done.stderr or done.stdout).strip()[-300:]}
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def interpreter_of(peer: str) -> str | None:
    """Return what runs a peer: an environment of its own where it has one."""
    if peer != SAVING_NEIGHBOUR:
        return sys.executable
    own = ROOT / ".venvs" / peer / "bin" / "python"
    return str(own) if own.exists() else None


def wait_for_quiet(seconds: int, threshold: float = 0.25) -> float | None:
    """Wait until other programs leave the processors alone, but not for ever.

    Returns:
        The share of all processors in use at the end; `None` where it is unknown.
    """
    end = time.monotonic() + seconds
    while True:
        busy = _busy()
        if busy is None or busy <= threshold or time.monotonic() >= end:
            return busy


def _busy() -> float | None:
    before = _ticks()
    time.sleep(0.1)
    after = _ticks()
    if before is None or after is None or after[0] == before[0]:
        return None
    return round(1 - (after[1] - before[1]) / (after[0] - before[0]), 2)


def _ticks() -> tuple[int, int] | None:
    """Return all and idle ticks of the processors since the machine started."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    with stat.open(encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]


def _write(found: Sequence[report.Line], records: Sequence[dict[str, Any]]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    page = report.put_between(page, "in short", report.brief(found))
    page = report.put_between(page, "table", report.markdown(found, records))
    PAGE.write_text(page, encoding="utf-8")
    _say(f"wrote {PAGE.relative_to(ROOT)}")


def _status(found: Sequence[report.Line], *, check: bool) -> int:
    missed = [line for line in found if line.met is False]
    for line in missed:
        _say(f"missed: {line.row.label} {line.judged:.2f} > {line.row.target:g}")
    wrong = any(line.failures for line in found)
    return 1 if wrong or (check and missed) else 0


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
