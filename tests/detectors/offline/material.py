"""Spans to make trace files of: one story, in every format that is read."""

import base64
import gzip
import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from tenure.detectors import Detector
from tenure.detectors.offline import Limits, Report, check
from tenure.instrumentation.attributes import operation_attributes, span_name
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    Discard,
    DiscardCause,
    Operation,
    Outcome,
    Owner,
    Release,
    RunRef,
    WriteSet,
)
from tenure.instrumentation.semconv import END_SEQ

Attributes = dict[str, Any]
Span = tuple[str, Attributes]


def run(epoch: int, instance: str = "i") -> RunRef:
    return RunRef("x/1", "press", instance, f"run-{epoch}", epoch, "p")


def spans(operations: Sequence[Operation]) -> list[Span]:
    """One span for each operation, but one for a claim and its release together."""
    ends = {each.run: each for each in operations if isinstance(each, Release)}
    found: list[Span] = []
    for operation in operations:
        if isinstance(operation, Release):
            continue
        attributes = operation_attributes(operation)
        if isinstance(operation, Claim):
            end = ends[operation.run]
            attributes[END_SEQ] = end.seq
            attributes["tenure.run.outcome"] = end.outcome.value
        found.append((span_name(operation), attributes))
    return found


def story(instance: str = "i") -> list[Span]:
    """Epoch 1 discards what epoch 2 has staged: a certain violation, nothing missing.

    Positions: claim 1, claim 2 (supersedes), release 1, stale discard 1, release 2.
    """
    first, second = run(1, instance), run(2, instance)
    one, two = Owner(1, "run-1"), Owner(2, "run-2")
    return spans([
        Claim(run=first, seq=1, owner=one),
        Claim(run=second, seq=2, owner=two, superseded=1),
        Release(run=first, seq=3, owner=two, outcome=Outcome.SUPERSEDED),
        Discard(
            run=first,
            seq=4,
            owner=two,
            writes=WriteSet((("k", 2), ("l", 1))),
            cause=DiscardCause.FINALIZER,
            ledger=1,
        ),
        Release(run=second, seq=5, owner=two, outcome=Outcome.COMPLETED),
    ])


def clean(instance: str = "i") -> list[Span]:
    """One run that claims, commits and releases."""
    owner = Owner(1, "run-1")
    only = run(1, instance)
    return spans([
        Claim(run=only, seq=1, owner=owner),
        Commit(run=only, seq=2, owner=owner, writes=WriteSet((("k", 1),))),
        Release(run=only, seq=3, owner=owner, outcome=Outcome.COMPLETED),
    ])


# OTLP JSON.


def value(of: object) -> dict[str, Any]:
    match of:
        case bool():
            return {"boolValue": of}
        case int():
            return {"intValue": str(of)}
        case float():
            return {"doubleValue": of}
        case str():
            return {"stringValue": of}
        case list() | tuple():
            return {"arrayValue": {"values": [value(item) for item in of]}}
    raise TypeError(type(of))


def otlp_span(span: Span, number: int = 1) -> dict[str, Any]:
    name, attributes = span
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": "",
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(10**18 + number),
        "endTimeUnixNano": str(10**18 + number + 5),
        "attributes": [{"key": k, "value": value(v)} for k, v in attributes.items()],
        "status": {},
    }


def otlp(
    found: Iterable[Span], scope: str = "tenure.runtime", first: int = 1
) -> dict[str, Any]:
    numbered = [otlp_span(span, first + at) for at, span in enumerate(found)]
    service = {"key": "service.name", "value": {"stringValue": "shop"}}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [service]},
                "scopeSpans": [{"scope": {"name": scope}, "spans": numbered}],
            }
        ]
    }


def lines(found: Sequence[Span]) -> bytes:
    """One line for each span, as a collector with small batches writes them."""
    return b"".join(
        json.dumps(otlp([span], first=at + 1)).encode() + b"\n"
        for at, span in enumerate(found)
    )


# Other formats.


def with_base64_ids(document: dict[str, Any]) -> dict[str, Any]:
    for span in spans_of(document):
        for name in ("traceId", "spanId", "parentSpanId"):
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return document


def spans_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return document["resourceSpans"][0]["scopeSpans"][0]["spans"]


def snake(found: object) -> object:
    if isinstance(found, list):
        return [snake(item) for item in found]
    if not isinstance(found, dict):
        return found
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): snake(item)
        for key, item in found.items()
    }


def protobuf(found: Iterable[Span]) -> bytes:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    service = resource.resource.attributes.add(key="service.name")
    service.value.string_value = "shop"
    scope = resource.scope_spans.add()
    scope.scope.name = "tenure.runtime"
    for number, (name, attributes) in enumerate(found, 1):
        span = scope.spans.add(
            trace_id=number.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            name=name,
            start_time_unix_nano=10**18 + number,
            end_time_unix_nano=10**18 + number + 5,
        )
        for key, item in attributes.items():
            fill(span.attributes.add(key=key).value, item)
    return request.SerializeToString()


def fill(target: Any, item: object) -> None:
    match item:
        case bool():
            target.bool_value = item
        case int():
            target.int_value = item
        case str():
            target.string_value = item
        case float():
            target.double_value = item
        case _:
            target.array_value.SetInParent()
            for each in item:
                fill(target.array_value.values.add(), each)


