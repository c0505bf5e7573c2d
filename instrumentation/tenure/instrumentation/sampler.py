"""A sampler that keeps ownership spans of unsampled traces for processors only.

This module needs the OpenTelemetry SDK, which `tenure[detect]` and `tenure[otlp]` have.
"""

import logging
import os
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, final

from opentelemetry.sdk.trace.sampling import (
    DEFAULT_ON,
    Decision,
    Sampler,
    SamplingResult,
)

from tenure.instrumentation import semconv
from tenure.instrumentation.errors import TelemetryConfigError

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes

NAME: Final = "tenure_record_ownership"
"""What `OTEL_TRACES_SAMPLER` says to have this sampler."""

_SAMPLER: Final = "OTEL_TRACES_SAMPLER"
_ARGUMENT: Final = "OTEL_TRACES_SAMPLER_ARG"
_GROUP: Final = "opentelemetry_traces_sampler"
# Those of OpenTelemetry whose argument is a number.
_RATIOS: Final = frozenset({"traceidratio", "parentbased_traceidratio"})

_logger = logging.getLogger(__name__)


@final
class RecordOwnership(Sampler):
    """Leaves the decision to another sampler, and loses no ownership span by it.

    A span that the other sampler drops is recorded all the same if it is about who owns
    a workflow instance: span processors see it, with all its attributes and as
    unsampled, and exporters pass it over. Any other span is left alone.

    Safe to share between threads if the other sampler is.

    Args:
        sampler: What decides which spans are exported.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler: Final = sampler

    def should_sample(
        self,
        parent_context: "Context | None",
        trace_id: int,
        name: str,
        kind: "SpanKind | None" = None,
        attributes: "Attributes" = None,
        links: "Sequence[Link] | None" = None,
        trace_state: "TraceState | None" = None,
    ) -> SamplingResult:
        """Decide as the other sampler does, but for ownership spans that it drops."""
        given = (parent_context, trace_id, name, kind, attributes, links)
        # Samplers that were written before `trace_state` came do not take it.
        more = () if trace_state is None else (trace_state,)
        result = self._sampler.should_sample(*given, *more)
        if result.decision is not Decision.DROP or not _is_ownership(attributes):
            return result
        # OpenTelemetry's samplers hand no attributes on when they drop.
        # The SDK's class does not say what its attributes are.
        added: Attributes = getattr(result, "attributes", None)
        kept = {**(attributes or {}), **(added or {})}
        return SamplingResult(Decision.RECORD_ONLY, kept, result.trace_state)

    def get_description(self) -> str:
        """Return the name of this sampler and of the other one."""
        return f"RecordOwnership{{{self._sampler.get_description()}}}"


def _is_ownership(attributes: "Attributes") -> bool:
    """Say whether a span tells who owned; a `run` span begins without an epoch."""
    if not attributes:
        return False
    if semconv.RUN_EPOCH in attributes:
        return True
    return semconv.RUN_ID in attributes and semconv.ANOMALY not in attributes


def record_ownership(argument: str | None = None) -> RecordOwnership:
    """Build the sampler for `OTEL_TRACES_SAMPLER`; the entry point of zero code.

    Args:
        argument: What decides which spans are exported, such as `always_off` or
            `parentbased_traceidratio=0.01`. One that cannot be used is logged, and
            everything is exported.
    """
    try:
        return RecordOwnership(_sampler(argument))
    except TelemetryConfigError as error:
        # The program must start, and must not lose traces for a typing error.
        _logger.error("%s. Until then, all traces are exported", error)  # noqa: TRY400
        return RecordOwnership(DEFAULT_ON)


def from_environment() -> RecordOwnership | None:
    """Build the sampler that the environment asks for by name; `None` if it does not.

    The SDK itself looks names of other packages up in zero code only.

    Raises:
        TelemetryConfigError: Its argument cannot be used.
    """
    if os.environ.get(_SAMPLER, "").strip().lower() != NAME:
        return None
    return RecordOwnership(_sampler(os.environ.get(_ARGUMENT)))


def _sampler(argument: str | None) -> Sampler:
    """Build the sampler that `argument` names.

    Raises:
        TelemetryConfigError: There is none, or it does not take its own argument.
    """
    spec = (argument or "").strip()
    if not spec:
        return DEFAULT_ON
    name, _, own = (part.strip() for part in spec.partition("="))
    try:
        return _factory(name.lower())(_argument(name.lower(), own))
    except TelemetryConfigError:
        raise
    except Exception as error:
        # Samplers of other packages refuse arguments with any class of error.
        raise TelemetryConfigError(_ARGUMENT, spec, str(error)) from error


def _factory(name: str) -> Callable[[float | str | None], Sampler]:
    found = entry_points(group=_GROUP)
    known = sorted(point.name for point in found if point.name != NAME)
    if name not in known:
        raise TelemetryConfigError(
            _ARGUMENT,
            name,
            f"name a sampler, one of {', '.join(known)}; those that take an argument "
            "as in parentbased_traceidratio=0.01",
        )
    (first, *_) = (point for point in found if point.name == name)
    factory: Callable[[float | str | None], Sampler] = first.load()
    return factory


def _argument(name: str, value: str) -> float | str | None:
    if name not in _RATIOS:
        return value or None
    try:
        ratio = float(value)
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise TelemetryConfigError(
            _ARGUMENT,
            f"{name}={value}" if value else name,
            f"give a ratio from 0 to 1, as in {name}=0.01",
        )
    return ratio


__all__ = ["NAME", "RecordOwnership", "from_environment", "record_ownership"]
