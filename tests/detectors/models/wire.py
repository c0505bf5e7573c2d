"""What becomes of telemetry on its way: lost, repeated, out of order."""

from dataclasses import dataclass
from random import Random

from tenure.instrumentation.operations import Operation


@dataclass(frozen=True)
class Wire:
    """What becomes of telemetry on its way.

    Attributes:
        loss: Share of operations that never arrive.
        repeat: Share of the others that arrive twice.
        window: How far operations overtake each other; `None` for no order at all.
    """

    loss: float
    repeat: float
    window: int | None

    def carry(self, told: list[Operation], random: Random) -> list[Operation]:
        kept = [one for one in told if random.random() >= self.loss]
        twice = [one for one in kept if random.random() < self.repeat]
        arrived = [*kept, *twice]
        if self.window is None:
            random.shuffle(arrived)
            return arrived
        order = {id(one): number for number, one in enumerate(kept)}
        return sorted(
            arrived, key=lambda one: order[id(one)] + random.random() * self.window
        )
