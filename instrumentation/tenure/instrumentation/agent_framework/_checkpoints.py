"""Checkpoints: from which epoch each of their parts comes."""

from collections.abc import Mapping
from typing import NamedTuple

from tenure.instrumentation._harmless import harmless
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._acting import ambient
from tenure.instrumentation.agent_framework._calls import (
    Arguments,
    Call,
    Foreign,
    Keywords,
    argument,
)
from tenure.instrumentation.agent_framework._leftovers import waiting_messages
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.agent_framework._tenures import Tenure, staged_keys

_PARENT_ARGUMENT = 3


class CheckpointWraps:
    """What is wrapped to learn what checkpoints are made of.

    Args:
        registry: What is known of the engine's objects.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def set_executor_state(
        self, wrapped: Call, runner: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Note which epoch takes the snapshot of an executor."""
        # The engine does not wait in there: what it reads is what is staged now.
        staged = _engine.EXECUTOR_STATE_KEY in staged_keys(runner.state)
        result = await wrapped(*args, **kwargs)
        part = argument(args, kwargs, 0, "executor_id")
        self._snapshot_taken(runner.state, part, staged=staged)
        return result

    async def create_checkpoint(
        self, wrapped: Call, context: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell that a checkpoint was saved, and the epochs of its parts."""
        # As the engine does, before anything is awaited.
        made_of = self._made_of(context)
        checkpoint = await wrapped(*args, **kwargs)
        parent = argument(args, kwargs, _PARENT_ARGUMENT, "previous_checkpoint_id")
        if made_of is not None:
            self._saved(made_of, checkpoint, parent)
        return checkpoint

    def mark_resumed(
        self, wrapped: Call, runner: Foreign, args: Arguments, kwargs: Keywords
    ) -> Foreign:
        """Tell that a checkpoint was restored, and the epochs of its parts."""
        result = wrapped(*args, **kwargs)
        self._restored(runner, argument(args, kwargs, 0, "checkpoint"))
        return result

    @harmless
    def _snapshot_taken(self, state: Foreign, part: Foreign, *, staged: bool) -> None:
        instance = self._registry.by_state.get(state)
        if instance is None:
            return
        who = ambient(instance)
        epoch = instance.owner.epoch if who is None else who.tenure.epoch
        if who is not None:
            who.tenure.taken[str(part)] = None
        instance.parts.add(_engine.EXECUTOR_STATE_KEY, str(part), epoch, staged=staged)

    @harmless
    def _made_of(self, context: Foreign) -> "_MadeOf | None":
        instance = self._registry.by_context.get(context)
        who = None if instance is None else ambient(instance)
        if instance is None or who is None:
            return None
        taken = tuple(who.tenure.taken)
        who.tenure.taken.clear()
        return _MadeOf(who.tenure, instance.parts.snapshot(), taken)

    @harmless
    def _saved(self, made_of: "_MadeOf", checkpoint: Foreign, parent: Foreign) -> None:
        tenure, parts, taken = made_of
        instance = tenure.instance
        instance.parts.remember(str(checkpoint), parts)
        tenure.recorder.checkpoint_saved(
            instance.owner, str(checkpoint), _name(parent), parts, taken=taken
        )

    @harmless
    def _restored(self, runner: Foreign, checkpoint: Foreign) -> None:
        instance = self._registry.by_state.get(runner.state)
        if instance is None:
            return
        kept: Mapping[str, Mapping[str, object]] = checkpoint.state
        found = {key: tuple(kept[key]) for key in _engine.RESERVED_KEYS if key in kept}
        parts = instance.parts.restored(str(checkpoint.checkpoint_id), found)
        who = ambient(instance)
        if who is None:
            return
        for message in waiting_messages(runner):
            # What was restored is the restoring run's own: it is the heir.
            self._registry.origins.drop(message)
        who.tenure.recorder.checkpoint_restored(
            instance.owner,
            str(checkpoint.checkpoint_id),
            _name(checkpoint.previous_checkpoint_id),
            parts,
        )


class _MadeOf(NamedTuple):
    """What a checkpoint is made of.

    Attributes:
        tenure: The run that makes it.
        parts: Each part that the committed state has, and the epoch it was taken in.
        taken: Executors whose snapshots were taken for it.
    """

    tenure: Tenure
    parts: dict[str, int]
    taken: tuple[str, ...]


def _name(checkpoint: Foreign) -> str | None:
    return None if checkpoint is None else str(checkpoint)
