"""Who owns an instance of the foreign engine, and what each run has staged in it.

The engine has one shared map of staged writes per instance and no notion of a run in
it. Beside that map this module keeps which epoch staged each key.

Claims and ends happen on the thread of the engine's loop; stages may come from threads.
"""

import itertools
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tenure.instrumentation.agent_framework import _engine, _frames
from tenure.instrumentation.agent_framework._loops import LoopReference
from tenure.instrumentation.agent_framework._parts import Parts
from tenure.instrumentation.listeners import anyone_listens
from tenure.instrumentation.operations import Outcome, Owner, Trigger
from tenure.instrumentation.recorder import InstanceRecorder, RunRecorder

_ROOM: Final = 1024
"""How many keys may be remembered beyond those that are staged now."""


class Execution:
    """One executor invocation, while it runs.

    Args:
        executor: Identity of the executor.
    """

    __slots__ = ("executor", "reads", "writes")

    def __init__(self, executor: str) -> None:
        self.executor: Final = executor
        self.reads: Final[dict[str, None]] = {}
        self.writes: Final[dict[str, int]] = {}


class Tenure:
    """One run of an instance, from its claim to the end of its cleanup.

    It refers to no stream, generator or frame: the engine's guard against concurrent
    runs is a weak reference to the stream, and must not be kept alive.

    Args:
        instance: What the run owns.
        epoch: Its rank.
        run_id: Its identity.
        recorder: Whom it is told to.
        guarded: Whether the engine's own guard let it in.

    Attributes:
        fenced: Whether the run should no longer write: released or superseded.
        heard: Whether anybody could hear of the run when it claimed. If not, its steps
            are not watched: only what it might do to a later run is.
        started: Whether anything has driven it.
        driving: Whether its consumer is driving it now; of a heard run only.
        closing: Whether its consumer is closing it now.
        orphaned: Whether a part of it is still being closed though its driver has gone.
        linked: Whether its span is linked to the engine's.
        refcounted: Whether its stream went with its last reference.
        dropped: How its stream went, once it has.
        terminal: How the engine itself said that it ended.
        superstep: Number of the current superstep.
        taken: Executors whose snapshots it has taken for its next checkpoint.
        released: Whether it has told that it is the owner no more.
        ended: Whether its own cleanup has ended.
    """

    __slots__ = (
        "closing",
        "driving",
        "dropped",
        "ended",
        "epoch",
        "fenced",
        "frames",
        "guarded",
        "heard",
        "instance",
        "linked",
        "loop",
        "orphaned",
        "owner",
        "recorder",
        "refcounted",
        "released",
        "started",
        "superstep",
        "taken",
        "terminal",
    )

    def __init__(
        self,
        instance: "Instance",
        epoch: int,
        run_id: str,
        recorder: RunRecorder,
        *,
        guarded: bool,
    ) -> None:
        self.instance: Final = instance
        self.epoch: Final = epoch
        self.owner: Final = Owner(epoch, run_id)
        self.recorder: Final = recorder
        self.guarded: Final = guarded
        self.heard: Final = recorder.audible
        self.loop: Final = LoopReference()
        self.frames: Final[list[int]] = []
        self.started = False
        self.driving = False
        self.closing = False
        self.orphaned = False
        self.linked = False
        self.refcounted = False
        self.dropped: Trigger | None = None
        self.terminal: Outcome | None = None
        self.superstep: int | None = None
        self.taken: Final[dict[str, None]] = {}
        # Invariant: set once the run was released or another has claimed.
        self.fenced = False
        self.released = False
        self.ended = False

    @property
    def trigger(self) -> Trigger | None:
        """How the end came about, where no consumer drives the run any more."""
        if self.driving:
            return Trigger.CLOSE if self.closing else None
        return self.dropped or Trigger.SHUTDOWN

    def release(self, outcome: Outcome, trigger: Trigger | None = None) -> None:
        """Tell that the run stops being the owner; a second call changes nothing.

        Args:
            outcome: How its tenure ended.
            trigger: How the end came about, where a finalizer did it.
        """
        if not self.released:
            self.released = self.fenced = True
            self.recorder.release(self.instance.owner, outcome, trigger=trigger)

    def finish(self, outcome: Outcome, error: BaseException | None = None) -> None:
        """Tell that the run's own cleanup has ended; a second call changes nothing.

        Args:
            outcome: How it ended, unless the engine said so itself before its consumer
                left.
            error: What it failed with, where it did.
        """
        if self.ended:
            return
        self.ended = True
        trigger = self.trigger if outcome is Outcome.ABANDONED else None
        if outcome in {Outcome.ABANDONED, Outcome.CANCELLED}:
            outcome = self.terminal or outcome
        self.instance.flush()
        self.end_superstep()
        self.release(outcome, trigger)
        self.recorder.ended(outcome, error)
        if not self.orphaned:
            self.forget()

    def forget(self) -> None:
        """Look out for nothing more that this run might do."""
        self.instance.forget(self)
        for identity in self.frames:
            _frames.unbind(identity, self)

    def end_superstep(self) -> None:
        """Tell that the current superstep is over, where there is one."""
        index, self.superstep = self.superstep, None
        if index is not None:
            self.recorder.superstep_ended(self.instance.owner, index)

    def bind_frame(self, generator: object) -> None:
        """Bind the frame of one of the engine's generators to this run."""
        identity = _frames.bind(generator, self)
        if identity is not None:
            self.frames.append(identity)

    def abandoned(self) -> None:
        """Tell that a run which was never driven will never be."""
        if not self.started:
            self.finish(Outcome.ABANDONED)

    def defer(self, telling: Callable[[], object]) -> None:
        """Tell later what must not be told here, inside a finalizer.

        Args:
            telling: Tells the operation; it carries what was true here.
        """
        self.instance.deferred.append(telling)
        self.loop.call_soon(self.instance.flush)


