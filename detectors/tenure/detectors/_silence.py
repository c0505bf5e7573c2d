"""For how long nothing has arrived of an instance, on a clock that others read."""


class Silence:
    """A span of time in which nothing arrived.

    Attributes:
        reported: Whether it has been told since something arrived.
    """

    __slots__ = ("_arrived", "_since", "reported")

    def __init__(self) -> None:
        self._arrived: tuple[int, ...] = ()
        self._since = 0.0
        self.reported = False

    def until(self, now: float, arrived: tuple[int, ...]) -> float:
        """Say how long it has lasted.

        Args:
            now: The time; one that goes back begins anew.
            arrived: How much has arrived. What is more than at the last call counts as
                arriving now.
        """
        if arrived != self._arrived or now < self._since:
            self._arrived, self._since = arrived, now
            self.reported = False
        return now - self._since
