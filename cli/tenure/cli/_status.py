"""Exit statuses, and the errors that end a command with one."""

from enum import IntEnum


class Status(IntEnum):
    """What the exit status of a command means."""

    CLEAN = 0
    """Nothing was found, or everything turned out as described."""

    VIOLATED = 1
    """Violations were found, or something did not turn out as described."""

    UNUSABLE = 2
    """Bad usage, unreadable input, or a missing extra."""

    INCONCLUSIVE = 3
    """Too little is known to say either."""


class CommandError(Exception):
    """A command cannot go on; the sentence is all that the user sees.

    Args:
        sentence: What is wrong and what to do.
        status: The exit status.
    """

    def __init__(self, sentence: str, status: Status = Status.UNUSABLE) -> None:
        super().__init__(sentence, status)
        self.sentence = sentence
        self.status = status

    def __str__(self) -> str:
        return self.sentence
