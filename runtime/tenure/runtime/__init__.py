"""The engine: runs that can never touch what another run owns.

from tenure.runtime import WorkflowBuilder, WorkflowContext, executor
"""

from typing import TYPE_CHECKING, Any

from tenure.instrumentation.operations import Outcome
from tenure.runtime._builder import ExecutorRef, WorkflowBuilder
from tenure.runtime._checkpoint import (
    Checkpoint,
    CheckpointInfo,
    Claimed,
    Held,
    PendingRequest,
    Store,
)
from tenure.runtime._context import WorkflowContext
from tenure.runtime._detached import AttachedStream
from tenure.runtime._drawing import to_dot, to_mermaid
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import (
    CheckpointFailed,
    ExecutorCompleted,
    ExecutorFailed,
    ExecutorInvoked,
    OutputYielded,
    RequestRaised,
    RunEnded,
    RunFailed,
    RunStarted,
    SubworkflowEvent,
    SuperstepCompleted,
    SuperstepStarted,
    WorkflowEvent,
)
from tenure.runtime._executor import (
    Executor,
    FunctionExecutor,
    executor,
    handler,
    response_handler,
)
from tenure.runtime._graph import Case
from tenure.runtime._handle import RunHandle
from tenure.runtime._holding import ConflictPolicy
from tenure.runtime._instance import Instance
from tenure.runtime._keeper import GraphChangePolicy, SaveFailurePolicy
from tenure.runtime._keys import StateKey, append, last
from tenure.runtime._retry import Retry
from tenure.runtime._run import RunResult
from tenure.runtime._state import StateSnapshot
from tenure.runtime._stream import RunStream
from tenure.runtime._subworkflow import WorkflowExecutor
from tenure.runtime._workflow import Workflow
from tenure.runtime.errors import (
    CheckpointError,
    CheckpointMismatchError,
    CheckpointNotFoundError,
    ConvergenceError,
    DeadlineError,
    DefinitionError,
    EventLoopError,
    EventsMissedError,
    ExecutorError,
    IsolationError,
    MessageTypeError,
    OwnershipLostError,
    ReducerError,
    ResponseTypeError,
    RunError,
    RunNotFoundError,
    StateTypeError,
    StreamConsumedError,
    UnknownRequestError,
    UnknownTargetError,
    WorkflowBusyError,
    WorkflowError,
    WriteConflictError,
)
from tenure.runtime.stores import MemoryStore

if TYPE_CHECKING:
    from tenure.runtime._state_types import register_state_type
    from tenure.runtime.stores.sqlite import SqliteStore

__all__ = [
    "AttachedStream",
    "Case",
    "Checkpoint",
    "CheckpointError",
    "CheckpointFailed",
    "CheckpointInfo",
    "CheckpointMismatchError",
    "CheckpointNotFoundError",
    "Claimed",
    "ConflictPolicy",
    "ConvergenceError",
    "DeadlineError",
    "DefinitionError",
    "Epoch",
    "EventLoopError",
    "EventsMissedError",
    "Executor",
    "ExecutorCompleted",
    "ExecutorError",
    "ExecutorFailed",
    "ExecutorInvoked",
    "ExecutorRef",
    "FunctionExecutor",
    "GraphChangePolicy",
    "Held",
    "Instance",
    "IsolationError",
    "MemoryStore",
    "MessageTypeError",
    "Outcome",
    "OutputYielded",
    "OwnershipLostError",
    "PendingRequest",
    "ReducerError",
    "RequestRaised",
    "ResponseTypeError",
    "Retry",
    "RunEnded",
    "RunError",
    "RunFailed",
    "RunHandle",
    "RunId",
    "RunNotFoundError",
    "RunResult",
    "RunStarted",
    "RunStream",
    "SaveFailurePolicy",
    "SqliteStore",
    "StateKey",
    "StateSnapshot",
    "StateTypeError",
    "Store",
    "StreamConsumedError",
    "SubworkflowEvent",
    "SuperstepCompleted",
    "SuperstepStarted",
    "UnknownRequestError",
    "UnknownTargetError",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowBusyError",
    "WorkflowContext",
    "WorkflowError",
    "WorkflowEvent",
    "WorkflowExecutor",
    "WriteConflictError",
    "append",
    "executor",
    "handler",
    "last",
    "register_state_type",
    "response_handler",
    "to_dot",
    "to_mermaid",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - what a module holds has any type
    """Load what needs msgspec when it is asked for."""
    if name == "SqliteStore":
        from tenure.runtime.stores.sqlite import SqliteStore

        return SqliteStore
    if name == "register_state_type":
        from tenure.runtime._state_types import register_state_type

        return register_state_type
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
