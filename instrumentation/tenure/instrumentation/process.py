"""Who counts `tenure.seq`: this process, told apart from its forks and its successors.

This module imports the standard library only.
"""

import os
import socket
import time

# Both are replaced in a fork, which may get the number of an earlier one.
_started = time.time_ns() // 1_000_000
_identity = ""


def _host() -> str:
    try:
        return socket.gethostname()
    except OSError:
        return "unknown"


def process_id() -> str:
    """Return host, process number and start of this process; a fork has its own."""
    global _identity  # noqa: PLW0603 - one identity per process is the purpose
    if not _identity:
        _identity = f"{_host()}-{os.getpid()}-{_started:x}"
    return _identity


def _forget() -> None:
    global _identity, _started  # noqa: PLW0603 - as above
    _identity = ""
    _started = time.time_ns() // 1_000_000


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
