"""A lock that is had in the order in which it was asked for, so that nobody who writes a lot keeps the others out."""

import threading
from collections import deque

_FOR_EVER = 1e6


class Turnstile:
    """One at a time, first come, first served."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._line: deque[threading.Event] = deque()
        self._is_taken = False

    @property
    def is_awaited(self) -> bool:
        """Whether somebody stands in line."""
        return bool(self._line)

    def acquire(self, timeout: float) -> bool:
        """Wait for one's turn, at most so many seconds; whether it came."""
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return True
            mine = threading.Event()
            self._line.append(mine)
        try:
            if mine.wait(timeout):
                return True
        except BaseException:
            if not self._left_line(mine):
                self.release()
            raise
        return not self._left_line(mine)

    def _left_line(self, mine: threading.Event) -> bool:
        """Go away without having had one's turn; False if it came in the last moment."""
        with self._guard:
            if mine.is_set():
                return False
            self._line.remove(mine)
            return True

    def __enter__(self) -> None:
        self.acquire(_FOR_EVER)

    def __exit__(self, *_error: object) -> None:
        self.release()

    def release(self) -> None:
        with self._guard:
            if self._line:
                self._line.popleft().set()  # it stays taken, by the next one
            else:
                self._is_taken = False
