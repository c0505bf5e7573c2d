"""What a run tells its consumer: frozen facts that name their run."""

from dataclasses import dataclass
from typing import Any

from tenure.instrumentation.operations import Outcome
from tenure.runtime._checkpoint import PendingRequest
from tenure.runtime._epoch import Epoch, RunId


@dataclass(frozen=True, slots=True)
class WorkflowEvent:
    """What all events say.

    Attributes:
        run_id: The run that it belongs to.
        epoch: That run's epoch.
        seq: Its position among the events of the run, from 1.
    """

    run_id: RunId
    epoch: Epoch
    seq: int


@dataclass(frozen=True, slots=True)
class RunStarted(WorkflowEvent):
    """The run owns its instance and begins.

    With a store, what it begins with is kept by then: should its process die, another
    one can go on (not with `on_save_failure="warn"`, after a `CheckpointFailed`).
    """


@dataclass(frozen=True, slots=True)
class SuperstepStarted(WorkflowEvent):
    """A superstep delivers its messages.

    Attributes:
        superstep: Its number, from 1.
    """

    superstep: int


@dataclass(frozen=True, slots=True)
class ExecutorInvoked(WorkflowEvent):
    """An executor begins to handle a message.

    Attributes:
        superstep: Number of the superstep, from 1.
        executor_id: The executor.
    """

    superstep: int
    executor_id: str


@dataclass(frozen=True, slots=True)
class OutputYielded(WorkflowEvent):
    """An executor yielded an output. Its superstep may still fail.

    Attributes:
        superstep: Number of the superstep, from 1.
        executor_id: The executor.
        data: The output.
    """

    superstep: int
    executor_id: str
    data: Any


@dataclass(frozen=True, slots=True)
class ExecutorCompleted(WorkflowEvent):
    """An executor has handled a message.

    Attributes:
        superstep: Number of the superstep, from 1.
        executor_id: The executor.
    """

    superstep: int
    executor_id: str


@dataclass(frozen=True, slots=True)
class RequestRaised(WorkflowEvent):
    """An executor asks something of the outside; the question is committed.

    Attributes:
        superstep: Number of the superstep, from 1.
        executor_id: The executor.
        request: The question and its id.
    """

    superstep: int
    executor_id: str
    request: PendingRequest


@dataclass(frozen=True, slots=True)
class SuperstepCompleted(WorkflowEvent):
    """A superstep has been committed.

    Attributes:
        superstep: Its number, from 1.
        committed: The state keys that it changed.
    """

    superstep: int
    committed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckpointFailed(WorkflowEvent):
    """A checkpoint could not be saved, and the run goes on as it was asked to.

    Attributes:
        superstep: Number of the superstep; 0 at the run's entry.
        error: Why not.
    """

    superstep: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class ExecutorFailed(WorkflowEvent):
    """An executor raised. What the superstep had staged is discarded already.

    Attributes:
        superstep: Number of the superstep, from 1.
        executor_id: The executor.
        error: What it raised.
    """

    superstep: int
    executor_id: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class SubworkflowEvent(WorkflowEvent):
    """A run of a sub-workflow tells something.

    Attributes:
        superstep: Number of the parent's superstep, from 1.
        path: Executors that lead to it, the outermost first.
        event: What it tells; it names its own run.
    """

    superstep: int
    path: tuple[str, ...]
    event: WorkflowEvent


@dataclass(frozen=True, slots=True)
class RunFailed(WorkflowEvent):
    """The run has failed and owns nothing any more.

    Attributes:
        error: What the consumer will be raised.
    """

    error: BaseException


@dataclass(frozen=True, slots=True)
class RunEnded(WorkflowEvent):
    """The run has ended without a failure and owns nothing any more.

    Attributes:
        outcome: How.
        undelivered: Executors for which a fan-in still held messages that nothing will
            complete any more: they are dropped with the run.
    """

    outcome: Outcome
    undelivered: tuple[str, ...] = ()
