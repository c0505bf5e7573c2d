"""Every format says the same, whatever it is called and however it is packed."""

from pathlib import Path

import pytest

from tenure.detectors import Detector, Verdict
from tenure.detectors.offline import check, size_of

from .material import FORMATS, checked, clean, lines, outcome, story

DATA = Path(__file__).parent / "data"
BACKENDS = {
    "sdk-http.binpb": "OTLP protobuf",
    "rotel.binpb": "OTLP protobuf",
    "oteltap.ndjson": "OTLP JSON",
    "mlflow.jsonl": "OTLP JSON",
}
"""What four programs made of one run of `tenure demo`, and how they wrote it."""


@pytest.mark.parametrize("name", FORMATS)
def test_a_violation_is_found_in(name: str, tmp_path: Path) -> None:
    expected = checked(tmp_path, lines(story()))
    report = checked(tmp_path, FORMATS[name](story()))

    assert outcome(report) == outcome(expected)
    assert report.verdict is Verdict.VIOLATED
    assert (report.problems, report.unreadable) == (0, 0)
    (finding,) = report.findings
    assert (finding.anomaly, finding.keys) == ("stale-discard", ("k",))


@pytest.mark.parametrize("name", FORMATS)
def test_a_complete_recording_is_clean_in(name: str, tmp_path: Path) -> None:
    report = checked(tmp_path, FORMATS[name](clean()))

    assert (report.verdict, report.missing) == (Verdict.CLEAN, ())
    assert (report.spans, report.operations, report.problems) == (2, 3, 0)


@pytest.mark.parametrize("name", FORMATS)
def test_spans_are_referred_to_by_their_full_ids_in(name: str, tmp_path: Path) -> None:
    (finding,) = checked(tmp_path, FORMATS[name](story())).findings
    span = finding.culprit.span

    assert span is not None
    expected = (1, 1) if "joined" in name or name in ONE_EACH else (3, 3)
    assert (span.trace_id, span.span_id) == expected


ONE_EACH = ("protobuf, framed", "protobuf, delimited")
"""Messages of one span each, which all are number 1."""


@pytest.mark.parametrize(("name", "format_"), BACKENDS.items())
def test_traces_made_by_real_backends_prove_the_race(name: str, format_: str) -> None:
    report = check([str(DATA / name)], Detector(announce=()))

    assert report.files[0].formats == (format_,)
    assert (report.spans, report.operations, report.unreadable) == (32, 27, 0)
    assert report.verdict is Verdict.VIOLATED
    assert report.finding_counts == {"violation": 2, "averted": 1}
    assert {finding.anomaly for finding in report.findings} == {
        "stale-discard",
        "leaked-write",
    }
    assert all(finding.culprit.span is not None for finding in report.findings)
    verdicts = {each.engine.partition("/")[0]: each for each in report.instances}
    assert verdicts["agent-framework"].verdict is Verdict.VIOLATED
    assert verdicts["agent-framework"].missing == verdicts["tenure"].missing == ()


def test_the_file_exporter_of_the_sdk_is_read_as_clean() -> None:
    report = check([str(DATA / "sdk-json-file.jsonl")], Detector(announce=()))

    assert (report.verdict, report.missing) == (Verdict.CLEAN, ())
    assert (report.spans, report.operations) == (10, 12)


def test_the_receiver_that_also_prints_a_greeting_gets_it_named() -> None:
    name = str(DATA / "oteltap.ndjson")
    report = check([name], Detector(announce=()))

    (problem,) = report.files[0].problems
    assert str(problem) == (
        f"{name}, line 1: it is not JSON: expecting value at column 1"
    )


def test_files_are_parts_of_one_recording(tmp_path: Path) -> None:
    whole = lines(story()).splitlines(keepends=True)
    apart = checked(tmp_path, *whole)

    assert apart.verdict is Verdict.VIOLATED
    assert apart.missing == ()
    assert len(apart.files) == len(whole)


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    once = checked(tmp_path, lines(story()))
    path = str(tmp_path / "0.trace")
    twice = check([path, path], Detector(announce=()))

    assert twice.findings == once.findings
    assert twice.spans == 2 * once.spans


def test_files_may_come_in_different_formats(tmp_path: Path) -> None:
    first, second, third = story()
    report = checked(
        tmp_path,
        FORMATS["gzip"]([third]),
        FORMATS["protobuf"]([second]),
        FORMATS["Jaeger UI"]([first]),
    )

    assert (report.verdict, report.missing) == (Verdict.VIOLATED, ())
    assert [file.formats for file in report.files] == [
        ("OTLP JSON",),
        ("OTLP protobuf",),
        ("Jaeger UI JSON",),
    ]


def test_a_file_may_mix_formats_and_signals(tmp_path: Path) -> None:
    first, second, third = story()
    content = b"\n".join([
        FORMATS["lines"]([first]),
        b'{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m"}]}]}]}',
        FORMATS["Jaeger UI, pretty"]([second]),
        b'{"resourceLogs":[]}',
        FORMATS["api/v3"]([third]),
        b"{}",
    ])
    report = checked(tmp_path, content)

    assert (report.verdict, report.problems) == (Verdict.VIOLATED, 0)
    assert report.files[0].formats == (
        "OTLP JSON",
        "Jaeger UI JSON",
        "Jaeger api/v3 JSON",
    )


def test_a_recording_of_something_else_is_inconclusive(tmp_path: Path) -> None:
    content = b'{"resourceMetrics":[]}\n'
    report = checked(tmp_path, content)

    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.missing == ("any operation",)
    assert report.refused == ()


def test_the_size_of_standard_input_and_of_what_is_not_there_is_unknown(
    tmp_path: Path,
) -> None:
    assert size_of("-") is None
    assert size_of(str(tmp_path / "missing")) is None
    assert size_of(str(tmp_path)) is None
    (tmp_path / "file").write_bytes(b"123")
    assert size_of(str(tmp_path / "file")) == 3
