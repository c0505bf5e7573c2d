"""A store whose process is killed at one of its SQL statements."""

import os
import signal
import sqlite3
from typing import Any

from tenure.runtime import SqliteStore


class FatalStore(SqliteStore):
    """Kills its process when SQLite is about to execute a statement.

    Args:
        directory: As for `SqliteStore`.
        statement: Which statement, from 1.
        how: What else `SqliteStore` is given.
    """

    def __init__(self, directory: str, statement: int, **how: Any) -> None:
        super().__init__(directory, **how)
        self.left = statement

    def _connection(self, instance: str) -> sqlite3.Connection:
        base = super()._connection(instance)
        base.set_trace_callback(self._count)
        return base

    def _count(self, _sql: str) -> None:
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
