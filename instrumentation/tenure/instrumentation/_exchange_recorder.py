"""What a run exchanges: durable copies, and what it gets from other runs by mistake."""

from collections.abc import Iterable, Mapping
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
    Receive,
    Send,
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
        *,
        taken: Iterable[str] | None = None,
        previous: str | None = None,
    ) -> None:
        """Tell that a durable copy was made.

        Args:
            owner: Who owned the instance when it was made.
            checkpoint: Its identity.
            parent: The checkpoint that it follows.
            parts: Each executor snapshot and edge buffer in it, and the epoch that it
                was taken in; `None` if unknown.
            taken: Snapshots that were taken for it, whether they are in it or not.
            previous: The newest checkpoint that the run's claim had found, where the
                run went back from there to `parent`.
        """
        run = self._speaks()
        if run is None or not self.telling:
            return
        self._emit(
            CheckpointSave(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                checkpoint=checkpoint,
                parent=parent,
                parts=None if parts is None else tuple(parts.items()),
                taken=None if taken is None else tuple(taken),
                previous=previous,
            )
        )

    @harmless
    def checkpoint_restored(
        self,
        owner: Owner,
        checkpoint: str,
        parent: str | None,
        parts: Mapping[str, int] | None,
    ) -> None:
        """Tell that a durable copy was restored; `parts` as in `checkpoint_saved`."""
        run = self._speaks()
        if run is None or not self.telling:
            return
        self._emit(
            CheckpointRestore(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                checkpoint=checkpoint,
                parent=parent,
                parts=None if parts is None else tuple(parts.items()),
            )
        )

    # Messages, at a level of detail of their own.

    @property
    def telling_messages(self) -> bool:
        """Whether anybody would hear of a message now; checked before it is told."""
        return self._recorder.tells_messages and self.telling

    @harmless
    def sent(
        self,
        owner: Owner,
        message: str,
        *,
        executor: str | None = None,
        target: str | None = None,
        index: int | None = None,
    ) -> None:
        """Tell that a message was put where an executor will get it.

        Args:
            owner: Who owned the instance then.
            message: Its identity, unique in its run and for each receiver.
            executor: The executor that sent it, where one did.
            target: The executor that is to get it, where known.
            index: Number of the superstep, where the engine has them.
        """
        run = self._speaks()
        if run is None or not self.telling_messages:
            return
        self._emit(
            Send(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                message=message,
                executor=executor,
                target=target,
                index=index,
            )
        )

    @harmless
    def received(
        self,
        owner: Owner,
        message: str,
        *,
        executor: str | None = None,
        index: int | None = None,
    ) -> None:
        """Tell that an executor got a message; the arguments are those of `sent`."""
        run = self._speaks()
        if run is None or not self.telling_messages:
            return
        self._emit(
            Receive(
                run=run,
                seq=next(self._sequence),
                owner=owner,
                time=time_ns(),
                message=message,
                executor=executor,
                index=index,
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
