"""What is measured of runs."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tenure.instrumentation import Detail, Recorder
from tenure.instrumentation.operations import DiscardCause, Outcome, Owner

FIRST = Owner(1, "r1")
LABELS = {"tenure.engine": "engine/1.2", "tenure.workflow.name": "press"}


class Meter:
    def __init__(self, detail: Detail | None = None) -> None:
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider([self.reader])
        self.instance = Recorder(
            "engine/1.2", meter_provider=self.provider, detail=detail
        ).instance("press", "default")

    def points(self, name: str) -> list[tuple[dict[str, object], object]]:
        data = self.reader.get_metrics_data()
        return [
            (dict(point.attributes), point)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]


@pytest.fixture
def meter():
    meter = Meter()
    yield meter
    meter.provider.shutdown()


def test_a_run_is_active_from_its_claim_to_its_end(meter):
    run = meter.instance.run("r1")
    run.claim(FIRST)
    ((labels, active),) = meter.points("tenure.run.active")
    assert (labels, active.value) == (LABELS, 1)
    run.release(FIRST, Outcome.COMPLETED)
    run.ended(Outcome.COMPLETED)
    run.ended(Outcome.COMPLETED)
    ((labels, active),) = meter.points("tenure.run.active")
    assert (labels, active.value) == (LABELS, 0)


def test_durations_below_a_second_are_told_apart(meter):
    run = meter.instance.run("r1")
    run.ended(Outcome.COMPLETED)
    ((_, duration),) = meter.points("tenure.run.duration")
    bounds = duration.explicit_bounds
    assert bounds[0] == 0.001
    assert sum(bound < 1 for bound in bounds) >= 8
    assert bounds[-1] >= 300, "a run may wait for a model"


def test_a_run_that_never_claimed_was_never_active_but_took_its_time(meter):
    run = meter.instance.run("r1")
    run.ended(Outcome.LOST)
    assert meter.points("tenure.run.active") == []
    ((labels, duration),) = meter.points("tenure.run.duration")
    assert labels == {**LABELS, "tenure.run.outcome": "lost"}
    assert duration.count == 1


def test_supersteps_are_measured_at_every_level_of_detail():
    meter = Meter(Detail.OWNERSHIP)
    run = meter.instance.run("r1")
    run.claim(FIRST)
    run.superstep_ended(FIRST, 0)
    for index in (1, 2):
        run.superstep_started(FIRST, index)
        run.superstep_ended(FIRST, index)
    ((labels, duration),) = meter.points("tenure.superstep.duration")
    assert labels == LABELS
    assert duration.count == 2
    assert 0 <= duration.sum < 60
    meter.provider.shutdown()


def test_commits_and_discards_are_counted_by_cause_and_fence(meter):
    run = meter.instance.run("r1")
    run.claim(FIRST)
    run.commit(FIRST, {"draft": 1})
    run.commit(FIRST, {})
    run.discard(FIRST, {}, cause=DiscardCause.FINALIZER, fenced=True, detached=True)
    run.discard(FIRST, {"draft": 1}, cause=DiscardCause.FAILED)
    ((labels, commits),) = meter.points("tenure.commits")
    assert (labels, commits.value) == (LABELS, 2)
    found = {
        (labels["tenure.discard.cause"], labels["tenure.discard.fenced"]): point.value
        for labels, point in meter.points("tenure.discards")
    }
    assert found == {("finalizer", True): 1, ("failed", False): 1}


def test_labels_never_name_a_run_or_an_instance(meter):
    run = meter.instance.run("r1")
    run.claim(FIRST)
    run.superstep_started(FIRST, 1)
    run.commit(FIRST, {})
    run.discard(FIRST, {}, cause=DiscardCause.SWEEP)
    run.superstep_ended(FIRST, 1)
    run.ended(Outcome.COMPLETED)
    names = {
        name
        for metric in (
            "tenure.run.duration",
            "tenure.superstep.duration",
            "tenure.commits",
            "tenure.discards",
        )
        for labels, _ in meter.points(metric)
        for name in labels
    }
    assert names == {
        "tenure.engine",
        "tenure.workflow.name",
        "tenure.run.outcome",
        "tenure.discard.cause",
        "tenure.discard.fenced",
    }


def test_nothing_is_measured_where_nobody_collects(meter):
    assert not Recorder("engine/1.2").instance("press", "i").run("r1").measuring
    assert meter.instance.run("r1").measuring


def test_an_instrument_that_raises_does_not_keep_the_operation_back(
    meter, heard, caplog
):
    class Broken:
        def add(self, *_args: object) -> None:
            raise RuntimeError

    run = meter.instance.run("r1")
    object.__setattr__(meter.instance.recorder.instruments, "commits", Broken())
    run.claim(FIRST)
    run.commit(FIRST, {})
    assert [operation.name for operation in heard] == ["claim", "commit"]
    assert "could not be recorded" in caplog.text
