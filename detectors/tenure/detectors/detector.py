"""The detector: a shell around the pure core that any thread may feed.

What judges is pure and runs for one operation at a time. What announces runs outside of
it, so that a callback may feed the detector again.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from tenure.detectors._announce import Announcer, Channel
from tenure.detectors._judge import Judge, Verdict
from tenure.detectors._policy import Severities, SeverityPolicy
from tenure.detectors._turn import Turn
from tenure.detectors.findings import Finding
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.operations import Operation

DEFAULT_CHANNELS: Final = frozenset({Channel.LOG, Channel.METRIC, Channel.SPAN})
"""Where findings go besides the callback, unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class _Moment:
    """A point in time, handed in by the caller."""

    now: float


class Detector:
    """Finds races in operations, however they come.

    Feed it operations, or let it `listen` to those of this process, or hand it to an
    `OwnershipSpanProcessor`; an operation that comes in more than one way counts once.

    Any thread may call any method, and a finalizer or a callback may interrupt one with
    another: nothing blocks and nothing is lost. Findings are announced outside of every
    lock, one after the other, by whichever call is announcing already.

    Args:
        on_finding: Called with each finding, on the thread that announces it. What it
            raises is logged.
        announce: Where findings go besides: `log`, `metric`, `span`, `warning`. Feed a
            detector from finalizers only if this is empty: exporters hold locks that
            the interrupted code may own.
        severity: How bad findings are, where the catalogue is not to say: a severity
            for each slug or `slug/variant`, or a callable that is given the finding.
            The verdict, and what is announced how, follow it.
        silent_after: For how long a run may own an instance in silence, in the unit of
            what `advance` is given; only that method looks at it.
        max_instances: How many instances are remembered.
        max_findings: How many of the newest findings are kept in `findings`.
        tracer_provider: Where `violation` spans go; the global provider by default.
        meter_provider: Where the counter goes; the global provider by default.
        logger_provider: Where log events go; the global provider by default.

    Raises:
        ValueError: A name in `announce` or `severity` is not known, or a bound is less
            than 1.
    """

    def __init__(
        self,
        on_finding: Callable[[Finding], object] | None = None,
        *,
        announce: Iterable[Channel | str] = DEFAULT_CHANNELS,
        severity: Severities | None = None,
        silent_after: float = 300.0,
        max_instances: int = 10_000,
        max_findings: int = 10_000,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
    ) -> None:
        if max_instances < 1 or max_findings < 1:
            raise ValueError("max_instances and max_findings count from 1")
        self._max_instances: Final = max_instances
        self._max_findings: Final = max_findings
        self._announcer: Final = Announcer(
            on_finding,
            frozenset(Channel(channel) for channel in announce),
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
            logger_provider=logger_provider,
        )
        self._policy: Final = None if severity is None else SeverityPolicy(severity)
        self._silent_after: Final = silent_after
        self._judge = Judge(max_instances, self._policy)
        self._findings: Final[list[Finding]] = []
        # Both queues are emptied by whoever gets the turn beside them, without waiting.
        self._inbox: Final[deque[Operation | _Moment]] = deque()
        self._judging: Final = Turn()
        self._outbox: Final[deque[Finding]] = deque(maxlen=max_findings)
        self._announcing: Final = Turn()

    def feed(self, operation: Operation) -> tuple[Finding, ...]:
        """Take in one operation.

        Never blocks: while another call is judging, that one judges this operation too.

        Args:
            operation: What happened. One that has been taken in before is ignored.

        Returns:
            What this call found. Empty when another call judges the operation; then,
            that call returns it.
        """
        if self._inbox or not self._judging.take():
            self._inbox.append(operation)
            found = self._judge_all()
        else:
            try:
                found = self._judge.observe(operation)
                if found:
                    self._keep(found)
            finally:
                self._judging.give_back()
            if self._inbox:
                found += self._judge_all()
        if self._outbox:
            self._announce_all()
        return found

    def advance(self, now: float) -> tuple[Finding, ...]:
        """Tell what time it is, so that runs that are silent for too long are found.

        Nothing in a detector reads a clock. Call this every now and then, from any
        thread; a run that has been silent for `silent_after` between two calls is one
        that may never be released.

        Args:
            now: The time, such as `time.monotonic()`; the unit is that of
                `silent_after`.

        Returns:
            As `feed` does.
        """
        self._inbox.append(_Moment(now))
        found = self._judge_all()
        if self._outbox:
            self._announce_all()
        return found

    def doubt(self, reason: str) -> None:
        """Say that something was lost before it became an operation.

        The verdict is never `clean` from then on.

        Args:
            reason: What is missing, such as `3 spans that cannot be read`.
        """
        self._judge.doubt(reason)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The newest findings, in the order in which they were made."""
        return tuple(self._findings)

    @property
    def verdict(self) -> Verdict:
        """What may be said of everything that was taken in.

        `violated` after a proven violation. `clean` only if every instance's positions
        have no gap, its claims have all been seen, its last run has released, and no
        fence was found broken. Everything else is `inconclusive`, silence included. A
        run of which nothing at all arrived, after the last one that did, is beyond
        knowing.
        """
        return self._judge.verdict

    @property
    def missing(self) -> tuple[str, ...]:
        """What keeps the verdict from being `clean`, but for violations."""
        return self._judge.missing

    def clear(self) -> None:
        """Forget everything that was taken in and found, and go on listening."""
        self._judge = Judge(self._max_instances, self._policy)
        self._findings.clear()

    def listen(self) -> Self:
        """Take in every operation that this process tells from now on.

        They come before sampling, and with or without an SDK. Listening twice changes
        nothing. Use the result as a context manager to stop at the end of a block.
        """
        add_listener(self.feed)
        return self

    def close(self) -> None:
        """Stop listening; what was found stays. Closing twice changes nothing."""
        remove_listener(self.feed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _judge_all(self) -> tuple[Finding, ...]:
        """Judge what is in the inbox, unless a call that has the turn does.

        The loop looks again after the turn is given back: whoever put something in
        while this call had it left that to this call.
        """
        found: tuple[Finding, ...] = ()
        inbox = self._inbox
        while inbox:
            if not self._judging.take():
                return found
            try:
                while inbox:
                    more = self._take_in(inbox.popleft())
                    if more:
                        found += more
                        self._keep(more)
            finally:
                self._judging.give_back()
        return found

    def _take_in(self, what: "Operation | _Moment") -> tuple[Finding, ...]:
        if isinstance(what, _Moment):
            return self._judge.advance(what.now, self._silent_after)
        return self._judge.observe(what)

    def _keep(self, found: tuple[Finding, ...]) -> None:
        self._findings.extend(found)
        excess = len(self._findings) - self._max_findings
        if excess > 0:
            del self._findings[:excess]
        self._outbox.extend(found)

    def _announce_all(self) -> None:
        """Announce what is in the outbox, unless a call that has the turn does."""
        outbox = self._outbox
        while outbox:
            if not self._announcing.take():
                return
            try:
                while outbox:
                    self._announcer.announce(outbox.popleft())
            finally:
                self._announcing.give_back()


__all__ = ["DEFAULT_CHANNELS", "Channel", "Detector", "Verdict"]
