"""The instrumentor: finds the engine, checks that it is known, puts the wrappers in."""

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import TracerProvider

from tenure.instrumentation._settings import Detail, KeyDisplay
from tenure.instrumentation.agent_framework import _engine
from tenure.instrumentation.agent_framework._calls import Foreign
from tenure.instrumentation.agent_framework._patches import (
    Patches,
    WrapPoint,
    wrap_points,
)
from tenure.instrumentation.agent_framework._registry import Registry
from tenure.instrumentation.errors import UnsupportedEngineError
from tenure.instrumentation.recorder import Recorder


class Options(TypedDict, total=False):
    """Keyword arguments of `AgentFrameworkInstrumentor.instrument`.

    Attributes:
        tracer_provider: Where spans go; the global provider by default.
        meter_provider: Where metrics go; the global provider by default.
        detail: How much is told; `TENURE_DETAIL`, else everything, by default.
        keys: How state keys appear; `TENURE_KEYS`, else as they are, by default.
        on_unknown_version: What to do about an engine version whose wrap points are not
            known: `raise`, the default, or `warn` and use those that still match.
        skip_dep_check: OpenTelemetry's name for not asking about the version at all.
        raise_exception_on_conflict: Set by `opentelemetry-instrument`, which skips an
            instrumentor whose engine is missing or of another version.
    """

    tracer_provider: TracerProvider | None
    meter_provider: MeterProvider | None
    detail: Detail | None
    keys: KeyDisplay | None
    on_unknown_version: Literal["raise", "warn"]
    skip_dep_check: bool
    raise_exception_on_conflict: bool


if TYPE_CHECKING:

    class _BaseInstrumentor:
        """What is used of OpenTelemetry's class; its module is not type checked."""

        def instrument(self, **kwargs: Unpack[Options]) -> None: ...

        def uninstrument(self, **kwargs: Foreign) -> None: ...

else:
    from opentelemetry.instrumentation.instrumentor import (
        BaseInstrumentor as _BaseInstrumentor,
    )


class AgentFrameworkInstrumentor(_BaseInstrumentor):
    """Tells who owned what and when in workflows of Microsoft agent-framework.

    It changes nothing in them. There is one per process, as OpenTelemetry has it.
    """

    _registry: Registry | None = None
    _patches: Patches | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return the engine versions that this instrumentor knows."""
        return (_engine.REQUIREMENT,)

    def instrument(self, **kwargs: Unpack[Options]) -> None:
        """Begin to tell what workflows do; runs that are under way are left out.

        Args:
            **kwargs: See `Options`.

        Raises:
            UnsupportedEngineError: The engine is missing, or its version is unknown.
            TelemetryConfigError: An environment variable has a value that is not known.
        """
        if not kwargs.get("raise_exception_on_conflict", False):
            # OpenTelemetry would log and leave: raise the error to a caller by hand.
            kwargs["skip_dep_check"] = True
        super().instrument(**kwargs)

    def uninstrument(self, **kwargs: Foreign) -> None:
        """Stop telling and take the wrappers away.

        Args:
            **kwargs: Ignored.
        """
        super().uninstrument(**kwargs)

    def _instrument(self, **kwargs: Foreign) -> None:
        installed = _engine.installed_version()
        registry = Registry(
            Recorder(
                f"agent-framework/{installed}",
                scope=_engine.SCOPE,
                detail=kwargs.get("detail"),
                keys=kwargs.get("keys"),
                tracer_provider=kwargs.get("tracer_provider"),
                meter_provider=kwargs.get("meter_provider"),
            )
        )
        points = wrap_points(registry)
        _check(installed, points, strict=kwargs.get("on_unknown_version") != "warn")
        patches = Patches()
        patches.place(points)
        self._registry, self._patches = registry, patches

    def _uninstrument(self, **kwargs: Foreign) -> None:
        registry, self._registry = self._registry, None
        patches, self._patches = self._patches, None
        if patches is not None:
            patches.remove()
        if registry is not None:
            registry.close()


def _check(installed: str, points: tuple[WrapPoint, ...], *, strict: bool) -> None:
    """Refuse an engine that is missing, and one that is unknown unless only warned of.

    Args:
        installed: Version of the engine.
        points: What would be wrapped.
        strict: Whether an unknown version is refused.
    """
    if installed == _engine.NOT_INSTALLED:
        raise UnsupportedEngineError(_engine.DISTRIBUTION, installed, _engine.SUPPORTED)
    missing = [point.name for point in points if point.find() is None]
    if _engine.is_supported(installed) and not missing:
        return
    if strict:
        raise UnsupportedEngineError(_engine.DISTRIBUTION, installed, _engine.SUPPORTED)
    lost = f"; not found in it: {', '.join(missing)}" if missing else ""
    warnings.warn(
        f"{_engine.DISTRIBUTION} {installed} is not a version that this instrumentor "
        f"knows ({', '.join(_engine.SUPPORTED)}): findings may be missed{lost}",
        RuntimeWarning,
        stacklevel=5,
    )
