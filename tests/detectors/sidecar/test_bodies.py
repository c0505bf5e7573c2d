"""Messages as operations; what is too large or not a message at all."""

import gzip
import json
import tracemalloc
import zlib

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)

from tenure.detectors.sidecar.bodies import (
    GZIP,
    NoRoomError,
    TooLargeError,
    UnreadableError,
    gunzip,
    read,
)
from tenure.detectors.sidecar.intake import Format
from tenure.instrumentation import semconv
from tenure.instrumentation.operations import CheckpointRestore, CheckpointSave, Owner

from .conftest import commit, message, run_of, stale_discard

LIMIT = 1 << 20


def as_json(request: ExportTraceServiceRequest) -> bytes:
    """Return the message as OTLP JSON, whose ids are hexadecimal."""
    document = MessageToDict(request, use_integers_for_enums=True)
    for resource, raw_resource in zip(
        document["resourceSpans"], request.resource_spans, strict=True
    ):
        for scope, raw_scope in zip(
            resource["scopeSpans"], raw_resource.scope_spans, strict=True
        ):
            for span, raw in zip(scope["spans"], raw_scope.spans, strict=True):
                span["traceId"] = raw.trace_id.hex()
                span["spanId"] = raw.span_id.hex()
    return json.dumps(document).encode()


