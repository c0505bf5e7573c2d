"""Spans written as OTLP JSON lines read back exactly, whoever reads them."""

import json
import os
import threading
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from tenure.instrumentation.otlp_json import JsonLinesSpanExporter, otlp_json_line


def ended_spans() -> tuple[ReadableSpan, ...]:
    """A parent, a child with everything that a span can hold, and a link."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": "press"}), shutdown_on_exit=False
    )
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("scope", "1.2", schema_url="https://example.org/1")
    parent = tracer.start_span("parent", start_time=1_000)
    child = tracer.start_span(
        "child",
        context=trace.set_span_in_context(parent),
        kind=SpanKind.PRODUCER,
        attributes={
            "text": "ü\n",
            "big": 2**53 + 1,
            "half": 0.5,
            "yes": True,
            "keys": ("a", "b"),
            "epochs": (1, 2),
            "raw": b"\xff\x00",
        },
        links=[Link(parent.get_span_context(), {"why": "cause"})],
        start_time=2_000,
    )
    child.add_event("happened", {"n": 1}, timestamp=2_500)
    child.set_status(Status(StatusCode.ERROR, "broken"))
    child.end(3_000)
    parent.end(4_000)
    return memory.get_finished_spans()


def test_a_line_has_the_shape_of_the_collectors_file_exporter():
    child, parent = ended_spans()

    document = json.loads(otlp_json_line([child, parent]))

    assert document.keys() == {"resourceSpans"}
    (resource,) = document["resourceSpans"]
    assert resource["resource"]["attributes"] == [
        {"key": "service.name", "value": {"stringValue": "press"}}
    ]
    (scope,) = resource["scopeSpans"]
    assert scope["scope"] == {"name": "scope", "version": "1.2"}
    assert scope["schemaUrl"] == "https://example.org/1"
    assert [span["name"] for span in scope["spans"]] == ["child", "parent"]


def test_ids_are_hexadecimal_numbers_are_strings_and_kinds_are_integers():
    child, parent = ended_spans()
    trace_id = f"{child.context.trace_id:032x}"
    parent_id = f"{parent.context.span_id:016x}"

    document = json.loads(otlp_json_line([child, parent]))

    first, second = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert first["traceId"] == second["traceId"] == trace_id
    assert first["spanId"] == f"{child.context.span_id:016x}"
    assert first["parentSpanId"] == second["spanId"] == parent_id
    assert "parentSpanId" not in second
    assert first["kind"] == 4
    assert second["kind"] == 1
    assert first["startTimeUnixNano"] == "2000"
    assert first["endTimeUnixNano"] == "3000"
    assert first["status"] == {"code": 2, "message": "broken"}
    assert second["status"] == {}
    (link,) = first["links"]
    assert (link["traceId"], link["spanId"]) == (trace_id, parent_id)
    assert first["events"] == [
        {
            "name": "happened",
            "timeUnixNano": "2500",
            "attributes": [{"key": "n", "value": {"intValue": "1"}}],
        }
    ]


def test_every_type_of_attribute_is_written_as_otlp_wants_it():
    child, _ = ended_spans()

    document = json.loads(otlp_json_line([child]))

    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert {item["key"]: item["value"] for item in span["attributes"]} == {
        "text": {"stringValue": "ü\n"},
        "big": {"intValue": "9007199254740993"},
        "half": {"doubleValue": 0.5},
        "yes": {"boolValue": True},
        "keys": {
            "arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}
        },
        "epochs": {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}},
        "raw": {"bytesValue": "/wA="},
    }


def test_an_independent_reader_of_otlp_json_finds_the_same_bytes():
    traces = pytest.importorskip("opentelemetry.proto_json.trace.v1.trace")
    line = otlp_json_line(ended_spans())

    read = traces.TracesData.from_json(line)

    assert json.loads(read.to_json()) == json.loads(line)
    child = read.resource_spans[0].scope_spans[0].spans[0]
    assert len(child.trace_id) == 16
    assert len(child.span_id) == len(child.parent_span_id) == 8


def test_each_exported_batch_is_one_line(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    exporter = JsonLinesSpanExporter(path)

    for span in ended_spans():
        assert exporter.export([span]) is SpanExportResult.SUCCESS
    assert exporter.export([]) is SpanExportResult.SUCCESS

    # Readable before shutdown: an operator tails it.
    lines = path.read_text().splitlines()
    exporter.shutdown()
    assert [len(json.loads(line)["resourceSpans"]) for line in lines] == [1, 1]


def test_an_existing_file_is_appended_to_on_a_line_of_its_own(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    path.write_text('{"resourceSpans":[]}\n{"resourceSp')
    exporter = JsonLinesSpanExporter(path)

    exporter.export(ended_spans())
    exporter.shutdown()

    whole, torn, added = path.read_text().splitlines()
    assert json.loads(whole) == {"resourceSpans": []}
    assert torn == '{"resourceSp'
    assert json.loads(added)["resourceSpans"]


def test_a_replaced_file_keeps_its_old_content_until_shutdown(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    path.write_text("old\n")
    exporter = JsonLinesSpanExporter(path, replace=True)

    exporter.export(ended_spans())
    before = path.read_text()
    exporter.shutdown()
    exporter.shutdown()

    assert before == "old\n"
    assert len(path.read_text().splitlines()) == 1
    assert json.loads(path.read_text())["resourceSpans"]
    assert os.listdir(tmp_path) == ["spans.jsonl"]


def test_export_after_shutdown_says_that_it_failed(tmp_path: Path):
    exporter = JsonLinesSpanExporter(tmp_path / "spans.jsonl")
    exporter.shutdown()

    assert exporter.export(ended_spans()) is SpanExportResult.FAILURE
    assert exporter.lost_spans == 2


def test_a_full_disk_is_a_failed_export_and_not_an_error(
    caplog: pytest.LogCaptureFixture,
):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    exporter = JsonLinesSpanExporter("/dev/full")

    assert exporter.export(ended_spans()) is SpanExportResult.FAILURE

    exporter.shutdown()
    assert "could not be written to /dev/full" in caplog.text
    assert (exporter.written_spans, exporter.lost_spans) == (0, 2)


def test_a_link_stays_a_link_when_its_file_is_replaced(tmp_path: Path):
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    target.write_text("old\n")
    link.symlink_to(target)
    exporter = JsonLinesSpanExporter(link, replace=True)

    exporter.export(ended_spans())
    exporter.shutdown()

    assert link.is_symlink()
    assert json.loads(target.read_text())["resourceSpans"]


def test_a_pipe_is_written_to_at_once_and_never_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    exporter = JsonLinesSpanExporter(pipe, replace=True)

    exporter.export(ended_spans())
    read = os.read(reader, 100_000)
    exporter.shutdown()

    os.close(reader)
    assert pipe.is_fifo()
    assert json.loads(read)["resourceSpans"]


def test_a_file_that_cannot_take_its_place_counts_its_spans_as_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "spans.jsonl"
    exporter = JsonLinesSpanExporter(path, replace=True)
    exporter.export(ended_spans())
    path.mkdir()

    exporter.shutdown()

    assert (exporter.written_spans, exporter.lost_spans) == (0, 2)
    assert "could not be put at" in caplog.text


def test_a_file_that_cannot_be_opened_is_refused_at_once(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        JsonLinesSpanExporter(tmp_path / "missing" / "spans.jsonl")


def test_threads_that_export_together_never_mix_their_lines(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    first, second = JsonLinesSpanExporter(path), JsonLinesSpanExporter(path)
    spans = ended_spans()
    together = threading.Barrier(4)

    def export(exporter: JsonLinesSpanExporter) -> None:
        together.wait()
        for _ in range(50):
            exporter.export(spans)

    threads = [
        threading.Thread(target=export, args=(exporter,))
        for exporter in (first, second, first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = path.read_text().splitlines()
    assert len(lines) == 200
    assert {len(json.loads(line)["resourceSpans"]) for line in lines} == {1}
    first.shutdown()
    second.shutdown()


def test_it_works_behind_the_sdks_batch_processor(tmp_path: Path):
    path = tmp_path / "spans.jsonl"
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(JsonLinesSpanExporter(path, replace=True))
    )
    for number in range(600):
        provider.get_tracer("scope").start_span(f"span {number}").end()

    provider.shutdown()

    names = [
        span["name"]
        for line in path.read_text().splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    assert names == [f"span {number}" for number in range(600)]
