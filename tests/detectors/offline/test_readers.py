"""The readers against each other, against their vocabulary, and against memory."""

import ast
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from tenure.detectors.offline import (
    MALFORMED,
    Found,
    Limits,
    RawSpan,
    Source,
    read_spans,
)
from tenure.detectors.offline.otlp_json import identity
from tenure.detectors.offline.recognise import HEAD, Encoding, recognise
from tenure.detectors.offline.spans import as_meant
from tenure.instrumentation import semconv

from .material import (
    FORMATS,
    Span,
    delimited,
    framed,
    lines,
    otlp,
    protobuf,
    spans_of,
    story,
)

KEYS = st.sampled_from([
    semconv.RUN_EPOCH,
    semconv.RUN_ID,
    semconv.WRITE_KEYS,
    semconv.WRITE_EPOCHS,
    semconv.DISCARD_FENCED,
    semconv.ERROR_TYPE,
    "tenure.unknown",
    "http.method",
])
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=20),
)
SPANS = st.lists(
    st.tuples(
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.dictionaries(KEYS, SCALARS | st.lists(SCALARS, max_size=3), max_size=4),
    ),
    max_size=4,
)
MANY = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def read(folder: Path, content: bytes) -> list[RawSpan]:
    path = folder / "trace"
    path.write_bytes(content)
    with Source(str(path)) as source:
        found = list(read_spans(source, Limits()))
    assert all(isinstance(each, Found) for each in found), found
    return [each.span for each in found if isinstance(each, Found)]


@MANY
@given(spans=SPANS)
def test_json_and_protobuf_say_the_same_of_the_same_spans(
    spans: list[Span], tmp_path: Path
) -> None:
    message = protobuf(spans)
    expected = read(tmp_path, message)

    assert len(expected) == len(spans)
    for name in ("a document", "a pretty document", "lines", "snake case"):
        found = read(tmp_path, FORMATS[name](spans) or b"{}")
        assert found == expected, name


@MANY
@given(spans=SPANS)
def test_what_protobuf_itself_writes_as_json_is_read_with_its_base64_ids(
    spans: list[Span], tmp_path: Path
) -> None:
    message = protobuf(spans)
    request = ExportTraceServiceRequest.FromString(message)
    expected = read(tmp_path, message)

    for original_names in (False, True):
        document = MessageToDict(request, preserving_proto_field_name=original_names)
        assert read(tmp_path, json.dumps(document).encode()) == expected


def test_a_span_is_what_it_was(tmp_path: Path) -> None:
    name, attributes = story()[2]
    span = read(tmp_path, lines([(name, attributes)]))[0]

    assert span == RawSpan(
        name="discard",
        attributes={
            key: list(value) if isinstance(value, tuple) else value
            for key, value in attributes.items()
        },
        start=10**18 + 1,
        end=10**18 + 6,
        trace_id=1,
        span_id=1,
        scope="tenure.runtime",
        service="shop",
    )


@pytest.mark.parametrize(
    ("text", "width", "number"),
    [
        ("000102030405060708090a0b0c0d0e0f", 16, 0x000102030405060708090A0B0C0D0E0F),
        ("000102030405060708090A0B0C0D0E0F", 16, 0x000102030405060708090A0B0C0D0E0F),
        ("2be38093ead7a083", 16, 0x2BE38093EAD7A083),
        ("abc", 16, 0xABC),
        ("AAECAwQFBgcICQoLDA0ODw==", 16, 0x000102030405060708090A0B0C0D0E0F),
        ("AAECAwQFBgcICQoLDA0ODw", 16, 0x000102030405060708090A0B0C0D0E0F),
        ("K+OAk+rXoIM=", 8, 0x2BE38093EAD7A083),
        ("K-OAk-rXoIM=", 8, 0x2BE38093EAD7A083),
        ("0" * 32, 16, 0),
        ("f" * 33, 16, 0),
        ("not an id", 16, 0),
        ("", 16, 0),
        (5, 16, 0),
        (None, 8, 0),
    ],
)
def test_ids_are_hexadecimal_or_base64(text: object, width: int, number: int) -> None:
    assert identity(text, width) == number


def test_the_type_of_every_attribute_is_known_to_the_readers() -> None:
    """The vocabulary says a type behind each name; readers must not forget one."""
    textual = {"int": "7", "int[]": "[7, 8]", "string[]": '["a", "b"]', "bool": "true"}
    meant = {"int": 7, "int[]": [7, 8], "string[]": ["a", "b"], "bool": True}
    checked = 0
    for name, type_ in declared_types():
        if type_ == "string":
            for text in textual.values():
                assert as_meant(name, text) == text, name
        else:
            assert as_meant(name, textual[type_]) == meant[type_], name
        checked += 1
    assert checked > 30


