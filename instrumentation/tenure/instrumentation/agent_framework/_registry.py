"""What the instrumentor knows of the engine's objects, without keeping them alive."""

import weakref
from typing import Any, Final
from weakref import WeakKeyDictionary

from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import Acting
from tenure.instrumentation.agent_framework._calls import (
    Foreign,
)
from tenure.instrumentation.agent_framework._tenures import Instance, Tenure
from tenure.instrumentation.recorder import Recorder


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
            recorder = self.recorder.instance(
                str(workflow.name or workflow.id), str(workflow.id)
            )
            instance = Instance(recorder)
            self._by_state[state] = instance
        context = getattr(workflow, _engine.CONTEXT_OF_WORKFLOW, None)
        if context is not None:
            self._by_context[context] = instance
        return instance

    def instance_of_state(self, state: object) -> Instance | None:
        """Return the instance whose state object this is, once it was claimed."""
        return self._by_state.get(state)

    def instance_of_context(self, context: object) -> Instance | None:
        """Return the instance whose messages and events `context` holds."""
        return self._by_context.get(context)

    def hand(self, context: object, acting: Acting) -> None:
        """Bind the context object that an executor gets to who acts."""
        self._handed[context] = acting

    def handed(self, context: object) -> Acting | None:
        """Return who acts when `context`, handed to an executor, is used."""
        return self._handed.get(context)

    def close(self) -> None:
        """Forget everything: calls of the engine pass through untouched."""
        self.active = False
        self._by_state.clear()
        self._by_context.clear()
        self._handed.clear()
        self.origins.clear()
