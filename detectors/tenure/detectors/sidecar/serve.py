"""The life of a sidecar: start everything, take in, and end in order."""

import ipaddress
import logging
import queue
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Final, Self, final

from tenure.detectors.detector import Detector, Verdict
from tenure.detectors.findings import Finding
from tenure.detectors.sidecar.errors import SettingsError
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.forward import Forwarder, sender
from tenure.detectors.sidecar.grpc_receiver import GrpcReceiver
from tenure.detectors.sidecar.hooks import Hook, HookRunner, Program, Webhook
from tenure.detectors.sidecar.http_receiver import HttpReceiver, application
from tenure.detectors.sidecar.intake import Room
from tenure.detectors.sidecar.receiving import Batch, Receiver
from tenure.detectors.sidecar.settings import Endpoint, Settings
from tenure.detectors.sidecar.worker import Worker

_logger = logging.getLogger(__name__)

_CHECK_EVERY: Final = 1.0
"""Seconds between two looks at whether everything runs."""

_Handler = Callable[[int, FrameType | None], object] | int | None
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a sidecar listens.

    Attributes:
        grpc: For OTLP over gRPC; `None` if it does not.
        http: For OTLP over HTTP; `None` if it does not.
    """

    grpc: Endpoint | None
    http: Endpoint | None


@dataclass(frozen=True, slots=True)
class Drained:
    """How a sidecar ended.

    Attributes:
        verdict: What may be said of everything that it judged.
        missing: What keeps the verdict from being clean, but for violations.
        left: Messages and calls for which there was no time, by what they wait for.
    """

    verdict: Verdict
    missing: tuple[str, ...]
    left: tuple[tuple[str, int], ...] = ()


@final
class Sidecar:
    """Receives OTLP and judges it, from `start` to `stop`.

    `start` and `stop` are for one thread; everything else happens in threads of its
    own. Use it as a context manager to have it stopped at the end of a block.

    Args:
        settings: What it is asked to do.
        on_finding: Called with each finding, in the thread that judges: while it does
            not return, nothing else is judged, and senders are told to try again.
    """

    def __init__(
        self,
        settings: Settings,
        on_finding: Callable[[Finding], object] | None = None,
    ) -> None:
        self._settings: Final = settings
        self._on_finding: Final = on_finding
        self.figures: Final = Figures()
        self.detector: Final = Detector(
            self._found, announce=(), max_instances=settings.max_instances
        )
        self._room: Final = Room(settings.memory_bytes)
        self.figures.watch_memory(lambda: self._room.taken, self._room.limit)
        self._hooks: tuple[HookRunner, ...] = ()
        self._judge: Worker[Batch] | None = None
        self._forwarder: Forwarder | None = None
        self._receiver: Receiver | None = None
        self._grpc: GrpcReceiver | None = None
        self._http: HttpReceiver | None = None
        self._drained: Drained | None = None

    @property
    def healthy(self) -> bool:
        """Whether everything runs that has to, between `start` and `stop`."""
        judge, http = self._judge, self._http
        return bool(judge and judge.alive) and (http is None or http.alive)

    def start(self) -> Listening:
        """Listen, and judge what comes.

        Returns:
            Where it listens.

        Raises:
            ListenError: An address is taken or cannot be used; nothing listens then.
            SettingsError: It would forward to itself.
        """
        assert self._judge is None, "a sidecar is started once"
        with ExitStack() as undo:
            undo.callback(self.stop)
            self._start()
            undo.pop_all()
        return self.listening

    @property
    def listening(self) -> Listening:
        """Where it listens, or did."""
        grpc, http = self._grpc, self._http
        return Listening(grpc and grpc.address, http and http.address)

    def stop(self) -> Drained:
        """Take in no more, judge and send what waits, call the hooks, and end.

        It takes about as long as the settings allow at most. A second call returns
        what the first one did.
        """
        if self._drained is None:
            self._drained = self._drain()
        return self._drained

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # Starting.

    def _start(self) -> None:
        settings = self._settings
        self._hooks = tuple(
            HookRunner(hook, settings, self.figures) for hook in _hooks(settings)
        )
        # What waits is bounded by the room that it takes; the queue itself need not be.
        judge = self._judge = Worker(
            "tenure-watch-judge", self._judge_batch, capacity=settings.memory_bytes
        )
        self.figures.watch_queue("judge", lambda: judge.waiting)
        if settings.forward is not None:
            self._forwarder = Forwarder(
                sender(
                    settings.forward, settings.forward_headers, settings.message_bytes
                ),
                settings.forward_bytes,
                self.figures,
            )
        self._receiver = Receiver(
            self._room,
            judge,
            self._forwarder,
            self.figures,
            message_bytes=settings.message_bytes,
            doubt=self.detector.doubt,
        )
        self._listen(self._receiver)

    def _listen(self, receiver: Receiver) -> None:
        """Take both addresses before anything is received."""
        settings = self._settings
        if settings.grpc_port is not None:
            address = Endpoint(settings.host, settings.grpc_port)
            self._grpc = GrpcReceiver(receiver, address)
        if settings.http_port is not None:
            address = Endpoint(settings.host, settings.http_port)
            app = application(receiver, self.figures, lambda: self.healthy)
            self._http = HttpReceiver(app, address)
        if settings.forward is not None:
            _check_loop(settings, self.listening)
        for each in (self._grpc, self._http):
            if each is not None:
                each.start()

    # Judging.

    def _judge_batch(self, batch: Batch) -> None:
        try:
            for operation in batch.operations:
                self.detector.feed(operation)
            self.figures.judged(len(batch.operations))
        finally:
            batch.share.shrink_to(0)

    def _found(self, finding: Finding) -> None:
        self.figures.found(finding)
        for hook in self._hooks:
            hook.offer(finding)
        if self._on_finding is not None:
            self._on_finding(finding)

    # Ending.

    def _drain(self) -> Drained:
        """End in the order in which things go through: each step feeds the next."""
        budget = _Budget(self._settings.drain_timeout)
        if self._receiver is not None:
            self._receiver.stopping = True
        for each in (self._grpc, self._http):
            if each is not None and not each.stop(budget.part(_FOR_RECEIVERS)):
                _logger.warning("Messages on %s were cut off", each.address)
        left: dict[str, int] = {}
        if self._judge is not None and not self._judge.finish(budget.part(_FOR_JUDGE)):
            left["judge"] = self._judge.undone
            self.detector.doubt("messages for which there was no time")
        if self._forwarder is not None:
            left["forward"] = self._forwarder.finish(budget.part(_FOR_FORWARD))
        for hook in self._hooks:
            left[hook.name] = hook.finish(budget.part(1.0))
        return Drained(
            self.detector.verdict,
            self.detector.missing,
            tuple((name, count) for name, count in left.items() if count),
        )


_FOR_RECEIVERS: Final = 0.2
_FOR_JUDGE: Final = 0.5
_FOR_FORWARD: Final = 0.3
"""Of the time that the end may take; what a step leaves over is for those after it."""


@final
class _Budget:
    """The time that the end may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds: Final = seconds
        self._deadline: Final = time.monotonic() + seconds

    def part(self, fraction: float) -> float:
        """Return that part of all of it, or what is left if that is less."""
        left = max(0.0, self._deadline - time.monotonic())
        return min(left, self._seconds * fraction)


