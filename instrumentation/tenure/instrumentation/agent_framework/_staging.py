"""The engine's state: who stages, reads, commits and discards in the shared map."""

import sys
from collections.abc import Callable, Mapping
from typing import Final

from tenure.instrumentation._harmless import harmless
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import (
    Acting,
    acting,
    ambient,
    nobody,
)
from tenure.instrumentation.agent_framework._calls import (
    Arguments,
    Call,
    Foreign,
    Keywords,
    argument,
    being_closed,
    calling_function,
)
from tenure.instrumentation.agent_framework._loops import Cancelled
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._tenures import (
    Instance,
    Tenure,
    staged_keys,
)
from tenure.instrumentation.operations import (
    CommitCause,
    DiscardCause,
    LateKind,
    Outcome,
    Trigger,
)

_COMMIT_CAUSES: Final = {
    _engine.SUPERSTEP_LOOP: CommitCause.SUPERSTEP,
    _engine.RUN_ENTRY: CommitCause.RUN_ENTRY,
    _engine.CHECKPOINT_PREPARATION: CommitCause.CHECKPOINT,
}


class StateWraps:
    """What is wrapped to learn who stages, reads, commits and discards.

    Args:
        registry: What is known of the engine's objects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def stage(
        self, wrapped: Call, state: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Note who stages a key; `set` and `delete` alike."""
        instance = self._registry.by_state.get(state)
        key: str = argument(args, kwargs, 0, "key")
        if instance is None or (instance.silent and key not in _engine.RESERVED_KEYS):
            return wrapped(*args, **kwargs)
        who, before = ambient(instance), instance.writers.get(key)
        epoch = _quiet_owner(instance) if who is None else who.tenure.epoch
        # First, because another thread may commit what the engine is about to stage.
        instance.note(key, epoch)
        try:
            result = wrapped(*args, **kwargs)
        except BaseException:
            instance.note(key, before)
            raise
        if who is not None:
            _staged(who, key)
        if key == _engine.EDGE_STATE_KEY:
            _edges_staged(instance, state, args, kwargs, epoch)
        return result

    def read(
        self, wrapped: Call, state: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell a read of what another epoch has staged; `get` and `has` alike."""
        if not nobody():
            self._reads(state, argument(args, kwargs, 0, "key"))
        return wrapped(*args, **kwargs)

    def commit(
        self, wrapped: Call, state: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell a commit, with who staged what it makes durable."""
        instance = self._registry.by_state.get(state)
        if instance is None or (instance.silent and not _holds_parts(state)):
            return wrapped(*args, **kwargs)
        who = _actor(instance)
        writes = None if who is None else instance.staged(state, who.epoch)
        result = wrapped(*args, **kwargs)
        if who is not None and writes is not None:
            _committed(who, state, writes, calling_function())
        return result

    def discard(
        self, wrapped: Call, state: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell a discard, with whose writes it throws away."""
        instance = self._registry.by_state.get(state)
        if instance is None:
            return wrapped(*args, **kwargs)
        who = _actor(instance)
        writes = None if who is None else instance.staged(state, who.epoch)
        result = wrapped(*args, **kwargs)
        if who is not None and writes is not None:
            _discarded(who, writes, calling_function(), sys.exc_info()[1])
        return result

    def clear(
        self, wrapped: Call, state: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell what a restore throws away before it fills the state."""
        instance = self._registry.by_state.get(state)
        if instance is None:
            return wrapped(*args, **kwargs)
        who = _actor(instance)
        writes = None if who is None else instance.staged(state, who.epoch)
        result = wrapped(*args, **kwargs)
        if who is not None and writes:
            _cleared(who, writes)
        return result

    @harmless
    def _reads(self, state: Foreign, key: Foreign) -> None:
        instance = self._registry.by_state.get(state)
        who = None if instance is None else ambient(instance)
        if instance is None or who is None:
            return
        if who.execution is not None:
            who.execution.reads[key] = None
        writer = instance.writers.get(key)
        if writer is None or writer == who.tenure.epoch:
            return
        if key not in staged_keys(state):
            return
        owner, executor = instance.owner, _executor(who)
        tell_safely(
            who.tenure,
            lambda: who.tenure.recorder.foreign_read(owner, key, writer, executor),
        )


def tell_safely(tenure: Tenure, telling: Callable[[], object]) -> None:
    """Tell at once, or later where this may run inside a finalizer.

    A coroutine that the collector closes runs its cleanup inside the collector, with
    GeneratorExit in flight; exporters hold locks which the interrupted code may own.

    Args:
        tenure: The run that acts.
        telling: Tells the operation; it carries what is true now.
    """
    if being_closed():
        tenure.defer(telling)
    else:
        telling()


@harmless
def _actor(instance: Instance) -> Tenure | None:
    """Return the run that commits or discards; the owner where none is known."""
    found = acting(instance)
    return instance.newest if found is None else found.tenure


def _executor(who: Acting) -> str | None:
    return None if who.execution is None else who.execution.executor


def _quiet_owner(instance: Instance) -> int | None:
    """Return the epoch that stages where no context says so; `None` if it is unknown.

    A run that nobody hears leaves no trace in contexts, and is known by being alone.
    """
    only = instance.only
    return None if only is None or only.heard else only.epoch


@harmless
def _staged(who: Acting, key: str) -> None:
    tenure, instance = who.tenure, who.tenure.instance
    if who.execution is not None:
        who.execution.writes[key] = tenure.epoch
    if not tenure.fenced:
        return
    owner, executor = instance.owner, _executor(who)
    tell_safely(
        tenure,
        lambda: tenure.recorder.late(
            owner,
            LateKind.STAGE,
            writes={key: tenure.epoch},
            ledger=owner.epoch,
            shared=True,
            executor=executor,
        ),
    )


@harmless
def _edges_staged(
    instance: Instance,
    state: Foreign,
    args: Arguments,
    kwargs: Keywords,
    epoch: int | None,
) -> None:
    """Note which edge buffers the next checkpoint will have."""
    if _engine.EDGE_STATE_KEY in staged_keys(state):
        buffers: Mapping[str, object] = argument(args, kwargs, 1, "value", {})
        if epoch is None:
            epoch = instance.owner.epoch
        instance.parts.replace(_engine.EDGE_STATE_KEY, tuple(buffers), epoch)


def _snapshots(writes: Mapping[str, int]) -> list[str]:
    """Return the keys that hold snapshots for a checkpoint."""
    return [key for key in _engine.RESERVED_KEYS if key in writes]


def _holds_parts(state: Foreign) -> bool:
    """Say whether parts of a checkpoint are staged: they are noted for later runs."""
    staged = staged_keys(state)
    return any(key in staged for key in _engine.RESERVED_KEYS)


@harmless
def _committed(
    who: Tenure, state: Foreign, writes: dict[str, int], caller: str
) -> None:
    instance = who.instance
    instance.parts.commit(_snapshots(writes), getattr(state, _engine.COMMITTED, ()))
    instance.prune(state)
    instance.flush()
    # An executor that has the state object itself may commit in mid-superstep.
    cause = _COMMIT_CAUSES.get(caller, CommitCause.SUPERSTEP)
    index = who.superstep if cause is CommitCause.SUPERSTEP else None
    who.recorder.commit(instance.owner, writes, cause=cause, index=index)
    if caller == _engine.SUPERSTEP_LOOP:
        who.end_superstep()


@harmless
def _discarded(
    who: Tenure, writes: dict[str, int], caller: str, error: BaseException | None
) -> None:
    instance, trigger = who.instance, None
    instance.parts.discard()
    instance.flush()
    if isinstance(error, GeneratorExit):
        cause, trigger = DiscardCause.FINALIZER, who.trigger
    elif isinstance(error, Cancelled):
        cause = DiscardCause.CANCELLED
    else:
        cause = DiscardCause.FAILED
    owner = instance.owner
    who.recorder.discard(
        owner,
        writes,
        cause=cause,
        # One map for all runs: whoever asks, it is the owner's that is emptied.
        ledger=owner.epoch,
        shared=True,
        snapshots=_snapshots(writes),
        trigger=trigger,
        index=who.superstep,
        detached=trigger is not None and trigger is not Trigger.CLOSE,
    )
    if caller != _engine.SUPERSTEP_LOOP:
        return
    who.end_superstep()
    if who.orphaned:
        who.finish(Outcome.ABANDONED)
        who.forget()


@harmless
def _cleared(who: Tenure, writes: dict[str, int]) -> None:
    instance = who.instance
    instance.parts.discard()
    owner = instance.owner
    who.recorder.discard(
        owner,
        writes,
        cause=DiscardCause.RUN_ENTRY,
        ledger=owner.epoch,
        shared=True,
        snapshots=_snapshots(writes),
    )
