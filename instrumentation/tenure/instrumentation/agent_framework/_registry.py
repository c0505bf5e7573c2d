"""What the instrumentor knows of the engine's objects, without keeping them alive."""

import re
from typing import Final

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import Acting
from tenure.instrumentation.agent_framework._calls import Foreign
from tenure.instrumentation.agent_framework._identity import WeakIdentityMap
from tenure.instrumentation.agent_framework._tenures import Instance, Tenure
from tenure.instrumentation.recorder import Recorder

_GENERATED: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the engine appends to the name of a workflow that was given none."""

# How often the workflow was met by an instrumentation of this process. Epochs and
# positions count from 1 in each, so that each needs an identity of its own.
_met: Final[WeakIdentityMap[int]] = WeakIdentityMap()


class Registry:
    """One instrumentation of the engine.

    Args:
        recorder: Whom everything is told to.

    Attributes:
        by_state: The instance that a state object belongs to, once it was claimed.
        by_context: The instance whose messages and events a runner's context holds.
        handed: Who acts when a context object, handed to an executor, is used.
        origins: The run that a message or an event comes from.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Final = recorder
        self.active = True
        self.by_state: Final[WeakIdentityMap[Instance]] = WeakIdentityMap()
        self.by_context: Final[WeakIdentityMap[Instance]] = WeakIdentityMap()
        self.handed: Final[WeakIdentityMap[Acting]] = WeakIdentityMap()
        self.origins: Final[WeakIdentityMap[Tenure]] = WeakIdentityMap()

    def instance_of(self, workflow: Foreign) -> Instance:
        """Return the instance that runs of `workflow` own; make it at the first."""
        state = getattr(workflow, _engine.RUNNER_OF_WORKFLOW).state
        instance = self.by_state.get(state)
        if instance is None:
            instance = Instance(
                self.recorder.instance(_name_of(workflow), _identity_of(workflow))
            )
            self.by_state.put(state, instance)
        context = getattr(workflow, _engine.CONTEXT_OF_WORKFLOW, None)
        if context is not None and self.by_context.get(context) is not instance:
            self.by_context.put(context, instance)
        return instance

    def close(self) -> None:
        """Forget everything: calls of the engine pass through untouched."""
        self.active = False
        for known in (self.by_state, self.by_context, self.handed, self.origins):
            known.clear()


def _name_of(workflow: Foreign) -> str:
    """Return a name that is the same for all instances of one definition."""
    return _GENERATED.sub("", str(workflow.name or "")) or type(workflow).__name__


def _identity_of(workflow: Foreign) -> str:
    times = (_met.get(workflow) or 0) + 1
    _met.put(workflow, times)
    return str(workflow.id) if times == 1 else f"{workflow.id}.{times}"
