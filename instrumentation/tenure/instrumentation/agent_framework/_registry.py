"""What the instrumentor knows of the engine's objects, without keeping them alive."""

import re
import weakref
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import Acting
from tenure.instrumentation.agent_framework._calls import (
    Foreign,
)
from tenure.instrumentation.agent_framework._tenures import Instance, Tenure
from tenure.instrumentation.recorder import Recorder

_T = TypeVar("_T")

_GENERATED: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""What the engine appends to the name of a workflow that was given none."""

# How often the workflow was met by an instrumentation of this process. Epochs and
# positions count from 1 in each, so that each needs an identity of its own.
_met: Final[WeakKeyDictionary[Any, int]] = WeakKeyDictionary()


class Origins:
    """Which run a message or an event comes from.

    Keyed by identity, because messages compare by value and are not hashable.
    """

    def __init__(self) -> None:
        self._origins: Final[dict[int, tuple[weakref.ref[Any], Tenure]]] = {}

    def stamp(self, thing: object, tenure: Tenure) -> None:
        """Note that `thing` comes from `tenure`."""
        identity, origins = id(thing), self._origins

        def forget(reference: "weakref.ref[Any]") -> None:
            entry = origins.get(identity)
            if entry is not None and entry[0] is reference:
                del origins[identity]

        origins[identity] = (weakref.ref(thing, forget), tenure)

    def of(self, thing: object) -> Tenure | None:
        """Return where `thing` comes from, where that is known."""
        entry = self._origins.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def clear(self) -> None:
        """Forget everything."""
        self._origins.clear()


class Registry:
    """One instrumentation of the engine.

    Args:
        recorder: Whom everything is told to.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder: Final = recorder
        self.active = True
        self.origins: Final = Origins()
        self._by_state: Final[WeakKeyDictionary[Any, Instance]] = WeakKeyDictionary()
        self._by_context: Final[WeakKeyDictionary[Any, Instance]] = WeakKeyDictionary()
        self._handed: Final[WeakKeyDictionary[Any, Acting]] = WeakKeyDictionary()

    def instance_of_workflow(self, workflow: Foreign) -> Instance:
        """Return the instance that runs of `workflow` own; make it at the first."""
        state = getattr(workflow, _engine.RUNNER_OF_WORKFLOW).state
        instance = self._by_state.get(state)
        if instance is None:
            instance = Instance(
                self.recorder.instance(_name_of(workflow), _identity_of(workflow))
            )
            self._by_state[state] = instance
        context = getattr(workflow, _engine.CONTEXT_OF_WORKFLOW, None)
        if context is not None:
            self._by_context[context] = instance
        return instance

    def instance_of_state(self, state: object) -> Instance | None:
        """Return the instance whose state object this is, once it was claimed."""
        return _look_up(self._by_state, state)

    def instance_of_context(self, context: object) -> Instance | None:
        """Return the instance whose messages and events `context` holds."""
        return _look_up(self._by_context, context)

    def hand(self, context: object, acting: Acting) -> None:
        """Bind the context object that an executor gets to who acts."""
        self._handed[context] = acting

    def handed(self, context: object) -> Acting | None:
        """Return who acts when `context`, handed to an executor, is used."""
        return _look_up(self._handed, context)

    def close(self) -> None:
        """Forget everything: calls of the engine pass through untouched."""
        self.active = False
        self._by_state.clear()
        self._by_context.clear()
        self._handed.clear()
        self.origins.clear()


def _look_up(known: "WeakKeyDictionary[Any, _T]", thing: object) -> _T | None:
    try:
        return known.get(thing)
    except TypeError:
        # Not hashable, or without weak references: not what the engine itself makes.
        return None


def _name_of(workflow: Foreign) -> str:
    """Return a name that is the same for all instances of one definition."""
    return _GENERATED.sub("", str(workflow.name or "")) or type(workflow).__name__


def _identity_of(workflow: Foreign) -> str:
    times = _met[workflow] = _met.get(workflow, 0) + 1
    return str(workflow.id) if times == 1 else f"{workflow.id}.{times}"
