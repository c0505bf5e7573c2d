"""What a run exchanges: durable copies, and what it gets from other runs by mistake."""

from collections.abc import Mapping
from time import time_ns

from tenure.instrumentation._harmless import harmless
from tenure.instrumentation._telling import RunTelling
from tenure.instrumentation.operations import (
    CheckpointRestore,
    CheckpointSave,
    DeliveryKind,
    ForeignDelivery,
    ForeignRead,
    Owner,
)


class ExchangeRecorder(RunTelling):
    """What is told of checkpoints, and of reads and deliveries across runs."""

    # Checkpoints.

    @harmless
    def checkpoint_saved(
        self,
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: Mapping[str, int] | None,
    ) -> None:
        """Tell that a durable copy was made; `parts` maps each part to its epoch."""
        self._checkpoint(CheckpointSave, owner, checkpoint, parent, parts)

    @harmless
    def checkpoint_restored(
        self,
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: Mapping[str, int] | None,
    ) -> None:
        """Tell that a durable copy was restored; `parts` as in `checkpoint_saved`."""
        self._checkpoint(CheckpointRestore, owner, checkpoint, parent, parts)

    def _checkpoint(
        self,
        operation: type[CheckpointSave] | type[CheckpointRestore],
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: Mapping[str, int] | None,
    ) -> None:
        run = self._speaks()
        if run is None or not self.telling:
            return
        self._emit(
            operation(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                checkpoint=checkpoint,
                parent=parent,
                parts=None if parts is None else tuple(parts.items()),
            )
        )

    # What only engines without isolation produce.

    @harmless
    def foreign_read(
        self, owner: Owner, key: str, writer: int, executor: str | None = None
    ) -> None:
        """Tell that the run read what epoch `writer` had staged and not committed."""
        run = self._speaks()
        if run is None:
            return
        mask = self._recorder.mask
        self._emit(
            ForeignRead(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                key=key if mask is None else mask(key),
                writer=writer,
                executor=executor,
            )
        )

    @harmless
    def foreign_delivery(
        self,
        owner: Owner,
        kind: DeliveryKind,
        origin: int,
        *,
        message: str | None = None,
        executor: str | None = None,
    ) -> None:
        """Tell that something of epoch `origin` was delivered to the run."""
        run = self._speaks()
        if run is None:
            return
        self._emit(
            ForeignDelivery(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                kind=kind,
                origin=origin,
                message=message,
                executor=executor,
            )
        )
