"""OpenTelemetry's SDK in one call: spans, metrics and log events over OTLP.

Importing this module loads no SDK; calling `configure_otlp` does.
"""

import atexit
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, final

from tenure.instrumentation import _otlp_variables as variables
from tenure.instrumentation._otlp_variables import Signal
from tenure.instrumentation.errors import TelemetryConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.sampling import Sampler
    from opentelemetry.util.types import AttributeValue

    from tenure.instrumentation._otlp import Pipelines

QUEUE_SIZE: Final = 65_536
"""How many spans wait for the exporter; the SDK's own 2,048 lose a third of a burst."""

EXIT_TIMEOUT: Final = 10.0
"""Seconds that a process which ends waits for a backend, at most."""

_SHARE_OF_SPANS_AND_LOGS: Final = 0.8
_logger = logging.getLogger(__name__)
_configuring: Final = threading.Lock()


@final
class OtlpTelemetry:
    """What `configure_otlp` set up.

    Safe to use from any thread.
    """

    def __init__(self, pipelines: "Pipelines") -> None:
        self._pipelines: Final = pipelines
        self._stopping: Final = threading.Lock()
        self._stopped: bool | None = None

    @property
    def _made(self) -> "tuple[TracerProvider | MeterProvider | LoggerProvider, ...]":
        return self._pipelines.made

    @property
    def kept(self) -> frozenset[str]:
        """Signals whose provider the application had set up before, and still owns."""
        return frozenset(signal.lower() for signal in self._pipelines.kept)

    @property
    def lost_spans(self) -> int:
        """How many spans the exporter failed to deliver; the SDK only logs it."""
        exporter = self._pipelines.span_exporter
        return 0 if exporter is None else exporter.lost

    def force_flush(self, timeout: float = 10.0) -> bool:
        """Export what waits.

        Args:
            timeout: Seconds after which this returns, whatever the exporters do.

        Returns:
            Whether everything was exported in time and no export of spans failed.
        """
        lost = self.lost_spans
        flushed = _all_within(
            timeout,
            [partial(made.force_flush, int(timeout * 1000)) for made in self._made],
        )
        return flushed and self.lost_spans == lost

    def shutdown(self, timeout: float = EXIT_TIMEOUT) -> bool:
        """Export what waits and stop; a second call returns what the first one did.

        A provider that the application had set up before stays as it is. A new provider
        cannot be set up in this process afterwards: OpenTelemetry allows one.

        Args:
            timeout: Seconds after which this returns, whatever the exporters do. With
                a backend that does not answer they take about seven.

        Returns:
            Whether everything was exported in time and no export of spans failed.
        """
        atexit.unregister(self.shutdown)
        with self._stopping:
            if self._stopped is None:
                lost = self.lost_spans
                self._stopped = self._stop_all(timeout) and self.lost_spans == lost
            return self._stopped

    def _stop_all(self, timeout: float) -> bool:
        """Stop metrics last, and with time left: they tell what the others lost."""
        deadline = time.monotonic() + timeout
        meters = self._pipelines.meter_provider
        others = [partial(_stop, made) for made in self._made if made is not meters]
        stopped = _all_within(timeout * _SHARE_OF_SPANS_AND_LOGS, others)
        if meters is None:
            return stopped
        left = max(0.0, deadline - time.monotonic())
        return _all_within(left, [partial(_stop, meters)]) and stopped


def configure_otlp(
    *,
    service_name: str | None = None,
    resource_attributes: "Mapping[str, AttributeValue] | None" = None,
    span_processors: "Sequence[SpanProcessor]" = (),
    sampler: "Sampler | None" = None,
    record_ownership: bool = True,
    max_queue_size: int = QUEUE_SIZE,
    exit_timeout: float = EXIT_TIMEOUT,
) -> OtlpTelemetry:
    """Set up the OpenTelemetry SDK with OTLP exporters, as global providers.

    Where and how to export is read from the standard variables: `OTEL_SERVICE_NAME`,
    `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_*`, `OTEL_BSP_*`; and a signal is
    turned off by `none` in `OTEL_METRICS_EXPORTER` or its siblings. The environment
    wins over the arguments.

    A signal whose provider the application has set up already keeps it: that provider
    gets the span processors, after its own exporters, and no second exporter. The
    result names these signals.

    What is lost is counted: `otel.sdk.processor.span.processed` with `error.type`
    where the queue was full, `otel.sdk.exporter.span.exported` with `error.type` where
    the backend did not take it, and likewise for log events.

    May be called from any thread. Runs never wait for a backend; a process that ends
    does, for `exit_timeout` at most, and exports what waits.

    Args:
        service_name: Name of the service.
        resource_attributes: What else describes the process.
        span_processors: Such as a detector's; they see spans before the exporter.
        sampler: Which spans are exported; as the environment says by default.
        record_ownership: Whether span processors see ownership spans that the sampler
            drops, so that a detector has no gaps (see `RecordOwnership`). Such a span
            costs about as much as one that is exported.
        max_queue_size: How many spans, and how many log events, wait for the exporter.
        exit_timeout: Seconds that a process which ends waits for a backend, at most.

    Returns:
        A handle to flush and to shut down what was set up.

    Raises:
        TelemetryConfigError: The extra `tenure[otlp]` is not installed, or a variable
            has a value that cannot be used. Nothing has been set up then.
    """
    try:
        from tenure.instrumentation import _otlp
    except ImportError as error:
        raise _missing_extra() from error
    for signal in Signal:
        if variables.exported(signal):
            variables.check(signal)
    with _configuring:
        pipelines = _otlp.Pipelines(
            _otlp.resource(service_name, resource_attributes), max_queue_size
        )
        telemetry = OtlpTelemetry(pipelines)
        try:
            pipelines.build(span_processors, sampler, record_ownership=record_ownership)
        except BaseException as error:
            telemetry.shutdown(timeout=0)
            if isinstance(error, ImportError):
                raise _missing_extra() from error
            raise
        pipelines.install(span_processors)
    if pipelines.kept:
        _logger.info(
            "The application's own providers stay in use for: %s",
            ", ".join(sorted(telemetry.kept)),
        )
    atexit.register(telemetry.shutdown, exit_timeout)
    return telemetry


def otlp_endpoint() -> str | None:
    """Return where the environment says traces go; `None` where it names no place."""
    return variables.named_endpoint(Signal.TRACES)


def _missing_extra() -> TelemetryConfigError:
    return TelemetryConfigError(
        "tenure[otlp]", "not installed", "run pip install 'tenure[otlp]'"
    )


def _stop(made: "TracerProvider | MeterProvider | LoggerProvider") -> bool:
    made.shutdown()
    return True


def _all_within(timeout: float, actions: Sequence[Callable[[], bool]]) -> bool:
    """Run `actions` side by side and say whether all returned true in time.

    The SDK's own timeouts do not hold: a flush waits for the exporter's retries.
    """
    done: list[bool] = []

    def act(action: Callable[[], bool]) -> None:
        try:
            done.append(action())
        except Exception:
            _logger.exception("Telemetry could not be flushed")
            done.append(False)

    deadline = time.monotonic() + timeout
    threads: list[threading.Thread] = []
    for action in actions:
        thread = threading.Thread(
            target=act, args=(action,), name="tenure-otlp", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the interpreter is ending, from Python 3.12
            act(action)
        else:
            threads.append(thread)
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return len(done) == len(actions) and all(done)