def _hooks(settings: Settings) -> Iterator[Hook]:
    if settings.webhook is not None:
        yield Webhook(settings.webhook, settings.webhook_headers, settings.hook_timeout)
    if settings.command:
        yield Program(settings.command, settings.hook_timeout)


def _check_loop(settings: Settings, listening: Listening) -> None:
    """Refuse to forward to where this very sidecar listens."""
    target = settings.forward_endpoint
    ours = [each.port for each in (listening.grpc, listening.http) if each is not None]
    if target is None or target.port not in ours:
        return
    if target.host in {settings.host, "localhost"} or _is_loopback(target.host):
        raise SettingsError("forward", f"{target} is where this sidecar listens")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# A process.


def serve(
    settings: Settings,
    *,
    on_listening: Callable[[Listening], object],
    on_finding: Callable[[Finding], object] | None = None,
) -> Drained:
    """Run a sidecar until this process is asked to end, by SIGTERM or SIGINT.

    For the main thread. A second signal ends the process at once.

    Args:
        settings: What it is asked to do.
        on_listening: Called once, when it listens.
        on_finding: Called with each finding, in the thread that judges.

    Returns:
        How it ended.

    Raises:
        ListenError: An address is taken or cannot be used.
        SettingsError: It would forward to itself.
    """
    # A signal may come while a lock is held; this queue is made for that.
    asked: queue.SimpleQueue[int] = queue.SimpleQueue()
    before = _handle_signals(asked)
    try:
        with Sidecar(settings, on_finding) as sidecar:
            on_listening(sidecar.listening)
            _wait(asked, sidecar)
            for number in before:
                signal.signal(number, signal.SIG_DFL)
            return sidecar.stop()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle_signals(asked: "queue.SimpleQueue[int]") -> dict[int, _Handler]:
    """Put signals into `asked`; return what handled them before."""

    def ask(number: int, _frame: FrameType | None) -> None:
        asked.put(number)

    return {
        number: signal.signal(number, ask)
        for number in _SIGNALS
        # Whoever started it in the background may have decided so.
        if signal.getsignal(number) is not signal.SIG_IGN
    }


def _wait(asked: "queue.SimpleQueue[int]", sidecar: Sidecar) -> None:
    while sidecar.healthy:
        with suppress(queue.Empty):
            asked.get(timeout=_CHECK_EVERY)
            return
    _logger.error("A part of the sidecar has ended; so does the rest")
