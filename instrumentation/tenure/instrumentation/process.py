"""Who counts `tenure.seq`: this process, told apart from its forks and its successors.

This module imports the standard library only.
"""

import os
import socket
import time
from typing import Final

_started: Final = time.time_ns() // 1_000_000
_identity = ""


def process_id() -> str:
    """Return host, process number and start of this process; a fork has its own."""
    global _identity  # noqa: PLW0603 - one identity per process is the purpose
    if not _identity:
        _identity = f"{socket.gethostname()}-{os.getpid()}-{_started:x}"
    return _identity


def _forget() -> None:
    global _identity  # noqa: PLW0603 - as above
    _identity = ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
