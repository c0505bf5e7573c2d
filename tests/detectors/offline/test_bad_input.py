"""Bad input is named with its place, hides nothing that is good, and never raises."""

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.detectors import Detector, Verdict
from tenure.detectors.offline import Limits, Problem, Report, check

from .material import (
    FORMATS,
    checked,
    clean,
    framed,
    lines,
    otlp,
    otlp_span,
    protobuf,
    spans_of,
    story,
)

MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def problems(report: Report) -> list[tuple[int, str]]:
    return [
        (problem.line, problem.reason)
        for file in report.files
        for problem in file.problems
    ]


# Lines.

BAD_LINES = {
    "text": (b"Starting up", "it is not JSON: expecting value at column 1"),
    "a number": (b"42", "it is not an object of JSON"),
    "a torn line": (
        lines(story())[: lines(story()).index(b"\n") // 2],
        "it ends too early",
    ),
    "torn after a colon": (b'{"resourceSpans":', "it ends too early"),
    "torn inside a list of spans": (
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[',
        "it ends too early",
    ),
    "a missing comma": (
        b'{"resourceSpans":[] "x":1}',
        "it is not JSON: a comma was expected at column 21",
    ),
    "a missing colon": (b'{"a" 1}', "it is not JSON: a colon was expected at column 6"),
    "a key that is none": (b"{1:2}", "it is not JSON: a key was expected at column 2"),
    "a trailing comma": (b'{"a":1,}', "it is not JSON: a key was expected at column 8"),
    "a control character": (
        b'{"a":"\x01"}',
        "it is not JSON: invalid control character at column 7",
    ),
    "bytes that are not UTF-8": (b'{"a":"\xff"}', "it is not UTF-8"),
    "too many digits": (b'{"a":' + b"1" * 5000 + b"}", "a number has too many digits"),
    "deep nesting": (b"[" * 100_000, "it is nested too deeply"),
    "deep nesting in a span": (
        b'{"spans":[' + b'{"a":' * 100_000,
        "it is nested too deeply",
    ),
    "no spans": (b'{"user": "me"}', "there are no spans in it, only user"),
    "an answer of a backend": (
        b'{"data":null,"total":0,"errors":[{"code":404,"msg":"trace not found"}]}',
        "a backend answered: trace not found",
    ),
    "a span that is none": (b'{"spans":[17]}', "a span is not an object of JSON"),
}


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_line_is_named_and_does_not_hide_the_good_ones(
    name: str, tmp_path: Path
) -> None:
    bad, reason = BAD_LINES[name]
    good = lines(story()).splitlines(keepends=True)
    content = good[0] + bad + b"\n" + b"".join(good[1:])
    report = checked(tmp_path, content)

    assert problems(report) == [(2, reason)]
    assert report.spans == 3
    assert report.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("name", BAD_LINES)
def test_nothing_is_clean_over_a_bad_line(name: str, tmp_path: Path) -> None:
    report = checked(tmp_path, lines(clean()) + BAD_LINES[name][0])

    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.instances[0].verdict is Verdict.INCONCLUSIVE
    assert "cannot be read" in report.missing[0]
    assert report.refused == ()


@pytest.mark.parametrize("name", BAD_LINES)
def test_a_bad_first_line_does_not_hide_the_good_ones(
    name: str, tmp_path: Path
) -> None:
    report = checked(tmp_path, BAD_LINES[name][0] + b"\n" + lines(story()))

    # Control characters in the first bytes mean that a file is no text.
    assert report.spans == 3
    assert report.problems == 1


def test_a_writer_that_died_in_the_middle_of_a_line_costs_one_span(
    tmp_path: Path,
) -> None:
    first, second, third = lines(story()).splitlines()
    report = checked(tmp_path, first + b"\n" + second[:200] + second + b"\n" + third)

    assert report.spans == 3
    assert report.problems == 1
    assert report.verdict is Verdict.VIOLATED


def test_spans_before_a_tear_in_a_line_are_read(tmp_path: Path) -> None:
    line = json.dumps(otlp(story())).encode()
    report = checked(tmp_path, line[:-200])

    assert report.spans == 2
    assert problems(report) == [(1, "it ends too early")]


def test_many_bad_lines_are_all_counted_and_a_few_are_told(tmp_path: Path) -> None:
    report = checked(tmp_path, b"x\n" * 1000 + lines(clean()))

    assert report.problems == 1000
    assert len(report.files[0].problems) == Limits().problems
    assert report.missing == (
        f"what stood in 1000 places of {report.files[0].name} that cannot be read",
    )


# Documents.


def test_a_truncated_document_gives_what_it_has(tmp_path: Path) -> None:
    document = json.dumps(otlp(story()), indent=2)
    report = checked(tmp_path, document[: document.index("discard")].encode())

    assert report.spans == 2
    ((line, reason),) = problems(report)
    assert reason == "it ends too early"
    assert line > 10


def test_a_broken_document_does_not_hide_the_next_one(tmp_path: Path) -> None:
    broken = json.dumps(otlp(story()), indent=2).replace('"spans": [', '"spans": ?', 1)
    content = f"{broken}\n{json.dumps(otlp(story()), indent=2)}\n"
    report = checked(tmp_path, content.encode())

    assert report.spans == 3
    assert [reason for _, reason in problems(report)] == [
        "it is not JSON: expecting value at column 20"
    ]


def test_a_document_that_is_not_utf8_does_not_hide_the_next_one(tmp_path: Path) -> None:
    document = json.dumps(otlp(story()), indent=2).encode()
    content = document.replace(b'"shop"', b'"sh\xffp"') + b"\n" + document
    report = checked(tmp_path, content)

    assert report.spans == 3
    assert [reason for _, reason in problems(report)] == ["it is not UTF-8"]


def test_the_line_of_a_span_in_a_pretty_document_is_known(tmp_path: Path) -> None:
    document = json.dumps(otlp(story()), indent=2)
    (sighting,) = checked(tmp_path, document.encode()).sightings
    line = document.split("\n")[sighting.line]  # the one after the brace

    assert '"traceId": "00000000000000000000000000000003"' in line


# Files.

REFUSED = {
    "HTML": (b"\n<!DOCTYPE html><html>", "it is HTML or XML"),
    "zstandard": (
        b"\x28\xb5\x2f\xfd\x00\x00\x00\x00",
        "it is packed with zstandard; unpack it first (only gzip is read as it is)",
    ),
    "zstandard in frames": (
        framed(b"\x28\xb5\x2f\xfd\x00\x00\x00\x00"),
        "it is packed with zstandard; unpack it first (only gzip is read as it is)",
    ),
    "zip": (
        b"PK\x03\x04rest",
        "it is packed with zip; unpack it first (only gzip is read as it is)",
    ),
    "gzip twice": (
        gzip.compress(gzip.compress(lines(story()))),
        "it is packed with gzip twice; unpack it first (only gzip is read as it is)",
    ),
    "SQLite": (b"SQLite format 3\x00rest", "it is a database of SQLite"),
    "noise": (
        bytes(range(256)),
        "it is neither JSON nor OTLP protobuf, gzipped or not",
    ),
    "JSON that is cut off and no trace": (b'{"user": "m', "it ends too early"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_no_trace_is_refused_with_a_reason(
    name: str, tmp_path: Path
) -> None:
    content, reason = REFUSED[name]
    report = checked(tmp_path, lines(clean()), content)

    assert [each for _, each in problems(report)] == [reason]
    assert [file.name for file in report.refused] == [str(tmp_path / "1.trace")]
    assert report.spans == 2
    assert report.verdict is Verdict.INCONCLUSIVE


UNFINISHED = {
    "nothing": (b"", "it is empty"),
    "nothing, gzipped": (gzip.compress(b""), "it is empty"),
    "a line torn before its first span": (
        b'{"resourceSpans":[{"resource":{"attri',
        "it ends too early",
    ),
    "a line torn in its first span": (
        lines(story())[: lines(story()).index(b"\n") // 2],
        "it ends too early",
    ),
    "a document torn in its first span": (
        json.dumps(otlp(story()), indent=2)[:700].encode(),
        "it ends too early",
    ),
    "protobuf torn in its first span": (
        protobuf(story())[:40],
        "it ends too early, at byte 40",
    ),
}


@pytest.mark.parametrize("name", UNFINISHED)
def test_a_file_whose_writer_died_before_its_first_span_is_missing_and_not_refused(
    name: str, tmp_path: Path
) -> None:
    content, reason = UNFINISHED[name]
    report = checked(tmp_path, lines(clean()), content)

    assert [each for _, each in problems(report)] == [reason]
    assert report.spans == 2
    assert report.refused == ()
    assert report.verdict is Verdict.INCONCLUSIVE


def test_an_unfinished_file_with_something_else_in_it_is_refused(
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, b'Starting up\n{"resourceSpans":[{"resource":{"attri')

    assert [file.problem_count for file in report.refused] == [2]


def test_files_that_cannot_be_opened_are_refused_with_a_reason(tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_bytes(lines(story()))
    paths = [str(tmp_path / "missing"), str(tmp_path), "a\0b", str(good)]
    report = check(paths, Detector(announce=()))

    assert [reason for _, reason in problems(report)] == [
        "No such file or directory",
        "Is a directory",
        "embedded null byte",
    ]
    assert report.verdict is Verdict.VIOLATED


def test_a_truncated_gzip_gives_what_it_has(tmp_path: Path) -> None:
    packed = gzip.compress(lines(story()) * 50)
    report = checked(tmp_path, packed[: len(packed) // 2])

    assert 0 < report.spans < 150
    assert problems(report)[-1] == (
        0,
        "its gzip data ends too early; the file is truncated",
    )
    assert report.verdict is not Verdict.CLEAN


def test_a_damaged_gzip_gives_what_came_before_the_damage(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(lines(story())))
    packed[-8] ^= 0xFF  # the checksum
    report = checked(tmp_path, bytes(packed))

    assert report.spans == 3
    assert problems(report) == [
        (0, "its gzip data is damaged; what comes after is not read")
    ]


def test_what_follows_a_gzip_member_must_be_one(tmp_path: Path) -> None:
    report = checked(tmp_path, gzip.compress(lines(story())) + b"rest")

    assert report.spans == 3
    assert report.problems == 1


def test_padding_after_gzip_is_no_damage(tmp_path: Path) -> None:
    report = checked(tmp_path, gzip.compress(lines(story())) + bytes(512))

    assert (report.spans, report.problems) == (3, 0)


def test_utf16_that_ends_in_the_middle_is_a_problem(tmp_path: Path) -> None:
    report = checked(tmp_path, lines(story()).decode().encode("utf-16")[:-1])

    assert report.spans == 3
    assert report.problems == 1


# Protobuf.


def test_a_frame_that_is_damaged_does_not_hide_the_others(tmp_path: Path) -> None:
    first, second, third = (protobuf([span]) for span in story())
    damaged = second[:10] + bytes([0x7F]) * (len(second) - 10)
    content = framed(first) + framed(damaged) + framed(third)
    report = checked(tmp_path, content)

    assert report.spans == 2
    assert report.problems == 1
    assert "from byte" in problems(report)[0][1]


def test_a_span_that_is_damaged_does_not_hide_the_others(tmp_path: Path) -> None:
    message = bytearray(protobuf(story()))
    at = message.index(b"discard")
    message[at] = 0xFF  # a name that is not UTF-8
    report = checked(tmp_path, bytes(message))

    assert report.spans == 2
    ((_, reason),) = problems(report)
    assert reason.startswith("what is at byte ")
    assert reason.endswith(" is not a span")


def test_protobuf_without_its_library_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "tenure.detectors.offline.otlp_proto", None)
    report = checked(tmp_path, protobuf(story()), lines(clean()))

    ((_, reason),) = problems(report)
    assert reason.endswith("not installed; run pip install 'tenure[offline]'")
    assert report.spans == 2


# Limits.


def test_a_span_beyond_the_limit_is_refused_and_the_rest_is_read(
    tmp_path: Path,
) -> None:
    first, second, third = story()
    second[1]["large"] = "x" * 300_000
    content = lines([first, second, third])
    report = checked(tmp_path, content, limits=Limits(value=1 << 17))

    assert problems(report) == [(2, "one value has more than 0.125 MiB")]
    assert report.spans == 2


def test_a_span_of_protobuf_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    large = ("discard", {"large": "x" * 300_000})
    report = checked(tmp_path, protobuf([large]), limits=Limits(value=1 << 17))

    ((_, reason),) = problems(report)
    assert reason.startswith("one value has more than 0.125 MiB, at byte ")


def test_a_line_beyond_the_limit_is_read_if_its_spans_are_not(tmp_path: Path) -> None:
    many = story() * 200
    report = checked(
        tmp_path, json.dumps(otlp(many)).encode() + b"\n", limits=Limits(value=1 << 14)
    )

    assert (report.spans, report.problems) == (600, 0)


# Spans that cannot be read.


def without(name: str) -> list[Any]:
    found = clean()
    found[1][1].pop(name)
    return found


def test_spans_that_lack_attributes_are_counted_and_never_guessed_at(
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, lines(without("tenure.run.epoch")))

    (lack,) = report.files[0].unreadable
    assert str(lack) == (
        "1 span without a readable tenure.run.epoch (the first is 'commit', line 2)"
    )
    assert (report.unreadable, report.operations) == (1, 2)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.findings == ()


def test_a_span_of_the_engine_that_lacks_all_attributes_is_unreadable(
    tmp_path: Path,
) -> None:
    bare = json.dumps(otlp([("commit", {})])).encode()
    strange = json.dumps(otlp([("commit", {})], scope="a.database")).encode()
    report = checked(tmp_path, bare + b"\n" + strange)

    assert (report.spans, report.unreadable) == (2, 1)


def test_a_span_whose_exporter_cut_its_attributes_is_unreadable(
    tmp_path: Path,
) -> None:
    document = otlp(story())
    spans_of(document)[2]["droppedAttributesCount"] = 3
    report = checked(tmp_path, json.dumps(document).encode())

    assert report.unreadable == 1
    assert report.findings == ()
    assert report.verdict is Verdict.INCONCLUSIVE


def test_two_values_for_one_attribute_make_it_unreadable(tmp_path: Path) -> None:
    document = otlp(story())
    attributes = spans_of(document)[2]["attributes"]
    attributes.append({"key": "tenure.run.epoch", "value": {"intValue": "7"}})
    report = checked(tmp_path, json.dumps(document).encode())

    assert report.files[0].unreadable[0].what == "tenure.run.epoch"
    assert report.findings == ()


@pytest.mark.parametrize(
    "value",
    [
        {"intValue": "1.5"},
        {"intValue": str(2**63)},
        {"intValue": True},
        {"doubleValue": 1.5},
        {"doubleValue": 1e300},
        {"stringValue": "one"},
        {"stringValue": "٣"},
        {"bytesValue": "AQ=="},
        {"kvlistValue": {"values": []}},
        {"arrayValue": {"values": [{"intValue": "1"}]}},
        {},
        None,
        [],
    ],
)
def test_a_number_that_is_none_is_never_guessed_at(
    value: object, tmp_path: Path
) -> None:
    document = otlp(story())
    attributes = spans_of(document)[2]["attributes"]
    (epoch,) = [each for each in attributes if each["key"] == "tenure.run.epoch"]
    epoch["value"] = value
    report = checked(tmp_path, json.dumps(document).encode())

    assert report.files[0].unreadable[0].what == "tenure.run.epoch"
    assert report.findings == ()


@pytest.mark.parametrize(
    "value",
    [
        {"intValue": 1},
        {"intValue": "1"},
        {"intValue": 1.0},
        {"int_value": 1},
        {"doubleValue": 1.0},
        {"stringValue": "1"},
    ],
)
def test_a_number_may_be_written_in_many_ways(value: object, tmp_path: Path) -> None:
    document = otlp(story())
    attributes = spans_of(document)[2]["attributes"]
    (epoch,) = [each for each in attributes if each["key"] == "tenure.run.epoch"]
    epoch["value"] = value
    report = checked(tmp_path, json.dumps(document).encode())

    assert report.unreadable == 0
    assert report.verdict is Verdict.VIOLATED


def test_a_gap_in_the_positions_is_inconclusive(tmp_path: Path) -> None:
    first, _ = clean()
    report = checked(tmp_path, lines([first]))

    assert report.verdict is Verdict.INCONCLUSIVE
    (instance,) = report.instances
    assert instance.missing == ("seq 2 of process p",)


# Anything.


@MANY
@given(cut=st.integers(0, len(lines(story()))))
def test_lines_cut_at_any_byte_give_every_whole_line(cut: int, tmp_path: Path) -> None:
    content = lines(story())[:cut]
    report = checked(tmp_path, content)

    whole = content.count(b"\n")
    assert report.spans in {whole, whole + 1}
    assert report.problems <= 1
    if report.verdict is Verdict.VIOLATED:
        assert report.spans == 3


@MANY
@given(name=st.sampled_from(sorted(FORMATS)), share=st.floats(0, 1))
def test_a_file_cut_anywhere_is_never_clean_and_never_raises(
    name: str, share: float, tmp_path: Path
) -> None:
    content = FORMATS[name](clean())
    cut = content[: int(len(content) * share)]
    report = checked(tmp_path, cut)

    if report.spans < 2:
        assert report.verdict is Verdict.INCONCLUSIVE
    assert report.findings == ()


@MANY
@given(
    name=st.sampled_from(sorted(FORMATS)),
    share=st.floats(0, 1, exclude_max=True),
    flip=st.integers(1, 255),
)
def test_a_flipped_byte_never_raises(
    name: str, share: float, flip: int, tmp_path: Path
) -> None:
    content = bytearray(FORMATS[name](story()))
    content[int(len(content) * share)] ^= flip
    report = checked(tmp_path, bytes(content))

    assert json.dumps(report.as_dict())


@MANY
@given(noise=st.binary(max_size=400))
def test_noise_never_raises(noise: bytes, tmp_path: Path) -> None:
    for content in (noise, lines(clean()) + noise, gzip.compress(noise)):
        report = checked(tmp_path, content)
        assert report.verdict is not Verdict.VIOLATED


@MANY
@given(bad=st.binary(min_size=1, max_size=60).filter(lambda text: b"\n" not in text))
def test_whatever_stands_in_a_line_the_others_are_read(
    bad: bytes, tmp_path: Path
) -> None:
    first, second, third = lines(story()).splitlines(keepends=True)
    report = checked(tmp_path, first + second + bad + b"\n" + third)

    assert report.verdict is Verdict.VIOLATED
    assert report.spans == 3


JUNK = st.sampled_from([
    None, [], {}, "", "x", 1.5, [[]], [None], {"x": 1}, {"stringValue": 5}, True, [1],
    "[", "[1", '["a"', "\ud800", {"values": {}}, {"arrayValue": {"values": "x"}},
])  # fmt: skip


def places(found: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = found.items() if isinstance(found, dict) else ()
    if isinstance(found, list):
        items = enumerate(found)
    for key, item in items:
        yield from places(item, (*path, key))


DOCUMENTS: dict[str, Callable[[], Any]] = {
    "OTLP": lambda: otlp(clean()),
    "Jaeger": lambda: json.loads(FORMATS["Jaeger UI"](clean())),
    "snake case": lambda: json.loads(FORMATS["snake case"](clean())),
    "a bare span": lambda: otlp_span(clean()[1]),
}


@settings(MANY, max_examples=400)
@given(data=st.data(), name=st.sampled_from(sorted(DOCUMENTS)), junk=JUNK)
def test_a_value_of_the_wrong_type_anywhere_neither_raises_nor_accuses(
    data: st.DataObject, name: str, junk: object, tmp_path: Path
) -> None:
    document = DOCUMENTS[name]()
    path = data.draw(st.sampled_from(list(places(document))))
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = junk
    report = checked(tmp_path, json.dumps(document).encode())

    assert report.findings == ()
    assert json.dumps(report.as_dict())


def test_a_problem_prints_its_place() -> None:
    assert str(Problem("a.json", 3, "it is torn")) == "a.json, line 3: it is torn"
    assert str(Problem("a.json", 0, "it is empty")) == "a.json: it is empty"
