"""What loggers of others say in the middle of a timeline."""

import logging
from types import TracebackType
from typing import Final, final


@final
class KeptAside(logging.Handler):
    """Collect what some loggers say, which would else go to standard error.

    Nothing is lost: what was collected is in `messages`, and handlers that somebody
    gave these loggers get it as before.

    Args:
        names: Names of the loggers.
    """

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._loggers: Final = [logging.getLogger(name) for name in names]
        self._messages: Final[list[str]] = []

    @property
    def messages(self) -> tuple[str, ...]:
        """What was said, oldest first."""
        return tuple(self._messages)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what `record` says."""
        self._messages.append(record.getMessage())

    def __enter__(self) -> "KeptAside":
        for logger in self._loggers:
            logger.addHandler(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for logger in self._loggers:
            logger.removeHandler(self)
