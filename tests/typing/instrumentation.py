"""What type checkers say of the instrumentation: checked, never run.

A line that must be refused carries `type: ignore`, and both checkers report an ignore
that is not needed.
"""

from typing import assert_type

from opentelemetry.trace import Span

from tenure.instrumentation import (
    Detail,
    InstanceRecorder,
    Recorder,
    RunRecorder,
    add_listener,
)
from tenure.instrumentation.operations import (
    Claim,
    DiscardCause,
    Operation,
    Outcome,
    Owner,
    RunRef,
    WriteSet,
)


def what_a_recorder_gives() -> None:
    recorder = Recorder("engine/1.2", detail=Detail.OWNERSHIP)
    instance = recorder.instance("press", "default")
    run = instance.run("r1")
    assert_type(instance, InstanceRecorder)
    assert_type(run, RunRecorder)
    assert_type(run.ref, RunRef | None)
    assert_type(run.executor_started("writer", 1), Span | None)


def what_a_run_takes(run: RunRecorder, owner: Owner) -> None:
    run.claim(owner, superseded=1)
    run.release(owner, Outcome.COMPLETED)
    run.commit(owner, {"draft": 1})
    run.discard(owner, None, cause=DiscardCause.SWEEP)
    run.claim(1)  # type: ignore[arg-type]
    run.release(owner, "completed")  # type: ignore[arg-type]
    run.commit(owner, ["draft"])  # type: ignore[arg-type]
    run.discard(owner, None)  # type: ignore[call-arg]


def an_operation_is_frozen(claim: Claim, writes: WriteSet) -> None:
    claim.seq = 2  # type: ignore[misc]
    writes.omitted = 1  # type: ignore[misc]
    assert_type(writes.foreign_to(1), tuple[tuple[str, int], ...])


def a_listener_takes_operations() -> None:
    def of_operations(operation: Operation) -> None:
        assert_type(operation.stale, bool | None)

    def of_claims(claim: Claim) -> None:
        assert_type(claim.superseded, int | None)

    add_listener(of_operations)
    add_listener(of_claims)  # type: ignore[arg-type]
