"""What a foreign engine logs about a stream that its client dropped."""

import logging
from types import TracebackType
from typing import Final, final


@final
class KeptAside(logging.Handler):
    """Collect what some loggers say, which would else go to standard error.

    Nothing is lost: what was collected is in `records`, and loggers that the
    application gave handlers of its own reach those as before.

    Args:
        names: Names of the loggers.
    """

    def __init__(self, *names: str) -> None:
        super().__init__()
        self._loggers: Final = [logging.getLogger(name) for name in names]
        self.records: Final[list[logging.LogRecord]] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep `record`."""
        self.records.append(record)

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
