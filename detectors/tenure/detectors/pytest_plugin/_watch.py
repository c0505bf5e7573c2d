"""What watches one test, from before its first fixture until after its last."""

from contextlib import AbstractContextManager, ExitStack
from typing import Final

import pytest

from tenure.detectors.detector import Detector
from tenure.detectors.errors import DetectorError
from tenure.detectors.findings import Finding
from tenure.detectors.pytest_plugin._engines import instrumented
from tenure.detectors.pytest_plugin._policy import Policy, is_harmful
from tenure.detectors.pytest_plugin._settling import settling
from tenure.detectors.pytest_plugin._wording import failure, heading, told, unmet
from tenure.detectors.report import Timeline
from tenure.instrumentation.listeners import add_listener, remove_listener
from tenure.instrumentation.operations import Operation


class Watch:
    """Watches one test, and says what fails it.

    Args:
        item: The test.

    Raises:
        pytest.fail.Exception: A mark of the test says what is not known.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item: Final = item
        self._policy: Final = Policy.of(item)
        # What is found stays here even if the test clears its detector.
        self._found: Final[list[Finding]] = []
        self._shown = 0
        self._timeline: Final = Timeline()
        self.detector: Final = Detector(self._found.append, announce=())
        self._until: Final = ExitStack()
        self._broken: Exception | None = None
        instrumented(self._until)
        add_listener(self._hear)
        self._until.callback(remove_listener, self._hear)

    def _hear(self, operation: Operation) -> None:
        try:
            # First, so that it holds what a finding is made of.
            self._timeline.add(operation)
            self.detector.feed(operation)
        except Exception as error:  # noqa: BLE001 - `judge` raises it where it is seen
            self._broken = error

    def settling(self) -> AbstractContextManager[None]:
        """Let what the test leaves behind be cleaned up, if it told anything at all."""
        return settling(self._item, lambda: bool(self._timeline.operations))

    def judge(self, *, complete: bool = False) -> None:
        """Fail for what was found and not shown yet.

        Args:
            complete: Whether the body has ended, so that what is expected is there.

        Raises:
            pytest.fail.Exception: Something was found that fails the test, or was
                expected and not found.
            DetectorError: The detector itself failed, so that silence means nothing.
        """
        if self._broken is not None:
            broken, self._broken = self._broken, None
            raise DetectorError("tenure could not judge this test") from broken
        fresh = self._found[self._shown :]
        failing = [finding for finding in fresh if self._policy.fails(finding)]
        lacking = self._policy.unmet(self._found) if complete else []
        if not failing and not lacking:
            return
        self._shown += len(fresh)
        reasons = [failure(failing)] if failing else []
        reasons += [unmet(lacking)] if lacking else []
        text = "\n".join([*reasons, "", told(self.detector, self._timeline)])
        pytest.fail(text, pytrace=False)

    def sections(self) -> list[tuple[str, str]]:
        """Return, as a section of a report, what was found and not shown yet."""
        fresh = self._found[self._shown :]
        self._shown += len(fresh)
        harmful = [finding for finding in fresh if is_harmful(finding)]
        if not harmful:
            return []
        return [(heading(harmful), told(self.detector, self._timeline))]

    def end(self) -> None:
        """Stop watching; what was found stays."""
        self._until.close()