def framed(message: bytes) -> bytes:
    """A message behind its size, as the collector's file exporter writes it."""
    return struct.pack(">I", len(message)) + message


def delimited(message: bytes) -> bytes:
    """A message behind its size, as protobuf libraries write it."""
    size, rest = bytearray(), len(message)
    while rest >= 0x80:
        size.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*size, rest]) + message


def jaeger(found: Iterable[Span]) -> dict[str, Any]:
    """What the JSON of Jaeger's user interface makes of spans."""
    listed = [
        {
            # Leading zeros are gone.
            "traceID": f"{number:x}",
            "spanID": f"{number:016x}",
            "operationName": name,
            "references": [],
            "startTime": 10**15 + number,
            "duration": 7,
            "tags": [
                tag("otel.scope.name", "tenure.runtime"),
                *(tag(key, item) for key, item in attributes.items()),
            ],
            "logs": [],
            "processID": "p1",
            "warnings": None,
        }
        for number, (name, attributes) in enumerate(found, 1)
    ]
    trace = {
        "traceID": "1",
        "spans": listed,
        "processes": {"p1": {"serviceName": "shop", "tags": []}},
        "warnings": None,
    }
    return {"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}


def tag(key: str, item: object) -> dict[str, Any]:
    match item:
        case bool():
            return {"key": key, "type": "bool", "value": item}
        case int():
            return {"key": key, "type": "int64", "value": item}
        case str():
            return {"key": key, "type": "string", "value": item}
        case _:
            text = json.dumps(list(item), separators=(",", ":"))
            return {"key": key, "type": "string", "value": text}


def everything_as_text(found: Iterable[Span]) -> list[Span]:
    """What a backend keeps whose attributes are all strings."""
    return [
        (name, {key: textual(item) for key, item in attributes.items()})
        for name, attributes in found
    ]


def textual(item: object) -> str:
    return item if isinstance(item, str) else json.dumps(item)


FORMATS: dict[str, Any] = {
    "lines": lines,
    "lines with CRLF": lambda found: lines(found).replace(b"\n", b"\r\n"),
    "lines without the last end": lambda found: lines(found)[:-1],
    "blank lines": lambda found: b"\n\n" + lines(found).replace(b"\n", b"\n \n"),
    "a byte order mark": lambda found: b"\xef\xbb\xbf" + lines(found),
    "UTF-16": lambda found: lines(found).decode().encode("utf-16"),
    "a document": lambda found: json.dumps(otlp(found)).encode(),
    "a pretty document": lambda found: json.dumps(otlp(found), indent=2).encode(),
    "pretty without indents": lambda found: json.dumps(otlp(found), indent=0).encode(),
    "pretty documents in a row": lambda found: b"\n".join(
        json.dumps(otlp([span], first=at), indent=2).encode()
        for at, span in enumerate(found, 1)
    ),
    "an array of documents": lambda found: json.dumps([
        otlp([span], first=at) for at, span in enumerate(found, 1)
    ]).encode(),
    "values on one line": lambda found: lines(found).replace(b"\n", b" "),
    "base64 ids": lambda found: json.dumps(with_base64_ids(otlp(found))).encode(),
    "snake case": lambda found: json.dumps(snake(otlp(found))).encode(),
    "all strings": lambda found: lines(everything_as_text(found)),
    "bare spans": lambda found: b"\n".join(
        json.dumps(otlp_span(span, at)).encode() for at, span in enumerate(found, 1)
    ),
    "api/v3": lambda found: json.dumps({"result": otlp(found)}).encode(),
    "api/v3 in parts": lambda found: b"\n".join(
        json.dumps({"result": otlp([span], first=at)}).encode()
        for at, span in enumerate(found, 1)
    ),
    "Jaeger UI": lambda found: json.dumps(jaeger(found)).encode(),
    "Jaeger UI, pretty": lambda found: json.dumps(jaeger(found), indent=4).encode(),
    "Jaeger UI, all strings": lambda found: json.dumps(
        jaeger(everything_as_text(found))
    ).encode(),
    "protobuf": protobuf,
    "protobuf, joined": lambda found: b"".join(protobuf([span]) for span in found),
    "protobuf, framed": lambda found: b"".join(
        framed(protobuf([span])) for span in found
    ),
    "protobuf, delimited": lambda found: b"".join(
        delimited(protobuf([span])) for span in found
    ),
    "gzip": lambda found: gzip.compress(lines(found)),
    "gzip members": lambda found: b"".join(
        gzip.compress(line + b"\n") for line in lines(found).splitlines()
    ),
    "gzip of protobuf": lambda found: gzip.compress(protobuf(found)),
}
"""Every way in which spans are written that can be read."""


def checked(folder: Path, *contents: bytes, limits: Limits | None = None) -> Report:
    """Check files with the given contents, called `0.trace` and so on."""
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"{number}.trace"
        path.write_bytes(content)
        paths.append(str(path))
    return check(paths, Detector(announce=()), limits=limits)


def outcome(report: Report) -> tuple[Any, ...]:
    """What a report says, but for places."""
    return (
        report.verdict,
        report.spans,
        report.operations,
        [str(finding) for finding in report.findings],
        report.missing,
    )
