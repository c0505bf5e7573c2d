"""Measure how much the detector still finds when telemetry is lost, and what it costs.

    python benchmarks/soundness.py                    print the tables
    python benchmarks/soundness.py --write            put them into docs/soundness.md
    python benchmarks/soundness.py --json             memory of one million operations

Random histories of the model engines in tests/detectors/models are damaged and judged;
what is called certain is compared with what the model knows.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "detectors"))

from models.engine import Place, Telling, place  # noqa: E402
from models.judging import certain, detect, is_true  # noqa: E402
from models.shared_map import SharedMap  # noqa: E402
from models.wire import Wire  # noqa: E402

from tenure.detectors import CATALOGUE, Certainty, Detector, Verdict  # noqa: E402
from tenure.instrumentation.operations import (  # noqa: E402
    NO_WRITES,
    Claim,
    Commit,
    Discard,
    DiscardCause,
    Execute,
    Operation,
    Outcome,
    Owner,
    Release,
    RunRef,
    SuperstepEnd,
    SuperstepStart,
    WriteSet,
)

PAGE = ROOT / "docs" / "soundness.md"
LOSSES = (0.0, 0.01, 0.05, 0.2)
WINDOWS = (0, 5)
LOST_WRITES = ("stale-discard/victim", "leaked-write")

# The prototype that the detector replaced, on histories of the same kind, with W and
# from history alone: certain and right, in order and out of order.
PROTOTYPE = {
    0.0: (1.00, 1.00, 1.00, 0.0),
    0.01: (0.99, 0.99, 0.75, 0.0),
    0.05: (0.95, 0.95, 0.27, 0.0),
    0.2: (0.80, 0.80, 0.03, 0.0),
}


@dataclass
class Tally:
    """What many histories of one configuration came to."""

    true: Counter[str] = field(default_factory=Counter)
    certain: Counter[str] = field(default_factory=Counter)
    suspected: Counter[str] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    judged: int = 0
    clean_over_a_gap: int = 0

    def share(self, found: Counter[str], *names: str) -> float:
        true = sum(self.true[name] for name in names)
        return sum(found[name] for name in names) / true if true else float("nan")


def measure(wire: Wire, telling: Telling, histories: int) -> Tally:
    """Play, damage, judge and count."""
    tally = Tally()
    for seed in range(histories):
        random = Random(seed)
        engine = SharedMap(random, telling, processes=1)
        # Every other history is of runs that mostly keep their place.
        engine.play(150, mild=seed % 2 == 0)
        arrived = wire.carry(engine.told, random)
        detector = detect(arrived)
        proven = certain(detector)
        tally.judged += len(proven)
        tally.wrong += sum(not is_true(one, engine) for one in proven)
        newest = max((one.seq or 0 for one in arrived), default=0)
        if detector.verdict is Verdict.CLEAN and len(arrived) < newest:
            tally.clean_over_a_gap += 1
        count(engine, detector, {place(one) for one in arrived}, tally)
    return tally


def count(
    engine: SharedMap, detector: Detector, arrived: set[Place], tally: Tally
) -> None:
    """Count the operations that are to blame, and how many of them were found."""
    found: dict[object, bool] = {}
    for one in detector.findings:
        where = (one.anomaly, place(one.culprit))
        right = one.certainty is Certainty.CERTAIN and is_true(one, engine)
        found[where] = found.get(where, False) or right
    for truth in {(one.anomaly, one.culprit): one for one in engine.truth}.values():
        where = (truth.anomaly, truth.culprit)
        for name in (truth.anomaly, f"{truth.anomaly}/{truth.variant}"):
            tally.true[name] += 1
            tally.arrived[name] += truth.culprit in arrived
            tally.certain[name] += found.get(where, False)
            tally.suspected[name] += where in found


def percent(share: float) -> str:
    return "-" if share != share else f"{100 * share:.0f} %"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def recall(histories: int) -> tuple[str, list[str]]:
    """Return all tables, and what went wrong."""
    full, bare = Telling(), Telling(owner=False, writes=False)
    tallies = {
        (name, loss, window): measure(Wire(loss, 0.0, window), telling, histories)
        for name, telling in (("full", full), ("bare", bare))
        for loss in LOSSES
        for window in WINDOWS
    }
    true = tallies["full", 0.0, 0].true
    rows = []
    for loss in LOSSES:
        ours = [
            percent(tallies["full", loss, window].share(one.certain, *LOST_WRITES))
            for window in WINDOWS
            for one in [tallies["full", loss, window]]
        ]
        before = PROTOTYPE[loss]
        came = sum(tallies["full", loss, 5].arrived[name] for name in LOST_WRITES)
        right = sum(tallies["full", loss, 5].certain[name] for name in LOST_WRITES)
        rows.append([
            percent(loss),
            f"**{ours[0]}**",
            f"**{ours[1]}**",
            percent(right / came),
            *(percent(share) for share in before),
        ])
    head = [
        "loss",
        "in order",
        "out of order",
        "same, of what arrived",
        "prototype, with W",
        "same, out of order",
        "prototype, history only",
        "same, out of order",
    ]
    judged = sum(one.judged for one in tallies.values())
    wrong = sum(one.wrong for one in tallies.values())
    clean = sum(one.clean_over_a_gap for one in tallies.values())
    lost = sum(true[name] for name in LOST_WRITES)
    parts = [
        f"{histories} histories for each of {len(tallies)} configurations; out of "
        "order means that operations overtake each other within a window of 5.\n"
        f"Findings called certain: {judged:,}, of which wrong: **{wrong}**. Histories "
        f"with a gap that were called clean: **{clean}**.",
        "### Lost and leaked writes: certain and right",
        f"{lost:,} true anomalies for each configuration (stale discards with a "
        "victim, and leaked writes).",
        table(head, rows),
        "### Every anomaly: certain and right",
        every(tallies, "full", "certain"),
        "### Without O and W on the operations",
        "Engines that tell neither who owned nor who staged. Certain and right, and in "
        "brackets found at any level.",
        every(tallies, "bare", "both"),
    ]
    failures = [
        text
        for bad, text in (
            (wrong, f"{wrong} findings were called certain and are wrong"),
            (clean, f"{clean} histories with a gap were called clean"),
            (lost < 2 * histories, "too few anomalies to say anything"),
        )
        if bad
    ]
    return "\n\n".join(parts), failures


def every(tallies: dict, telling: str, which: str) -> str:
    head = ["anomaly", "true"] + [
        f"{percent(loss)}{', out of order' if window else ''}"
        for window in WINDOWS
        for loss in LOSSES
    ]
    rows = []
    for slug in CATALOGUE:
        true = tallies[telling, 0.0, 0].true[slug]
        if not true:
            continue
        row = [slug, f"{true:,}"]
        for window in WINDOWS:
            for loss in LOSSES:
                one = tallies[telling, loss, window]
                cell = percent(one.share(one.certain, slug))
                if which == "both":
                    cell += f" ({percent(one.share(one.suspected, slug))})"
                row.append(cell)
        rows.append(row)
    return table(head, rows)


# Memory.


def operations(instances: int, total: int) -> Iterator[Operation]:
    """Yield operations of many instances, one superstep of each in turn.

    Every fifth run is superseded in the middle and discards late.
    """
    lives = [instance_life(f"i{number}") for number in range(instances)]
    told = 0
    while told < total:
        for life in lives:
            for operation in next(life):
                yield operation
                told += 1
            if told >= total:
                return


def instance_life(name: str) -> Iterator[list[Operation]]:
    seq = 0
    stale: RunRef | None = None
    for epoch in range(1, sys.maxsize):
        run = RunRef("model/1", "press", name, f"{name}-{epoch}", epoch, "p")
        owner = Owner(epoch, run.run_id)

        def head(run: RunRef = run, owner: Owner = owner) -> dict:
            nonlocal seq
            seq += 1
            return {"run": run, "seq": seq, "owner": owner}

        superseded = None if stale is None else stale.epoch
        batch: list[Operation] = [Claim(**head(), superseded=superseded)]
        if stale is not None:
            late = {**head(), "run": stale}
            cause = DiscardCause.FINALIZER
            batch.append(Discard(**late, writes=NO_WRITES, cause=cause, fenced=True))
        for index in range(1, 4):
            batch.append(SuperstepStart(**head(), index=index))
            for executor in ("a", "b"):
                keys = WriteSet(((f"{executor}{index}", epoch),))
                batch.append(
                    Execute(
                        **head(),
                        executor=executor,
                        index=index,
                        reads=("shared",),
                        writes=keys,
                    )
                )
            writes = WriteSet(((f"a{index}", epoch), (f"b{index}", epoch)))
            batch.append(Commit(**head(), writes=writes, index=index))
            batch.append(SuperstepEnd(**head(), index=index))
            yield batch
            batch = []
        stale = run if epoch % 5 == 0 else None
        if stale is None:
            yield [Release(**head(), outcome=Outcome.COMPLETED)]


def resident() -> int:
    """Return what the process holds at its peak, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def memory(instances: int, total: int) -> dict[str, float]:
    """Feed many operations over many instances; return what that took."""
    for _ in operations(instances, total=instances * 20):
        pass  # What the histories themselves take is not the detector's.
    before = resident()
    # What was found is kept besides, as much of it as one asks for.
    detector = Detector(announce=(), max_instances=instances, max_findings=100)
    halfway = 0
    spent = 0.0
    batch: list[Operation] = []
    fed = 0
    for operation in operations(instances, total):
        batch.append(operation)
        if len(batch) < 1_000:
            continue
        began = time.perf_counter()
        for one in batch:
            detector.feed(one)
        spent += time.perf_counter() - began
        fed += len(batch)
        batch.clear()
        if not halfway and fed >= total // 2:
            halfway = resident()
    after = resident()
    return {
        "instances": instances,
        "operations": fed,
        "seconds": round(spent, 2),
        "operations_per_second": round(fed / spent),
        "kilobytes_per_instance": round((after - before) / instances / 1024, 2),
        "growth_after_half": round((after - halfway) / max(halfway - before, 1), 3),
        "findings": len(detector.findings),
    }