def declared_types() -> Iterator[tuple[str, str]]:
    assert semconv.__file__ is not None
    body = ast.parse(Path(semconv.__file__).read_text("utf-8")).body
    for statement, after in pairwise(body):
        match statement, after:
            case (
                ast.AnnAssign(value=ast.Constant(value=str(name))),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found = re.search(r"\b(int|string|bool)(\[\])?\)\.", text)
                if found:
                    yield name, found[1] + (found[2] or "")


@pytest.mark.parametrize("value", ["[1", "[1,", "[" * 100_000])
def test_a_list_in_a_string_that_is_no_list_is_malformed(value: str) -> None:
    assert as_meant(semconv.WRITE_KEYS, value) is MALFORMED


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        (b'{"resourceSpans"', Encoding.JSON),
        (b"\n{\n", Encoding.JSON),
        (b'{\n\n "a"', Encoding.JSON),
        (protobuf(story())[:HEAD], Encoding.PROTOBUF),
        (framed(protobuf(story()))[:HEAD], Encoding.FRAMED_PROTOBUF),
        (delimited(protobuf(story()))[:HEAD], Encoding.DELIMITED_PROTOBUF),
        (delimited(protobuf(story()[:1]))[:HEAD], Encoding.DELIMITED_PROTOBUF),
    ],
)
def test_the_first_bytes_tell_how_a_file_is_written(
    head: bytes, encoding: Encoding
) -> None:
    assert recognise(head) is encoding


# Memory.

MEASURE = """
import resource, sys
from tenure.detectors import Detector
from tenure.detectors.offline import check
report = check(sys.argv[1:], Detector(announce=()))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(report.spans, report.problems, peak // (1024 if sys.platform == "darwin" else 1))
"""
LARGE = 40 << 20
GROWTH = 16 << 10
"""KiB; a file that was held in memory would take more than twice as much."""


def measured(*paths: Path) -> tuple[int, int, int]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *map(str, paths)],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    spans, problems, peak = map(int, done.stdout.split())
    return spans, problems, peak


def written(path: Path, name: str) -> int:
    """Write a large file of somebody else's spans; return how many they are."""
    spans: list[Span] = [("GET", {"http.body": "x" * 8000})] * 16
    times = LARGE // (16 * 8000)
    one = ",\n".join(json.dumps(span) for span in spans_of(otlp(spans)))
    with (gzip.open if name == "gzip" else open)(path, "wb") as file:
        match name:
            case "protobuf":
                file.writelines([protobuf(spans)] * times)
            case "one message of protobuf":
                listed = protobuf(spans * times)
                file.write(listed)
            case "one document":
                file.write(b'{"resourceSpans":[{"scopeSpans":[{"spans":[\n')
                file.writelines([f"{one},\n".encode()] * (times - 1))
                file.write(one.encode() + b"]}]}]}")
            case "one line":
                line = one.replace("\n", "")
                file.write(b'{"resourceSpans":[{"scopeSpans":[{"spans":[')
                file.writelines([f"{line},".encode()] * (times - 1))
                file.write(line.encode() + b"]}]}]}")
            case _:
                file.writelines([json.dumps(otlp(spans)).encode() + b"\n"] * times)
    return 16 * times


@pytest.mark.parametrize(
    "name",
    [
        "lines",
        "gzip",
        "one line",
        "one document",
        "protobuf",
        "one message of protobuf",
    ],
)
def test_a_file_of_any_size_takes_the_same_memory(name: str, tmp_path: Path) -> None:
    small, big = tmp_path / "small", tmp_path / "big"
    small.write_bytes(protobuf(story()) if "protobuf" in name else lines(story()))
    expected = written(big, name)

    _, _, baseline = measured(small)
    spans, problems, peak = measured(big)
    assert (spans, problems) == (expected, 0)
    assert peak - baseline < GROWTH


def test_many_instances_and_findings_take_bounded_memory(tmp_path: Path) -> None:
    small, big = tmp_path / "small", tmp_path / "big"
    for path, count in ((small, 1_000), (big, 4_000)):
        with path.open("wb") as file:
            for number in range(count):
                file.write(json.dumps(otlp(story(f"i{number}"))).encode() + b"\n")

    (_, _, less), (spans, _, more) = measured(small), measured(big)
    assert spans == 12_000
    # Some 10,000 instances are remembered; what is kept of one is small.
    assert more - less < 3_000 * 12
