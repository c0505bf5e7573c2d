"""A finding is a proof: it prints, pickles and becomes plain data."""

import json
import pickle

import pytest

from tenure.detectors import (
    DetectorError,
    Finding,
    MalformedTraceError,
    RaceError,
)
from tenure.instrumentation.operations import (
    DeliveryKind,
    Discard,
    DiscardCause,
    ForeignDelivery,
    LateKind,
    Owner,
    RunRef,
    SpanRef,
    WriteSet,
)


def test_a_finding_prints_as_its_name_its_standing_and_its_proof(scene, only):
    found = only(scene.superseded().discard(1, {"b": 2}))

    assert str(found) == (
        "stale discard (violation, certain) in press/i (x/1): "
        "let epoch 1 be run run-1 and epoch 2 be run run-2; "
        "then epoch 2 owned the instance at seq 3 of p, and had staged `b`; "
        "however, epoch 1 discarded `b` (cause: abandoned)"
    )


def test_a_finding_says_what_is_missing(scene, only):
    scene.claim(1)
    scene.skip(3)

    assert str(only(scene.claim(2))).endswith("[missing: seq 2-4 of process p]")


def test_a_victim_that_is_not_the_owner_is_named(scene, only):
    scene.claim(3)
    found = only(scene.discard(1, {"b": 2}))

    assert "epoch 3 owned the instance" in found.proof
    assert "and epoch 2 had staged `b`" in found.proof


def test_the_proof_of_a_refused_discard_says_so(scene, only):
    found = only(scene.superseded().discard(1, {}, fenced=True))

    assert "which the engine refused" in found.proof


def test_the_proof_of_a_discard_of_ones_own_ledger_says_so(scene, only):
    found = only(scene.superseded().discard(1, {"a": 1}, ledger=1))

    assert "yet only its own ledger" in found.proof


@pytest.mark.parametrize(
    ("writes", "harm"),
    [({}, "hit no newer epoch's writes"), (None, "cannot be told")],
)
def test_the_proof_of_a_discard_without_a_victim_says_what_is_known(
    scene, only, writes, harm
):
    assert harm in only(scene.superseded().discard(1, writes)).proof


def test_the_proof_of_a_reused_epoch_names_both_runs(scene, only):
    scene.claim(1, run_id="a")
    scene.release(1, run_id="a")
    found = only(scene.claim(1, run_id="b"))

    assert found.proof == (
        "let run a and run b drive one instance; "
        "then run a had claimed epoch 1 at seq 1 of p; "
        "however, run b claimed epoch 1 at seq 3 of p, which is not greater"
    )


def test_the_proof_of_a_late_write_names_what_it_was_and_where_it_went(scene, only):
    found = only(scene.superseded().late(1, ledger=2, kind=LateKind.SEND))

    assert found.proof.endswith(
        "epoch 1 sent a message at seq 3 of p, into the ledger of epoch 2"
    )


def test_the_proof_of_a_foreign_delivery_names_message_and_executor(scene, only):
    found = only(
        scene.feed(
            ForeignDelivery(
                run=scene.run(2),
                seq=None,
                owner=None,
                kind=DeliveryKind.FAN_IN,
                origin=1,
                message="m-1",
                executor="join",
            )
        )
    )

    assert found.proof == (
        "let epoch 1 be a run that is not named and epoch 2 be run run-2; "
        "then the fan-in m-1 came from epoch 1; "
        "however, it was delivered to executor join in epoch 2 when it happened"
    )


def test_the_proof_of_a_stale_commit_names_its_keys(scene, only):
    found = only(scene.superseded().commit(1, {"a": 1, "b": 1}))

    assert found.proof.endswith("however, epoch 1 committed `a` and `b`")


def finding() -> Finding:
    from tenure.detectors import Detector

    (found,) = Detector(announce=()).feed(
        Discard(
            run=RunRef("x/1", "press", "i", "run-1", 1, "p"),
            seq=3,
            owner=Owner(2, "run-2"),
            span=SpanRef(1, 2),
            writes=WriteSet((("b", 2),)),
            cause=DiscardCause.ABANDONED,
        )
    )
    return found


def test_a_finding_becomes_plain_data_with_its_evidence():
    plain = json.loads(json.dumps(finding().as_dict()))

    assert plain["anomaly"] == "stale-discard"
    assert plain["proof"].startswith("let ")
    assert plain["evidence"] == [
        {
            "operation": "discard",
            "run_id": "run-1",
            "epoch": 1,
            "process": "p",
            "seq": 3,
            "owner": {"epoch": 2, "run_id": "run-2"},
            "span": {"trace_id": f"{1:032x}", "span_id": f"{2:016x}"},
        }
    ]


def test_a_finding_survives_pickling():
    assert pickle.loads(pickle.dumps(finding())) == finding()


def test_races_can_be_raised_and_survive_pickling():
    error = RaceError((finding(), finding()))
    copy = pickle.loads(pickle.dumps(error))

    assert copy.findings == error.findings
    assert str(copy).startswith("2 races were found:\n- stale discard (violation")
    assert isinstance(copy, DetectorError)


def test_a_single_race_is_counted_as_one():
    assert str(RaceError((finding(),))).startswith("1 race was found:")


def test_a_malformed_trace_is_a_value_error_that_says_where():
    error = pickle.loads(pickle.dumps(MalformedTraceError("t.jsonl, line 3", "no")))

    assert isinstance(error, ValueError)
    assert str(error) == "t.jsonl, line 3 cannot be read: no"
