"""The meters of a recorder: low cardinality, and silent where nobody collects."""

from time import perf_counter
from typing import Final

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider, NoOpMeterProvider

from tenure.instrumentation import semconv
from tenure.instrumentation._harmless import harmless
from tenure.instrumentation.operations import DiscardCause, Outcome

_SECONDS: Final = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
"""Bounds of the histograms: from a superstep in memory to a model that takes its time.

The SDK's own bounds are meant for milliseconds, and put everything below five seconds
into one bucket.
"""

_collecting: Final[dict[type, bool]] = {}
"""For each kind of meter provider, whether it takes measurements."""


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
            explicit_bucket_boundaries_advisory=_SECONDS,
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
            explicit_bucket_boundaries_advisory=_SECONDS,
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
        kind = type(provider)
        known = _collecting.get(kind)
        if known is None:
            known = _collecting[kind] = not (
                isinstance(provider, NoOpMeterProvider)
                or kind.__module__.startswith("opentelemetry.metrics")
            )
        return known


class RunMeasures:
    """What is measured of one run; an exporter or a view that raises is logged.

    Args:
        instruments: The instruments of its recorder.
        engine: Engine and version.
        workflow: Name of the workflow.
    """

    def __init__(self, instruments: Instruments, engine: str, workflow: str) -> None:
        self._instruments: Final = instruments
        self._labels: Final = {
            semconv.ENGINE: engine,
            semconv.WORKFLOW_NAME: workflow,
        }
        self._started: Final = perf_counter()
        self._superstep_started: float | None = None
        # Invariant: true exactly while this run is counted as active.
        self._active = False

    @harmless
    def claimed(self) -> None:
        """Count the run as active."""
        if not self._active:
            self._active = True
            self._instruments.run_active.add(1, self._labels)

    @harmless
    def ended(self, outcome: Outcome) -> None:
        """Record how long the run took and no longer count it as active."""
        if self._active:
            self._active = False
            self._instruments.run_active.add(-1, self._labels)
        self._instruments.run_duration.record(
            perf_counter() - self._started,
            {**self._labels, semconv.RUN_OUTCOME: outcome.value},
        )

    @harmless
    def superstep_started(self) -> None:
        """Start the clock of a superstep."""
        self._superstep_started = perf_counter()

    @harmless
    def superstep_ended(self) -> None:
        """Record how long the superstep took, where its start was seen."""
        started, self._superstep_started = self._superstep_started, None
        if started is not None:
            self._instruments.superstep_duration.record(
                perf_counter() - started, self._labels
            )

    @harmless
    def committed(self) -> None:
        """Count a commit."""
        self._instruments.commits.add(1, self._labels)

    @harmless
    def discarded(self, cause: DiscardCause, *, fenced: bool) -> None:
        """Count a discard; a fenced one is an averted race."""
        labels = {
            **self._labels,
            semconv.DISCARD_CAUSE: cause.value,
            semconv.DISCARD_FENCED: fenced,
        }
        self._instruments.discards.add(1, labels)
