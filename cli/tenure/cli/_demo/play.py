"""Play the story on an engine, and keep what happened."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tenure.cli._demo.noise import KeptAside
from tenure.cli._demo.story import (
    Desk,
    Engine,
    Step,
    StoryError,
    disconnect_and_ask_again,
)
from tenure.detectors import Detector, Finding, Verdict
from tenure.instrumentation import (
    TelemetryConfigError,
    add_listener,
    remove_listener,
)
from tenure.instrumentation.operations import Operation

Entry = Operation | Step
"""A line of a timeline."""


@dataclass(frozen=True, slots=True)
class Played:
    """What an engine made of the story.

    Attributes:
        engine: Engine and version.
        expected: What a correct engine commits.
        state: What this one committed.
        entries: Operations and steps, in the order in which they happened.
        findings: What the detector found in the operations.
        verdict: What the detector says of all of them.
        logged: What the engine logged meanwhile.
    """

    engine: str
    expected: Mapping[str, object]
    state: Mapping[str, object]
    entries: tuple[Entry, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict
    logged: tuple[str, ...] = ()

    @property
    def lost(self) -> tuple[str, ...]:
        """Keys that a correct engine would have committed and this one did not."""
        return tuple(key for key in self.expected if key not in self.state)

    @property
    def leaked(self) -> tuple[str, ...]:
        """Keys that this engine committed and a correct one would not have."""
        return tuple(key for key in self.state if key not in self.expected)

    def as_dict(self) -> dict[str, Any]:
        """Return what happened as plain data that JSON can hold."""
        return {
            "engine": self.engine,
            "expected": dict(self.expected),
            "state": dict(self.state),
            "lost": list(self.lost),
            "leaked": list(self.leaked),
            "findings": [finding.as_dict() for finding in self.findings],
        }


def play(engine: Engine, *, watch: bool = True) -> Played:
    """Play the story on `engine` in an event loop of its own.

    Args:
        engine: The engine.
        watch: Whether to attach what tells its operations; without, an engine that does
            not tell them itself gives the detector nothing to find.

    Returns:
        What happened.

    Raises:
        StoryError: The story did not come to its end.
        TelemetryConfigError: A variable has a value that cannot be used.
    """
    detector = Detector()
    entries: list[Entry] = []
    hear = entries.append
    with ExitStack() as stack:
        log = stack.enter_context(KeptAside(*engine.loggers))
        if watch:
            stack.enter_context(engine.watched())
        stack.enter_context(detector.listen())
        add_listener(hear)
        stack.callback(remove_listener, hear)
        try:
            expected, state = asyncio.run(_play(engine, hear))
        except TelemetryConfigError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise StoryError(engine.name, reason) from error
    return Played(
        engine=engine.name,
        expected=expected,
        state=state,
        entries=tuple(entries),
        findings=detector.findings,
        verdict=detector.verdict,
        logged=log.messages,
    )


async def _play(
    engine: Engine, tell: Callable[[Step], None]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    desk = Desk(tell)
    subject = engine.draw(desk)
    await disconnect_and_ask_again(subject, desk)
    return desk.expected, subject.state()
