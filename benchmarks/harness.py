"""Measure one case of one peer: its command line, the clock and the JSON line.

A peer is a script `bench_X.py` with cases named alike, so that one command measures the
same work anywhere. A case prepares what is measured and says how to check its result:
whoever silently does less work is not fast but wrong. Times are of the processor, all
threads together, because other programs share the machine.
"""

import argparse
import asyncio
import cProfile
import gc
import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

CASES: Mapping[str, str] = {
    "chain": "N supersteps, one executor in each",
    "fan": "N runs that fan out to --workers executors and collect their answers",
    "state": "N supersteps that each write and read --keys state keys",
    "runs": "N runs of --steps supersteps, one after the other",
    "concurrent": "N runs of --steps supersteps, all at once",
    "traced": "chain, with an OpenTelemetry SDK that keeps every span",
    "checkpoint": "chain that saves 1 KB of state in each superstep",
}


PAD = 1000
"""How many characters the state of the case `checkpoint` has."""


def disk() -> Path:
    """Return a directory that is on a disk: a temporary one may be in memory."""
    place = Path(__file__).resolve().parent.parent / "build"
    place.mkdir(exist_ok=True)
    return place


class UnsupportedError(Exception):
    """The peer cannot do this here; the reason goes into the JSON line."""


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of a peer's script asks for; the fields are its arguments."""

    case: str
    n: int
    workers: int = 10
    keys: int = 10
    steps: int = 3
    warm: int = 50
    rounds: int = 1
    opts: Mapping[str, str] = field(default_factory=dict[str, str])
    profile: str = ""

    def number(self, option: str, default: int) -> int:
        """Return an option that is a number."""
        return int(self.opts.get(option, default))


@dataclass(slots=True, kw_only=True)
class Prepared:
    """A case that is ready to be measured.

    Attributes:
        go: What is timed, once a round.
        units: How many supersteps or runs one round does.
        check: Says whether the result of a round is right; not timed.
        unit: What `units` counts.
        note: What a reader of the numbers has to know.
        before: Awaited once before the first round; not timed.
        after: Called at the end of each round, in its time: flushes, for example.
        close: Called when all is done.
        spans: Called after each round: how many spans it made.
        expected_spans: How many it must have made.
        probe: Where the case takes note of its memory, if it does.
    """

    go: Callable[[], Awaitable[Any]]
    units: int
    check: Callable[[Any], bool]
    unit: str = "superstep"
    note: str = ""
    before: Callable[[], Awaitable[object]] | None = None
    after: Callable[[], object] | None = None
    close: Callable[[], object] | None = None
    spans: Callable[[], int] | None = None
    expected_spans: int | None = None
    probe: "MemoryProbe | None" = None


Case = Callable[[Request], Prepared]


@dataclass(frozen=True, slots=True)
class Peer:
    """Somebody who does the cases.

    Attributes:
        name: What tables call it.
        distribution: Whose version is reported; `None` for the interpreter's.
        cases: What it can do, by name.
        options: What `--opt` may say, each with its explanation.
    """

    name: str
    distribution: str | None
    cases: Mapping[str, Case]
    options: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def version(self) -> str:
        """Version of what is measured."""
        if self.distribution is None:
            return platform.python_version()
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return "unknown"


