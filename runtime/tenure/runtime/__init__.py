"""The engine: runs that can never touch what another run owns.

from tenure.runtime import WorkflowBuilder, WorkflowContext, executor
"""

from tenure.instrumentation.operations import Outcome
from tenure.runtime._builder import ExecutorRef, WorkflowBuilder
from tenure.runtime._context import WorkflowContext
from tenure.runtime._epoch import Epoch, RunId
from tenure.runtime._events import (
    ExecutorCompleted,
    ExecutorFailed,
    ExecutorInvoked,
    OutputYielded,
    RunEnded,
    RunFailed,
    RunStarted,
    SuperstepCompleted,
    SuperstepStarted,
    WorkflowEvent,
)
from tenure.runtime._executor import Executor, FunctionExecutor, executor, handler
from tenure.runtime._graph import Case
from tenure.runtime._handle import RunHandle
from tenure.runtime._instance import ConflictPolicy, Instance
from tenure.runtime._keys import StateKey, append, last
from tenure.runtime._run import RunResult
from tenure.runtime._state import StateSnapshot
from tenure.runtime._stream import RunStream
from tenure.runtime._workflow import Workflow
from tenure.runtime.errors import (
    ConvergenceError,
    DefinitionError,
    EventLoopError,
    ExecutorError,
    IsolationError,
    MessageTypeError,
    OwnershipLostError,
    ReducerError,
    RunError,
    StreamConsumedError,
    UnknownTargetError,
    WorkflowBusyError,
    WorkflowError,
    WriteConflictError,
)

__all__ = [
    "Case",
    "ConflictPolicy",
    "ConvergenceError",
    "DefinitionError",
    "Epoch",
    "EventLoopError",
    "Executor",
    "ExecutorCompleted",
    "ExecutorError",
    "ExecutorFailed",
    "ExecutorInvoked",
    "ExecutorRef",
    "FunctionExecutor",
    "Instance",
    "IsolationError",
    "MessageTypeError",
    "Outcome",
    "OutputYielded",
    "OwnershipLostError",
    "ReducerError",
    "RunEnded",
    "RunError",
    "RunFailed",
    "RunHandle",
    "RunId",
    "RunResult",
    "RunStarted",
    "RunStream",
    "StateKey",
    "StateSnapshot",
    "StreamConsumedError",
    "SuperstepCompleted",
    "SuperstepStarted",
    "UnknownTargetError",
    "Workflow",
    "WorkflowBuilder",
    "WorkflowBusyError",
    "WorkflowContext",
    "WorkflowError",
    "WorkflowEvent",
    "WriteConflictError",
    "append",
    "executor",
    "handler",
    "last",
]
