"""What this instrumentor knows of agent-framework: versions, places, private names."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

DISTRIBUTION: Final = "agent-framework-core"
REQUIREMENT: Final = f"{DISTRIBUTION} >= 1.20, < 1.24"
SUPPORTED: Final = ("1.20", "1.21", "1.22", "1.23")
NOT_INSTALLED: Final = "not installed"

SCOPE: Final = "tenure.instrumentation.agent_framework"
"""Instrumentation scope of the spans and metrics told about this engine."""

# Modules and classes that hold the wrap points.

WORKFLOW: Final = ("agent_framework._workflows._workflow", "Workflow")
RUNNER: Final = ("agent_framework._workflows._runner", "RunnerImpl")
STATE: Final = ("agent_framework._workflows._state", "State")
EXECUTOR: Final = ("agent_framework._workflows._executor", "Executor")
CONTEXT: Final = ("agent_framework._workflows._workflow_context", "WorkflowContext")
RUNNER_CONTEXT: Final = (
    "agent_framework._workflows._runner_context",
    "InProcRunnerContext",
)
FAN_IN: Final = ("agent_framework._workflows._edge_runner", "FanInEdgeRunner")

# Private attributes that are read, never written.

PENDING: Final = "_pending"
COMMITTED: Final = "_committed"
RUNNER_OF_WORKFLOW: Final = "_runner"
CONTEXT_OF_WORKFLOW: Final = "_runner_context"
GUARD: Final = "_is_run_active"
ITERATION: Final = "_iteration"
EDGE_RUNNERS: Final = "_edge_runners"
CONTEXT_OF_RUNNER: Final = "_ctx"
BUFFER: Final = "_buffer"
EDGES: Final = "_edges"
MESSAGES: Final = "_messages"
EVENTS: Final = "_event_queue"
QUEUED: Final = "_queue"

# Reserved state keys, and the functions whose calls tell commits apart.

EXECUTOR_STATE_KEY: Final = "_executor_state"
EDGE_STATE_KEY: Final = "_edge_state"
RESERVED_KEYS: Final = (EXECUTOR_STATE_KEY, EDGE_STATE_KEY)
SUPERSTEP_LOOP: Final = "run_until_convergence"
RUN_ENTRY: Final = "_run_workflow_with_tracing"
CHECKPOINT_PREPARATION: Final = "_prepare_checkpoint_state"

# Values of enumerations and of event types.

STATUS_EVENT: Final = "status"
OUTPUT_EVENTS: Final = frozenset({"output", "intermediate"})
IDLE: Final = "IDLE"
IDLE_WITH_PENDING_REQUESTS: Final = "IDLE_WITH_PENDING_REQUESTS"
FAILED: Final = "FAILED"


def installed_version() -> str:
    """Return the installed version of the engine, or `not installed`."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return NOT_INSTALLED


def is_supported(installed: str) -> bool:
    """Say whether the wrap points of version `installed` are known.

    Args:
        installed: Version of the engine's distribution.
    """
    return ".".join(installed.split(".")[:2]) in SUPPORTED