class MemoryProbe:
    """Samples of the resident memory, taken from inside the work itself."""

    def __init__(self) -> None:
        self.samples: list[float] = []

    def mark(self) -> None:
        """Take a sample."""
        self.samples.append(resident_mb())

    def growth(self) -> float | None:
        """Megabytes by which memory grew after the first fifth of the samples."""
        settled = self.samples[len(self.samples) // 5 :]
        return round(max(settled) - settled[0], 3) if settled else None


def resident_mb() -> float:
    """Return the memory that this process has in use, in megabytes."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return peak_mb()
    pages = int(statm.read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak_mb() -> float:
    """Return the most memory that this process ever had in use, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def calibrate() -> float:
    """Return milliseconds of some fixed work: tells a slow machine from a slow peer."""
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        counts: dict[int, int] = {}
        for number in range(50_000):
            counts[number & 511] = counts.get(number & 511, 0) + number
        best = min(best, time.perf_counter() - started)
    return round(best * 1e3, 3)


async def measure(peer: Peer, request: Request) -> dict[str, Any]:
    """Warm up, then measure all rounds of a case.

    Args:
        peer: Who does it.
        request: What is asked for.

    Returns:
        The record: times are medians of the rounds, `ok` says that every result was
        right.

    Raises:
        UnsupportedError: The peer cannot do it.
    """
    case = peer.cases.get(request.case)
    if case is None:
        raise UnsupportedError(f"{peer.name} has no case {request.case}")
    if request.warm:
        await _warm_up(case, request)
    prepared = case(request)
    if prepared.before is not None:
        await prepared.before()
    calibration = calibrate()
    resting = resident_mb()
    rounds = [await _round(prepared) for _ in range(request.rounds)]
    if request.profile:
        await _profile(prepared, request.profile)
    if prepared.close is not None:
        prepared.close()
    cpu = [one.cpu / prepared.units * 1e6 for one in rounds]
    wall = [one.wall / prepared.units * 1e6 for one in rounds]
    return {
        "ok": all(one.right for one in rounds),
        "unit": prepared.unit,
        "units": prepared.units,
        "rounds": request.rounds,
        "cpu_us": round(statistics.median(cpu), 3),
        "cpu_us_min": round(min(cpu), 3),
        "wall_us": round(statistics.median(wall), 3),
        "calibration_ms": calibration,
        "rss_mb": round(resting, 1),
        "peak_rss_mb": round(peak_mb(), 1),
        "growth_mb": None if prepared.probe is None else prepared.probe.growth(),
        "spans": rounds[-1].spans,
        "note": prepared.note or None,
    }


async def _warm_up(case: Case, request: Request) -> None:
    size = min(request.warm, request.n)
    prepared = case(replace(request, n=size))
    if prepared.before is not None:
        await prepared.before()
    await _round(prepared)
    if prepared.close is not None:
        prepared.close()


@dataclass(frozen=True, slots=True)
class _Round:
    cpu: float
    wall: float
    right: bool
    spans: int | None


async def _round(prepared: Prepared) -> _Round:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    result = await prepared.go()
    if prepared.after is not None:
        prepared.after()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    spans = None if prepared.spans is None else prepared.spans()
    right = bool(prepared.check(result)) and spans == prepared.expected_spans
    return _Round(cpu, wall, right, spans)


async def _profile(prepared: Prepared, file: str) -> None:
    profile = cProfile.Profile()
    gc.collect()
    profile.enable()
    await prepared.go()
    profile.disable()
    profile.dump_stats(file)


def parse(peer: Peer, arguments: Sequence[str] | None = None) -> Request:
    """Read the command line of a peer's script."""
    parser = argparse.ArgumentParser(
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=f"Measure one case of {peer.name} and print one line of JSON.",
        epilog=_explanations(peer),
        allow_abbrev=False,
    )
    count = counting_from(1)
    parser.add_argument("case", metavar="CASE", choices=sorted(CASES), help="see below")
    parser.add_argument("n", metavar="N", type=count, help="how many of them")
    parser.add_argument(
        "--workers", type=count, default=10, metavar="W", help="fan: how wide (10)"
    )
    parser.add_argument(
        "--keys", type=count, default=10, metavar="K", help="state: how many keys (10)"
    )
    parser.add_argument(
        "--steps", type=count, default=3, metavar="S", help="supersteps of a run (3)"
    )
    parser.add_argument(
        "--warm",
        type=counting_from(0),
        default=50,
        metavar="M",
        help="size of the warm-up, which is not timed; 0 for none (50)",
    )
    parser.add_argument(
        "--rounds",
        type=count,
        default=1,
        metavar="R",
        help="do it R times and report the median (1)",
    )
    parser.add_argument(
        "--opt", action="append", default=[], metavar="NAME=VALUE", help="see below"
    )
    parser.add_argument(
        "--profile",
        default="",
        metavar="FILE",
        help="do one more round under cProfile and write its statistics",
    )
    given = vars(parser.parse_args(arguments))
    given["opts"] = _read_options(peer, given.pop("opt"), parser)
    return Request(**given)


def counting_from(least: int) -> Callable[[str], int]:
    """Return what reads a number of at least `least` from a command line."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least}")
        return number

    return read


def _read_options(
    peer: Peer, given: Sequence[str], parser: argparse.ArgumentParser
) -> dict[str, str]:
    options: dict[str, str] = {}
    for option in given:
        name, _, value = option.partition("=")
        if name not in peer.options:
            known = ", ".join(peer.options) or "none"
            parser.error(f"--opt {option}: {peer.name} knows {known}")
        if not value.isdecimal():
            parser.error(f"--opt {option}: write {name}=NUMBER")
        options[name] = value
    return options


def _explanations(peer: Peer) -> str:
    lines = ["cases"]
    lines += [
        f"  {name:<11} {CASES[name]}"
        if name in peer.cases
        else f"  {name:<11} not for {peer.name}"
        for name in CASES
    ]
    if peer.options:
        lines += ["", "options, as --opt NAME=NUMBER"]
        lines += [f"  {name:<11} {text}" for name, text in peer.options.items()]
    return "\n".join(lines)


def unsupported(peer: str, reason: str) -> str:
    """Return the JSON line of a measurement that cannot be made."""
    return json.dumps({"peer": peer, "ok": None, "note": reason})


def main(peer: Peer, arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for and print the record."""
    request = parse(peer, arguments)
    asked = {
        "peer": peer.name,
        "version": peer.version,
        "python": platform.python_version(),
        "case": request.case,
        "n": request.n,
        "opts": dict(request.opts) or None,
    }
    try:
        record = asyncio.run(measure(peer, request))
    except UnsupportedError as exc:
        record = {"ok": None, "note": str(exc)}
    except KeyboardInterrupt:
        return 130
    found = {**asked, **record}
    line = {key: value for key, value in found.items() if value is not None}
    print(json.dumps({**line, "ok": found["ok"]}), flush=True)
    return 1 if found["ok"] is False else 0
