"""When a server that is gone is reached again: a few times in a row, each after a pause, and then after a long rest.

The clock is an argument. A server that was there for a moment, and of no use, has failed like one that never came.
"""

MOST_IN_A_ROW = 3
PAUSE = 0.5
"""Seconds before the second try of a row; before the third there are twice as many."""
REST = 60.0
"""Seconds after a row that was in vain; each row doubles them."""
_LONGEST_REST = 3_600.0
_LASTING = 60.0  # seconds after which a server is not one that ends at once


class Tries:
    """How often one server was tried since it was last of use."""

    def __init__(self, pause: float = PAUSE, rest: float = REST) -> None:
        self._pause = pause
        self._rest = rest
        self._most = 1  # until it has come once: who named a server that is not there is told at once
        self._in_row = 0
        self._rows = 0
        self._rested_at = 0.0
        self._came_at: float | None = None

    def wait(self, now: float) -> float | None:
        """Seconds until the next try; nothing while the rest lasts."""
        return None if now < self._rested_at else self._pause * self._in_row

    def begun(self) -> None:
        """There is one try more."""
        self._in_row += 1

    def came(self, now: float) -> None:
        """It is there."""
        if self._most == 1:
            self._most = MOST_IN_A_ROW
            self.proved()
        self._came_at = now

    def proved(self) -> None:
        """It was of use, so whatever happens next is something new."""
        self._in_row = self._rows = 0

    def lost(self, now: float) -> None:
        """It is gone, or did not come."""
        if self._came_at is not None and now - self._came_at >= _LASTING:
            self.proved()
        self._came_at = None
        if self._in_row >= self._most:
            self._rested_at = now + min(self._rest * 2**self._rows, _LONGEST_REST)
            self._in_row, self._rows = 0, self._rows + 1
