"""What is told about: an engine and, in it, an instance."""

import itertools
from typing import Final

from opentelemetry import trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Span

from tenure.instrumentation import semconv
from tenure.instrumentation._metrics import Instruments
from tenure.instrumentation._settings import (
    Detail,
    KeyDisplay,
    detail_from_environment,
    key_mask,
    keys_from_environment,
)
from tenure.instrumentation.process import process_id


class EngineSource:
    """How one engine is told: what `Recorder` is made of.

    Args:
        engine: Engine and version, such as `tenure/0.1.0`.
        scope: Instrumentation scope of its spans and metrics.
        detail: How much is told; `TENURE_DETAIL`, else all but messages, by default.
        keys: How state keys appear; `TENURE_KEYS`, else as they are, by default.
        tracer_provider: Where spans go; the global provider by default.
        meter_provider: Where metrics go; the global provider by default.

    Raises:
        TelemetryConfigError: An environment variable has a value that is not known.
    """

    def __init__(
        self,
        engine: str,
        *,
        scope: str = semconv.RUNTIME_SCOPE,
        detail: Detail | None = None,
        keys: KeyDisplay | None = None,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        version = engine.partition("/")[2]
        self.engine: Final = engine
        self.detail: Final = detail_from_environment() if detail is None else detail
        self.tells_supersteps: Final = self.detail >= Detail.SUPERSTEPS
        self.tells_executors: Final = self.detail >= Detail.EXECUTORS
        self.tells_messages: Final = self.detail >= Detail.MESSAGES
        self.mask: Final = key_mask(keys_from_environment() if keys is None else keys)
        self.tracer: Final = trace.get_tracer(
            scope, version, tracer_provider, schema_url=semconv.SCHEMA_URL
        )
        self.instruments: Final = Instruments(scope, version, meter_provider)


class InstanceSource:
    """How one instance is told: what `InstanceRecorder` is made of.

    Args:
        recorder: Its engine.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        shared: Whether other processes may own the same instance, through a store.
    """

    def __init__(
        self,
        recorder: EngineSource,
        workflow: str,
        instance: str,
        *,
        shared: bool = False,
    ) -> None:
        self.recorder: Final = recorder
        self.workflow: Final = workflow
        self.instance = instance
        self._named: Final = instance
        self._shared: Final = shared
        self.owner_span: Span | None = None
        self._process = process_id()
        self._sequence = itertools.count(1)

    def next_seq(self) -> int:
        """Take the next position; one that is not emitted shows as lost telemetry."""
        return next(self._sequence)

    def sequence(self) -> "itertools.count[int]":
        """Return what numbers the operations of a run that starts now.

        A fork counts for itself, from 1: the positions that it inherited are its
        parent's to use. So is an instance that is in memory only: the fork has a copy,
        which is another instance from now on.
        """
        if self._process != process_id():
            self._process = process_id()
            if not self._shared:
                self.instance = f"{self._named}/{self._process}"
            self._sequence = itertools.count(1)
            self.owner_span = None
        return self._sequence
