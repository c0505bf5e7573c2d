"""tenure: what isolation, ownership and telemetry cost on top of bare asyncio."""

import asyncio
import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from harness import MemoryProbe, Peer, Prepared, Request, main
from tracing import Tracing

from tenure.detectors import Detector
from tenure.instrumentation import Recorder
from tenure.instrumentation.semconv import COMMIT_CAUSE as _  # noqa: F401
from tenure.runtime import (
    Executor,
    OutputYielded,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
)
