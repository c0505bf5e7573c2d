"""Errors of the runtime.

WorkflowError
├─ DefinitionError (ValueError)          the graph cannot run as drawn
├─ RunError
│  ├─ WorkflowBusyError                  another run owns the instance
│  ├─ ExecutorError                      an executor raised: see `__cause__`
│  ├─ DeadlineError (TimeoutError)       the run's deadline has passed
│  ├─ ConvergenceError                   messages were left after the last superstep
│  ├─ WriteConflictError                 two executors staged one key in one superstep
│  ├─ ReducerError                       a key's reducer cannot join what was staged
│  ├─ MessageTypeError (TypeError)       no handler takes this message
│  ├─ UnknownTargetError (LookupError)   no edge leads to the named executor
│  ├─ UnknownRequestError (LookupError)  no such request waits for an answer
│  ├─ ResponseTypeError (TypeError)      an answer is not of the type that was asked for
│  ├─ StateTypeError (TypeError)         a checkpoint cannot hold values of this type
│  ├─ IsolationError (TypeError)         a value cannot be copied, hence not isolated
│  ├─ RunNotFoundError (LookupError)     no run of that id can be attached to
│  ├─ EventsMissedError (LookupError)    events that were asked for are not kept
│  ├─ StreamConsumedError                a stream has been read to its end
│  └─ EventLoopError                     the run's event loop is closed, or another one
├─ OwnershipLostError                    a successor owns the instance now
└─ CheckpointError                       a checkpoint cannot be kept or read
   ├─ CheckpointNotFoundError (LookupError)  there is none of that id, or none any more
   └─ CheckpointMismatchError               it was taken of another graph

Facts go to the constructor and stay attributes; the sentence is made when it is asked
for, so that every error survives pickling.
"""

from tenure.runtime._error_roots import RunError, WorkflowError
from tenure.runtime._run_errors import (
    ConvergenceError,
    DeadlineError,
    EventLoopError,
    EventsMissedError,
    ExecutorError,
    IsolationError,
    MessageTypeError,
    ReducerError,
    ResponseTypeError,
    RunNotFoundError,
    StateTypeError,
    StreamConsumedError,
    UnknownRequestError,
    UnknownTargetError,
    WorkflowBusyError,
    WriteConflictError,
)

__all__ = [
    "CheckpointError",
    "CheckpointMismatchError",
    "CheckpointNotFoundError",
    "ConvergenceError",
    "DeadlineError",
    "DefinitionError",
    "EventLoopError",
    "EventsMissedError",
    "ExecutorError",
    "IsolationError",
    "MessageTypeError",
    "OwnershipLostError",
    "ReducerError",
    "ResponseTypeError",
    "RunError",
    "RunNotFoundError",
    "StateTypeError",
    "StreamConsumedError",
    "UnknownRequestError",
    "UnknownTargetError",
    "WorkflowBusyError",
    "WorkflowError",
    "WriteConflictError",
]


class DefinitionError(WorkflowError, ValueError):
    """The graph cannot run as drawn.

    Args:
        workflow: Name of the workflow.
        problem: What is wrong, naming the executors.
        remedy: How to mend it.
    """

    def __init__(self, workflow: str, problem: str, remedy: str) -> None:
        super().__init__(workflow, problem, remedy)
        self.workflow = workflow
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"workflow {self.workflow!r}: {self.problem}. {self.remedy}."


class OwnershipLostError(WorkflowError):
    """A successor owns the instance now: what this run asked for was refused.

    This is not `WorkflowBusyError`: the run that raises had been the owner.

    Args:
        action: What was refused.
        epoch: Epoch of the run that asked; 0 if it has none yet.
        owner: Epoch of the owner; 0 if it is not known, or has none yet.
    """

    def __init__(self, action: str, epoch: int, owner: int) -> None:
        super().__init__(action, epoch, owner)
        self.action = action
        self.epoch = epoch
        self.owner = owner

    def __str__(self) -> str:
        own = f"epoch {self.epoch}" if self.epoch else "no epoch yet"
        owner = f"epoch {self.owner}" if self.owner else "another run"
        return (
            f"{self.action} refused: the run has {own}, and {owner} owns the instance"
        )


class CheckpointError(WorkflowError):
    """A checkpoint cannot be kept or read.

    Args:
        problem: What is wrong, naming the checkpoint.
        reason: Why.
    """

    def __init__(self, problem: str, reason: str) -> None:
        super().__init__(problem, reason)
        self.problem = problem
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.problem}: {self.reason}"


class CheckpointNotFoundError(CheckpointError, LookupError):
    """There is no checkpoint of that id, any more or ever.

    Args:
        instance: The instance.
        checkpoint_id: What was asked for; `(any)` for whichever is the newest.
    """

    def __init__(self, instance: str, checkpoint_id: str) -> None:
        super().__init__(instance, checkpoint_id)
        self.instance = instance
        self.checkpoint_id = checkpoint_id

    def __str__(self) -> str:
        if self.checkpoint_id == "(any)":
            return (
                f"instance {self.instance!r} has no checkpoint: no run has saved one, "
                f"or they have been erased. Run a message"
            )
        return (
            f"instance {self.instance!r} has no checkpoint {self.checkpoint_id!r}: it "
            f"may have been pruned or erased; await instance.history() lists what is "
            f"left"
        )


class CheckpointMismatchError(CheckpointError):
    """A checkpoint was taken of another graph.

    Args:
        checkpoint_id: The checkpoint.
        expected: Signature of the graph.
        found: Signature in the checkpoint.
        reason: Why this graph cannot go on from it, if that is more than the change.
    """

    def __init__(
        self, checkpoint_id: str, expected: str, found: str, reason: str = ""
    ) -> None:
        super().__init__(checkpoint_id, expected)
        self.args = (checkpoint_id, expected, found, reason)
        self.checkpoint_id = checkpoint_id
        self.expected = expected
        self.found = found
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"checkpoint {self.checkpoint_id!r} was taken of another graph (signature "
            f"{self.found}, this one is {self.expected}): "
            f"{self.reason or 'its executors, types, edges or conditions have changed'}"
            f". Go on with the graph of then; run a message, which begins with the "
            f"state and drops what was left undone; or, if the change does no harm, "
            f'build the workflow with on_graph_change="warn"'
        )
