"""Where the spans of a demo go: a file always, a backend where one is named."""

from importlib.metadata import version
from pathlib import Path
from typing import Final, final

from opentelemetry import trace
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tenure.cli._demo.noise import KeptAside
from tenure.cli._status import CommandError
from tenure.instrumentation import OtlpTelemetry, TelemetryConfigError, configure_otlp
from tenure.instrumentation.otlp_json import JsonLinesSpanExporter
from tenure.instrumentation.sdk import QUEUE_SIZE, otlp_endpoint

_SERVICE: Final = "tenure-demo"
_PATIENCE: Final = 5.0
"""Seconds that a backend gets to take what waits."""


@final
class Spans:
    """The spans that this process emits from now on, until `close`.

    Args:
        output: The file; it is replaced at `close`.

    Raises:
        CommandError: The file or the telemetry cannot be set up.
    """

    def __init__(self, output: Path) -> None:
        self.output: Final = output
        self.endpoint: Final = otlp_endpoint()
        # The SDK logs each attempt at a backend that does not answer; `close` says it.
        self._logged: Final = KeptAside("opentelemetry")
        self._telemetry: Final = _live() if self.endpoint is not None else None
        self._file: Final = _opened(output)
        self._processor: Final[SpanProcessor] = BatchSpanProcessor(
            self._file, max_queue_size=QUEUE_SIZE
        )
        _provider().add_span_processor(self._processor)
        self._logged.__enter__()
        self._unreached = False

    @property
    def reached(self) -> str | None:
        """The backend that got the spans too; known after `close`."""
        return None if self._unreached else self.endpoint

    @property
    def written(self) -> int:
        """How many spans are in the file."""
        return self._file.written_spans

    @property
    def lost(self) -> int:
        """How many spans could not be written to the file."""
        return self._file.lost_spans

    def close(self) -> tuple[str, ...]:
        """Write and export what waits.

        Returns:
            A sentence for each thing that went wrong.
        """
        self._processor.shutdown()
        wrong: list[str] = []
        if self.lost:
            wrong.append(f"{self.lost} spans could not be written to {self.output}")
        if self._telemetry is not None and not self._telemetry.shutdown(_PATIENCE):
            self._unreached = True
            wrong.append(f"spans did not reach {self.endpoint}: {self._reason()}")
        self._logged.__exit__(None, None, None)
        return tuple(wrong)

    def _reason(self) -> str:
        """What the SDK logged last, of any signal: it logs one reason once."""
        messages = self._logged.messages
        return messages[-1] if messages else "it does not answer"


def _live() -> OtlpTelemetry:
    try:
        return configure_otlp(
            service_name=_SERVICE,
            resource_attributes={SERVICE_VERSION: version("tenure")},
        )
    except TelemetryConfigError as error:
        raise CommandError(str(error)) from error


def _opened(output: Path) -> JsonLinesSpanExporter:
    try:
        return JsonLinesSpanExporter(output, replace=True)
    except OSError as error:
        raise CommandError(f"{output} cannot be written: {error.strerror}") from error


def _provider() -> TracerProvider:
    """Return the global provider of spans; make one where there is none."""
    current = trace.get_tracer_provider()
    if isinstance(current, TracerProvider):
        return current
    resource = Resource.create({
        SERVICE_NAME: _SERVICE,
        SERVICE_VERSION: version("tenure"),
    })
    provider = TracerProvider(resource=resource)
    trace.set_tracer_provider(provider)
    return provider