class TestUnpacking:
    def test_what_was_packed_comes_out(self):
        assert gunzip(gzip.compress(b"spans"), LIMIT) == b"spans"

    def test_members_that_follow_each_other_are_one(self):
        assert gunzip(gzip.compress(b"a") + gzip.compress(b"b"), LIMIT) == b"ab"

    def test_exactly_the_limit_is_not_too_large(self):
        assert len(gunzip(gzip.compress(bytes(LIMIT)), LIMIT)) == LIMIT

    @pytest.mark.parametrize("members", [1, 2])
    def test_one_byte_more_is(self, members):
        packed = gzip.compress(bytes(LIMIT // members)) * members
        with pytest.raises(TooLargeError):
            gunzip(packed + gzip.compress(b"x"), LIMIT)

    def test_a_bomb_takes_no_more_memory_than_the_limit(self):
        bomb = gzip.compress(bytes(200 * LIMIT))
        assert len(bomb) < LIMIT // 4

        tracemalloc.start()
        with pytest.raises(TooLargeError):
            gunzip(bomb, LIMIT)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert peak < 4 * LIMIT

    def test_room_is_asked_for_what_it_unpacks_to_and_no_more(self):
        asked: list[int] = []

        def grow(size: int) -> bool:
            asked.append(size)
            return sum(asked) <= 1000

        assert gunzip(gzip.compress(bytes(1000)), LIMIT, grow) == bytes(1000)
        assert sum(asked) == 1000
        with pytest.raises(NoRoomError):
            gunzip(gzip.compress(b"x"), LIMIT, grow)

    @pytest.mark.parametrize(
        "packed",
        [
            GZIP,
            gzip.compress(b"spans")[:-1],
            gzip.compress(b"spans")[:-5] + b"wrong",
            gzip.compress(b"spans") + b"trailer",
            zlib.compress(b"spans"),
            b"spans",
        ],
    )
    def test_what_is_not_gzip_to_its_end_is_unreadable(self, packed):
        with pytest.raises(UnreadableError, match="gzip"):
            gunzip(packed, LIMIT)


class TestReading:
    @pytest.mark.parametrize("written", Format)
    def test_operations_come_back_as_they_went(self, written):
        told = [commit(1), stale_discard(2)]
        request = message(*told)
        body = (
            as_json(request) if written is Format.JSON else request.SerializeToString()
        )

        reading = read(body, written)

        assert [
            (type(each), each.run, each.seq, each.owner, each.writes)
            for each in reading.operations
        ] == [
            (type(each), each.run, each.seq, each.owner, each.writes) for each in told
        ]
        assert (reading.spans, reading.rejected, reading.doubts) == (2, 0, ())

    def test_both_formats_say_the_same(self):
        request = message(commit(1), stale_discard(2))

        assert read(as_json(request), Format.JSON) == read(
            request.SerializeToString(), Format.PROTOBUF
        )

    @pytest.mark.parametrize("kind", [CheckpointSave, CheckpointRestore])
    def test_checkpoints_reach_the_detector(self, kind):
        told = kind(
            run=run_of(1),
            seq=1,
            owner=Owner(1, "run-1"),
            checkpoint="c2",
            parent="c1",
            parts=(("writer", 1),),
        )

        (heard,) = read(message(told).SerializeToString(), Format.PROTOBUF).operations

        assert isinstance(heard, kind)
        assert (heard.checkpoint, heard.parent, heard.parts) == (
            "c2",
            "c1",
            (("writer", 1),),
        )

    def test_findings_of_detectors_are_not_read_again(self):
        body = message(commit(1), scope=semconv.DETECTORS_SCOPE).SerializeToString()

        assert read(body, Format.PROTOBUF).operations == ()

    def test_spans_of_others_are_counted_and_nothing_else(self):
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        spans.add(name="GET /", trace_id=bytes([1]) * 16, span_id=bytes([1]) * 8)

        reading = read(request.SerializeToString(), Format.PROTOBUF)

        assert (reading.spans, reading.rejected, reading.operations) == (1, 0, ())

    def test_a_span_that_lacks_an_attribute_is_rejected_and_named(self):
        request = message(commit(1), commit(2))
        attributes = request.resource_spans[0].scope_spans[0].spans[1].attributes
        kept = [pair for pair in attributes if pair.key != semconv.RUN_ID]
        del attributes[:]
        attributes.extend(kept)

        reading = read(request.SerializeToString(), Format.PROTOBUF)

        assert len(reading.operations) == 1
        assert reading.rejected == 1
        assert reading.reasons == (f"1 without a readable {semconv.RUN_ID}",)
        assert reading.doubts == (f"spans without a readable {semconv.RUN_ID}",)

    def test_a_span_whose_attributes_were_cut_is_rejected(self):
        request = message(commit(1))
        request.resource_spans[0].scope_spans[0].spans[0].dropped_attributes_count = 1

        reading = read(request.SerializeToString(), Format.PROTOBUF)

        assert (reading.operations, reading.rejected) == ((), 1)
        assert reading.doubts

    @pytest.mark.parametrize("size", [0, 7, 17])
    def test_a_span_with_a_wrong_id_is_rejected(self, size):
        request = message(commit(1))
        request.resource_spans[0].scope_spans[0].spans[0].trace_id = bytes(size)

        reading = read(request.SerializeToString(), Format.PROTOBUF)

        assert (reading.operations, reading.rejected) == ((), 1)

    def test_an_empty_message_says_nothing(self):
        assert read(b"", Format.PROTOBUF) == read(b"{}", Format.JSON)

    @pytest.mark.parametrize(
        ("body", "written"),
        [
            (b"\xff\xfe garbage", Format.PROTOBUF),
            (b"not protobuf", Format.PROTOBUF),
            (message(commit(1)).SerializeToString()[:-1], Format.PROTOBUF),
            (b"not json", Format.JSON),
            (b"\xff", Format.JSON),
            (b"[]", Format.JSON),
            (b"null", Format.JSON),
            (b"{", Format.JSON),
            (b'{"resourceSpans": {}}', Format.JSON),
            (b'{"resourceSpans": [1]}', Format.JSON),
            (b'{"resourceSpans": [{"scopeSpans": [{"spans": "x"}]}]}', Format.JSON),
            (b"[" * 200_000, Format.JSON),
            (b'{"a":' * 200_000, Format.JSON),
            (b"1" * 10_000, Format.JSON),
        ],
        ids=lambda value: str(value)[:30],
    )
    def test_garbage_is_unreadable_and_nothing_worse(self, body, written):
        with pytest.raises(UnreadableError):
            read(body, written)