class Instance:
    """One workflow instance, told apart from others by its state object.

    Args:
        recorder: Whom its operations are told to.
    """

    def __init__(self, recorder: InstanceRecorder) -> None:
        self.recorder: Final = recorder
        self.newest: Tenure | None = None
        self.parts: Final = Parts()
        self.deferred: Final[deque[Callable[[], object]]] = deque()
        # Invariant: the engine's own map says which keys are staged; this one only says
        # by whom, so that an entry of a key that is not staged means nothing.
        self.writers: Final[dict[str, int]] = {}
        self._epochs: Final = itertools.count(1)
        self._open: Final[list[Tenure]] = []

    @property
    def owner(self) -> Owner:
        """The newest claim, whether released since or not."""
        return Owner(0) if self.newest is None else self.newest.owner

    def claim(self, *, guarded: bool, free: bool) -> Tenure:
        """Make a new run the owner and tell so.

        Args:
            guarded: Whether the engine's guard watches over the new run.
            free: Whether that guard says that no other run has a consumer left.
        """
        run_id = uuid.uuid4().hex
        run = self.recorder.run(run_id)
        self.flush()
        superseded = self._close_abandoned(free=free)
        tenure = Tenure(self, next(self._epochs), run_id, run, guarded=guarded)
        if self.newest is not None:
            self.newest.fenced = True
        if not tenure.heard:
            # Who stages is not noted while nobody listens: see `silent`.
            self.writers.clear()
        self.newest = tenure
        self._open.append(tenure)
        run.claim(tenure.owner, superseded=superseded)
        return tenure

    @property
    def silent(self) -> bool:
        """Whether nobody would hear of what the owner does now."""
        owner = self.newest
        return owner is not None and not owner.heard and not anyone_listens()

    @property
    def only(self) -> Tenure | None:
        """The owner, where no other run has cleanup left to do and so could act."""
        alone = len(self._open) == 1 and self._open[0] is self.newest
        return self.newest if alone else None

    def forget(self, tenure: Tenure) -> None:
        """Stop looking after a run whose cleanup has ended."""
        if tenure in self._open:
            self._open.remove(tenure)

    def flush(self) -> None:
        """Tell what could not be told where it happened."""
        deferred = self.deferred
        while deferred:
            try:
                telling = deferred.popleft()
            except IndexError:
                # Another thread has told the rest.
                return
            telling()

    def note(self, key: str, epoch: int | None) -> None:
        """Note who stages a key.

        Args:
            key: The key.
            epoch: Epoch that stages it; `None` where that is unknown.
        """
        if epoch is None:
            self.writers.pop(key, None)
        else:
            self.writers[key] = epoch

    def catch_up(self, state: object) -> None:
        """Note who staged what is staged now, where that was not noted at the time.

        Args:
            state: The engine's state object.
        """
        owner = self.newest
        if owner is not None and not owner.heard:
            epoch = None if self.only is None else owner.epoch
            for key in staged_keys(state):
                if epoch is None or key not in self.writers:
                    self.note(key, epoch)

    def staged(self, state: object, acting: int) -> dict[str, int]:
        """Return each key that is staged now and the epoch that staged it.

        Args:
            state: The engine's state object.
            acting: Epoch that acts; a writer that is unknown is taken to be this one,
                so that nobody is accused without evidence.
        """
        writers = self.writers
        return {key: writers.get(key, acting) for key in staged_keys(state)}

    def prune(self, state: object) -> None:
        """Forget who staged keys that are long committed, once they are many."""
        if len(self.writers) <= _ROOM:
            return
        staged = staged_keys(state)
        if len(self.writers) > len(staged) + _ROOM:
            # At once, because threads may stage meanwhile.
            for key in tuple(self.writers):
                if key not in staged:
                    self.writers.pop(key, None)

    def _close_abandoned(self, *, free: bool) -> int | None:
        """Release runs whose consumer has left; return the newest that still acts."""
        superseded = None
        for run in tuple(self._open):
            if not (run.dropped or (run.guarded and free)):
                continue
            if not run.started or run.orphaned or run.loop.closed:
                run.finish(Outcome.ABANDONED)
            elif not run.released:
                run.release(run.terminal or Outcome.ABANDONED, run.dropped)
                superseded = run.epoch if run.terminal is None else None
        return superseded


def staged_keys(state: object) -> tuple[str, ...]:
    """Return the keys that are staged in the engine's state object now."""
    pending: Mapping[str, Any] | Iterable[str] = getattr(state, _engine.PENDING, ())
    return tuple(pending)
