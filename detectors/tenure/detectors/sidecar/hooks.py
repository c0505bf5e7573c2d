"""What is called for findings: a webhook, a program, or both; each at its own pace."""

import json
import logging
import os
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, final

import httpx
import tenacity

from tenure.detectors.anomalies import Certainty, Severity
from tenure.detectors.findings import Finding
from tenure.detectors.sidecar.figures import Figures
from tenure.detectors.sidecar.settings import Settings
from tenure.detectors.sidecar.worker import Worker

_logger = logging.getLogger(__name__)

WAITING: Final = 1_000
"""How many findings may wait for one hook."""

MAX_KEYS: Final = 10_000
"""How many anomalies of instances are told apart; the oldest is forgotten first."""

_ATTEMPTS: Final = 3
_PASSING: Final = frozenset({408, 429})
"""What a receiver answers that may take the same later, besides its own errors."""

_RANK: Final = (
    Severity.INFORMATION,
    Severity.AVERTED,
    Severity.WARNING,
    Severity.VIOLATION,
)
_PROVEN: Final = frozenset({Certainty.CERTAIN, Certainty.CONFIRMED})
_Key = tuple[str, str, str]


class HookError(Exception):
    """A call of a hook failed.

    Args:
        reason: Why, without anything secret.
    """


class Hook(Protocol):
    """Is told of findings."""

    name: str

    def call(self, document: bytes) -> None:
        """Tell it a finding.

        Args:
            document: The finding as JSON.

        Raises:
            HookError: It could not be told.
        """
        ...

    def close(self) -> None:
        """Call nothing that has failed again, from now on."""
        ...


@final
class Debounce:
    """Which findings are worth a call: the first of its kind, then none for a while.

    Pure but for the clock that it is given. Not safe to share between threads.

    Args:
        quiet: Seconds without calls after a call.
        clock: Tells seconds.
    """

    def __init__(
        self, quiet: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._quiet: Final = quiet
        self._clock: Final = clock
        # When it was last let through, and how many were held back since.
        self._seen: Final[OrderedDict[_Key, tuple[float, int]]] = OrderedDict()

    def admit(self, key: _Key) -> int | None:
        """Say whether a finding of this kind is worth a call now.

        Returns:
            How many were held back since the last call; `None` if this one is, too.
        """
        now = self._clock()
        last, held = self._seen.get(key, (None, 0))
        if last is not None and now - last < self._quiet:
            self._seen[key] = (last, held + 1)
            return None
        self._seen[key] = (now, 0)
        self._seen.move_to_end(key)
        if len(self._seen) > MAX_KEYS:
            self._seen.popitem(last=False)
        return held

    def forget(self, key: _Key) -> None:
        """Let the next finding of this kind through."""
        self._seen.pop(key, None)


@dataclass(frozen=True, slots=True)
class _Call:
    key: _Key
    document: bytes


@final
class HookRunner:
    """Calls one hook. Safe to use from any thread.

    Args:
        hook: What is called.
        settings: For which findings it is called, and how often.
        figures: Where findings are counted, by what became of their call.
    """

    def __init__(self, hook: Hook, settings: Settings, figures: Figures) -> None:
        self.name: Final = hook.name
        self._hook: Final = hook
        self._least: Final = _RANK.index(settings.hook_severity)
        self._possible: Final = settings.hook_possible
        self._figures: Final = figures
        self._lock: Final = threading.Lock()
        self._debounce: Final = Debounce(settings.debounce)  # used under the lock only
        self._worker: Final = Worker(
            f"tenure-watch-{hook.name}", self._call, capacity=WAITING
        )
        figures.watch_queue(hook.name, lambda: self._worker.waiting)

    def offer(self, finding: Finding) -> None:
        """Call the hook for `finding` when it is its turn, if it is worth a call."""
        if _RANK.index(finding.severity) < self._least:
            return
        if finding.certainty not in _PROVEN and not self._possible:
            return
        key = (finding.anomaly, finding.workflow, finding.instance)
        with self._lock:
            held = self._debounce.admit(key)
        if held is None:
            self._figures.hook(self.name, "held_back")
            return
        document = json.dumps({**finding.as_dict(), "held_back": held}).encode()
        if not self._worker.offer(_Call(key, document)):
            self._failed(key, "dropped")

    def finish(self, timeout: float) -> int:
        """Make the calls that wait.

        Args:
            timeout: Seconds after which this returns, done or not.

        Returns:
            How many calls were left.
        """
        self._hook.close()
        self._worker.finish(timeout)
        return self._worker.undone

    def _call(self, call: _Call) -> None:
        try:
            self._hook.call(call.document)
        except HookError as error:
            self._failed(call.key, "failed")
            _logger.warning("The %s was not told: %s", self.name, error)
        else:
            self._figures.hook(self.name, "called")

    def _failed(self, key: _Key, result: str) -> None:
        """Count it, and let the next one of its kind try again."""
        with self._lock:
            self._debounce.forget(key)
        self._figures.hook(self.name, result)


@final
class Webhook:
    """Posts findings to an address.

    Args:
        url: The address; it may hold a token, so nobody logs it.
        headers: What is sent along.
        timeout: Seconds that one attempt may take.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        self.name = "webhook"
        self._url: Final = url
        self._ending: Final = threading.Event()
        self._client: Final = httpx.Client(
            headers={**headers, "content-type": "application/json"}, timeout=timeout
        )

    def call(self, document: bytes) -> None:
        """Post `document`, again if the first attempts fail."""
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_may_pass),
            wait=tenacity.wait_random_exponential(max=5.0),
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(_ATTEMPTS),
                tenacity.stop_when_event_set(self._ending),
            ),
            sleep=tenacity.sleep_using_event(self._ending),
            reraise=True,
        )
        try:
            retrying(self._post, document)
        except httpx.HTTPStatusError as error:
            raise HookError(f"status {error.response.status_code}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise HookError(type(error).__name__) from error

    def close(self) -> None:
        """Post nothing again that has failed."""
        self._ending.set()

    def _post(self, document: bytes) -> None:
        self._client.post(self._url, content=document).raise_for_status()


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        response = error.response
        return response.is_server_error or response.status_code in _PASSING
    return isinstance(error, httpx.TransportError)


@final
class Program:
    """Runs a program for each finding, which is on its standard input; never a shell.

    Args:
        arguments: The program and its arguments.
        timeout: Seconds after which it is killed, with all that it has started.
    """

    def __init__(self, arguments: Sequence[str], timeout: float) -> None:
        self.name = "exec"
        self._arguments: Final = tuple(arguments)
        self._timeout: Final = timeout

    def call(self, document: bytes) -> None:
        """Run the program."""
        try:
            process = subprocess.Popen(  # noqa: S603 - what the user asked for, no shell
                self._arguments,
                stdin=subprocess.PIPE,
                # Standard output is the sidecar's own.
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise HookError(f"it cannot be run: {reason}") from error
        with process:
            try:
                process.communicate(document, self._timeout)
            except subprocess.TimeoutExpired:
                _kill(process)
                raise HookError(f"it took more than {self._timeout:g} s") from None
        if process.returncode != 0:
            raise HookError(f"it ended with status {process.returncode}")

    def close(self) -> None:
        """Do nothing: a program that runs is waited for, within its time."""


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill the program and what it has started."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    else:
        process.kill()
