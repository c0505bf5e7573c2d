"""The one mouth: engines and instrumentors tell a recorder, and it tells everybody.

A recorder hands each operation to the listeners of this process, whether or not an SDK
is present, and emits it as a span. Only this part of tenure touches OpenTelemetry's
API on behalf of an engine. Parents are passed explicitly, because a span that is
current across a `yield` becomes the parent of the next run. One method attaches a
context, `RunRecorder.make_current`, in tasks that the engine made and that end with the
run.

A recorder never raises into its caller, never blocks and never records values. It must
not be called from a finalizer: exporters hold locks that the interrupted code may own.
"""

from opentelemetry.context import Context

from tenure.instrumentation._run_recorder import RunRecorder as RunRecorder
from tenure.instrumentation._sources import EngineSource, InstanceSource

__all__ = ["InstanceRecorder", "Recorder", "RunRecorder"]


class Recorder(EngineSource):
    """What one engine tells.

    Safe to share between threads.

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

    def instance(
        self, workflow: str, instance: str, *, shared: bool = False
    ) -> "InstanceRecorder":
        """Return the recorder of one instance; keep it as long as the instance lives.

        Args:
            workflow: Name of the workflow.
            instance: Identity of the instance, unique among all that are alive.
            shared: Whether other processes may own the same instance, through a store.
        """
        return InstanceRecorder(self, workflow, instance, shared=shared)


class InstanceRecorder(InstanceSource):
    """What is told of one instance: it numbers the operations.

    Args:
        recorder: The engine's recorder.
        workflow: Name of the workflow.
        instance: Identity of the instance.
        shared: Whether other processes may own the same instance, through a store.
    """

    def run(self, run_id: str, *, parent: Context | None = None) -> RunRecorder:
        """Start the `run` span.

        Call it synchronously in the call that creates the run: that is where the
        caller's context is the current one.

        Args:
            run_id: Unique identity of the run.
            parent: Context of the `run` span; the current one by default.
        """
        return RunRecorder(self, run_id, parent)
