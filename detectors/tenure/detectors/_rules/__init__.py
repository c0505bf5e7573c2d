"""The rules, by the operation that they judge.

A rule is a pure function of one operation and the history before it. It returns `()` in
the ordinary case and allocates nothing then.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from tenure.detectors._history import History
from tenure.detectors._rules.epoch_reuse import epoch_reuse
from tenure.detectors._rules.foreign_delivery import foreign_delivery
from tenure.detectors._rules.late_write import late_write
from tenure.detectors._rules.leaked_write import leaked_write
from tenure.detectors._rules.overlapping_owners import overlapping_owners
from tenure.detectors._rules.stale_commit import stale_commit
from tenure.detectors._rules.stale_discard import stale_discard
from tenure.detectors.findings import Finding
from tenure.instrumentation.operations import (
    Claim,
    Commit,
    Discard,
    ForeignDelivery,
    Late,
    Operation,
)

Rule = Callable[[Any, History], tuple[Finding, ...]]
"""Judges one kind of operation; the table below pairs it with the kind it takes."""

RULES: Final[Mapping[type[Operation], tuple[Rule, ...]]] = MappingProxyType({
    Claim: (epoch_reuse, overlapping_owners),
    Commit: (stale_commit, leaked_write),
    Discard: (stale_discard,),
    Late: (late_write,),
    ForeignDelivery: (foreign_delivery,),
})
"""Which rules judge which operation; an operation that is not here breaks none."""

__all__ = ["RULES", "Rule"]
