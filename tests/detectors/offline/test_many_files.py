"""Files of many processes are read as one recording, in whatever order they come."""

import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenure.detectors import Detector, Verdict
from tenure.detectors.offline import Report, check
from tenure.detectors.offline.checking import GLANCE
from tenure.detectors.offline.merging import MAX_OPEN
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    Operation,
    Outcome,
    Owner,
    Release,
    RunRef,
    WriteSet,
)

from .material import otlp, spans

EPOCHS = 400


def tenures(process: str, epochs: Sequence[int]) -> list[bytes]:
    """Lines of a process whose runs own the instance in turn with those of others."""
    found: list[bytes] = []
    for number, epoch in enumerate(epochs):
        run = RunRef("x/1", "press", "i", f"run-{epoch}", epoch, process)
        owner, seq = Owner(epoch, run.run_id), 3 * number
        operations: list[Operation] = [
            Claim(run=run, seq=seq + 1, owner=owner, superseded=epoch - 1 or None),
            Commit(run=run, seq=seq + 2, owner=owner, writes=WriteSet((("k", epoch),))),
            Release(run=run, seq=seq + 3, owner=owner, outcome=Outcome.COMPLETED),
        ]
        line = json.dumps(otlp(spans(operations), first=10 * epoch))
        found.append(line.encode() + b"\n")
    return found


def written(folder: Path, processes: int) -> list[Path]:
    """Files of processes that own one instance in turn, for `EPOCHS` epochs."""
    files: list[Path] = []
    for at in range(processes):
        epochs = range(1 + at, EPOCHS + 1, processes)
        files.append(folder / f"{at}.jsonl")
        files[-1].write_bytes(b"".join(tenures(f"p{at}", epochs)))
    return files


def judged(files: Sequence[Path]) -> Report:
    return check([str(file) for file in files], Detector(announce=()))


@pytest.mark.parametrize("processes", [1, 2, 8])
def test_processes_that_own_an_instance_in_turn_are_clean_over_hundreds_of_epochs(
    processes: int, tmp_path: Path
) -> None:
    files = written(tmp_path, processes)
    for order in (files, files[::-1]):
        report = judged(order)
        assert report.findings == ()
        assert report.missing == ()
        assert report.verdict is Verdict.CLEAN
        assert [file.name for file in report.files] == [str(one) for one in order]
        assert report.operations == 3 * EPOCHS


def test_a_recording_that_was_cut_into_pieces_is_read_from_its_first_piece(
    tmp_path: Path,
) -> None:
    lines = tenures("p", range(1, EPOCHS + 1))
    files = [tmp_path / f"{at}.jsonl" for at in range(4 * MAX_OPEN)]
    size = -(-len(lines) // len(files))
    for at, file in enumerate(files):
        file.write_bytes(b"".join(lines[at * size : (at + 1) * size]))
    report = judged(files[::-1])

    assert report.operations == 3 * EPOCHS
    # Those behind the last line are empty: of them nothing was lost, for all we know.
    assert all(one.endswith("that cannot be read") for one in report.missing)
    assert report.findings == ()


def test_how_far_reading_is_never_goes_back(tmp_path: Path) -> None:
    files = written(tmp_path, 3)
    told: dict[str, list[int]] = {str(file): [] for file in files}
    check(told, Detector(announce=()), on_progress=lambda at, n: told[at].append(n))

    for file in files:
        assert told[str(file)] == sorted(set(told[str(file)]))
        assert told[str(file)][-1] == file.stat().st_size


def test_a_file_in_which_no_span_comes_soon_is_read_all_the_same(
    tmp_path: Path,
) -> None:
    files = written(tmp_path, 2)
    late = files[1].read_bytes()
    files[1].write_bytes(b'{"resourceLogs":[]}\n' * (GLANCE // 10) + late)
    report = judged(files)

    assert report.operations == 3 * EPOCHS
    assert report.verdict is Verdict.CLEAN


def test_only_so_many_files_are_open_at_once(tmp_path: Path) -> None:
    epochs = range(1, 4 * MAX_OPEN + 1)
    files = [tmp_path / f"{epoch}.jsonl" for epoch in epochs]
    for epoch, file in zip(epochs, files, strict=True):
        # All of them reach from the beginning to the end.
        last = EPOCHS + epoch
        lines = tenures(f"p{epoch}", [epoch, last])
        file.write_bytes(b"".join(lines))
    most = 0

    def look(_name: str, _read: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/dev/fd")))

    before = len(os.listdir("/dev/fd"))
    report = check(map(str, files), Detector(announce=()), on_progress=look)

    assert report.operations == 6 * len(files)
    assert before < most <= before + MAX_OPEN + 1


def test_what_can_be_read_once_only_is_read_once(tmp_path: Path) -> None:
    files = written(tmp_path, 2)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_bytes, args=(files[1].read_bytes(),))
    writing.start()
    report = judged([files[0], pipe])
    writing.join()

    assert report.operations == 3 * EPOCHS
    assert report.verdict is Verdict.CLEAN
