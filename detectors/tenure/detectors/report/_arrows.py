"""Whom a finding points at."""

from collections.abc import Sequence
from typing import Final

from tenure.detectors.findings import Finding
from tenure.detectors.report._order import identity
from tenure.detectors.report._shapes import Arrow, Bar, Kind, Lane, Mark
from tenure.detectors.report._wording import accusation


class Archer:
    """Draws the arrows of one section.

    Args:
        marks: Its marks.
        lanes: Its lanes.
        bars: Its tenures.
    """

    def __init__(
        self, marks: Sequence[Mark], lanes: Sequence[Lane], bars: Sequence[Bar]
    ) -> None:
        self._marks: Final = {identity(mark.operation): mark for mark in marks}
        self._lanes: Final = lanes
        self._bars: Final = {bar.lane: bar for bar in bars}
        self._of_epoch: Final[dict[int, list[int]]] = {}
        for number, lane in enumerate(lanes):
            self._of_epoch.setdefault(lane.run.epoch, []).append(number)

    def draw(self, number: int, finding: Finding) -> Arrow | None:
        """Draw a finding from its culprit to its victim, else to the owner.

        Args:
            number: The finding's number.
            finding: The finding.

        Returns:
            The arrow; `None` where there is nobody to point at.
        """
        culprit = self._marks.get(identity(finding.culprit))
        if culprit is None:
            return None
        target = self._target(finding, culprit)
        if target is None:
            return None
        lane, place = target
        return Arrow(
            number, culprit.lane, culprit.place, lane, place, accusation(finding)
        )

    def _target(self, finding: Finding, culprit: Mark) -> tuple[int, int] | None:
        for epoch in (finding.victim_epoch, finding.owner_epoch):
            if epoch is None or epoch == finding.culprit_epoch:
                continue
            lane = self._lane(epoch, finding)
            if lane is not None:
                return lane, self._nearest(lane, culprit.place)
        return self._witness(finding, culprit)

    def _witness(self, finding: Finding, culprit: Mark) -> tuple[int, int] | None:
        """Point at what else proves it: in another lane, else within the run itself."""
        known = (self._marks.get(identity(each)) for each in finding.evidence[1:])
        marks = [mark for mark in known if mark is not None]
        others = [mark for mark in marks if mark.lane != culprit.lane]
        # A run's own claim proves who owned; it is nobody's victim.
        own = [mark for mark in marks if mark.kind is not Kind.CLAIM]
        # Of two that conflict, the earlier one is overwritten.
        own.sort(key=lambda mark: mark.place)
        for mark in (*others, *own):
            if mark.place != culprit.place:
                return mark.lane, mark.place
        return None

    def _lane(self, epoch: int, finding: Finding) -> int | None:
        """Return the lane of `epoch`: the one the evidence names, if it names one."""
        known = self._of_epoch.get(epoch, [])
        named = {
            seen.run.run_id for seen in finding.evidence if seen.run.epoch == epoch
        }
        for lane in known:
            if self._lanes[lane].run.run_id in named:
                return lane
        # A run that owned is a likelier victim than one that only came late.
        owning = [lane for lane in known if lane in self._bars]
        return next(iter(owning or known), None)

    def _nearest(self, lane: int, place: int) -> int:
        """Return where `lane`, or rather its bar, is drawn nearest to `place`."""
        bar = self._bars.get(lane)
        drawn = self._lanes[lane] if bar is None else bar
        return min(max(place, drawn.first), drawn.last)
