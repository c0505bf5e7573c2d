"""The ids that everything a run does carries."""

import itertools
import os
import secrets
from typing import NewType

Epoch = NewType("Epoch", int)
"""Rank of a run among the runs of its instance: it only grows and is never reused."""

RunId = NewType("RunId", str)
"""Unique identity of a run, in all processes."""

_prefix = secrets.token_hex(6)
_numbers = itertools.count(1)


def new_run_id() -> RunId:
    """Return an identity that no other run has, here or in another process."""
    return RunId(f"{_prefix}-{next(_numbers)}")


def new_instance_suffix() -> str:
    """Return what tells apart the instances of workflows that share a name."""
    return f"{_prefix}-{next(_numbers)}"


def _renew() -> None:
    global _prefix  # noqa: PLW0603 - a fork must not continue its parent's ids
    _prefix = secrets.token_hex(6)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