def elsewhere(instances: int, total: int) -> dict[str, float]:
    """Measure memory in a process of its own: a peak never comes down again."""
    script = [sys.executable, __file__, "memory", "--json"]
    sizes = ["--instances", str(instances), "--operations", str(total)]
    done = subprocess.run([*script, *sizes], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def costs() -> str:
    """Return the table of what a detector costs."""
    rows = []
    for instances in (10_000, 1_000, 200):
        found = elsewhere(instances, 1_000_000)
        rows.append([
            f"{instances:,}",
            f"{found['operations'] / instances:,.0f}",
            f"{found['kilobytes_per_instance']:.1f} kB",
            f"{100 * found['growth_after_half']:.0f} %",
            f"{found['operations_per_second']:,.0f}",
        ])
    head = [
        "instances",
        "operations of each",
        "memory for each",
        "grown in the second half, by",
        "operations a second",
    ]
    return table(head, rows)


def put(page: str, title: str, text: str) -> str:
    begin, end = f"<!-- generated: {title} -->", "<!-- end -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["recall", "memory"])
    parser.add_argument("--histories", type=int, default=400)
    parser.add_argument("--operations", type=int, default=1_000_000)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    parser.add_argument("--json", action="store_true", help="memory, in this process")
    asked = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8") if asked.write else ""
    failures: list[str] = []
    if asked.json:
        print(json.dumps(memory(asked.instances, asked.operations)))
        return 0
    if asked.what != "recall":
        text = costs()
        print(text)
        page = put(page, "cost", text) if asked.write else ""
    if asked.what != "memory":
        text, failures = recall(asked.histories)
        print(text)
        page = put(page, "recall", text) if asked.write else ""
    if asked.write:
        PAGE.write_text(page, encoding="utf-8")
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
