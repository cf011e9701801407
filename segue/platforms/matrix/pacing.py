"""How often something may be done that others can make us do."""

import time
from collections import deque


class Pace:
    """At most so many in so many seconds."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._done_at: deque[float] = deque()

    def allows(self) -> bool:
        """Whether it may be done once more now; then it counts as done."""
        now = time.monotonic()
        while self._done_at and self._done_at[0] <= now - self._seconds:
            self._done_at.popleft()
        if len(self._done_at) >= self._most:
            return False
        self._done_at.append(now)
        return True
