"""The meters of a recorder: low cardinality, and silent where nobody collects."""

from typing import Final

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider

from tenure.instrumentation import semconv


class Instruments:
    """The instruments of one recorder.

    Args:
        scope: Instrumentation scope.
        version: Version of the instrumented engine.
        provider: Where the meter comes from; the global one by default.
    """

    def __init__(
        self, scope: str, version: str, provider: MeterProvider | None
    ) -> None:
        self._provider: Final = provider
        meter = metrics.get_meter(
            scope, version, meter_provider=provider, schema_url=semconv.SCHEMA_URL
        )
        self.run_duration: Final = meter.create_histogram(
            semconv.METRIC_RUN_DURATION,
            unit="s",
            description="From the call to the end of the run's own cleanup.",
        )
        self.run_active: Final = meter.create_up_down_counter(
            semconv.METRIC_RUN_ACTIVE,
            unit="{run}",
            description="Runs that have claimed and not ended.",
        )
        self.superstep_duration: Final = meter.create_histogram(
            semconv.METRIC_SUPERSTEP_DURATION,
            unit="s",
            description="From delivery to commit or discard.",
        )
        self.commits: Final = meter.create_counter(
            semconv.METRIC_COMMITS, unit="{commit}", description="Commits."
        )
        self.discards: Final = meter.create_counter(
            semconv.METRIC_DISCARDS, unit="{discard}", description="Discards."
        )

    def collected(self) -> bool:
        """Say whether a real meter provider takes what is measured now.

        The API's own placeholder and no-op providers come from the API's package.
        """
        provider = self._provider or metrics.get_meter_provider()
        return not (
            isinstance(provider, NoOpMeterProvider)
            or type(provider).__module__.startswith("opentelemetry.metrics")
        )
