"""When something is done in a loop that others are waiting for."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

ROUNDS_BETWEEN = 3
"""As many as it takes a message from its socket to us."""


class Order(Protocol):
    def ask(self, act: Callable[[], None]) -> None:
        """Let something be done, now or soon."""


class Rounds(Order):
    """One thing after another, and between two of them the loop goes round a few times.

    So whoever comes in meanwhile waits for one thing at most, however many are to be done.
    """

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._has_leisure = False

    def ask(self, act: Callable[[], None]) -> None:
        self._waiting.append(act)
        if len(self._waiting) == 1:
            self._rest(ROUNDS_BETWEEN)

    def ask_later(self, act: Callable[[], bool]) -> None:
        """Let something be done when what waits is done, and again as long as it says that it is worth while.

        There is only one such thing at a time; whoever asks for it while it waits need not have asked.
        """
        if not self._has_leisure:
            self._has_leisure = True
            self.ask(partial(self._at_leisure, act))

    def _at_leisure(self, act: Callable[[], bool]) -> None:
        self._has_leisure = False
        if act():
            self.ask_later(act)

    def _rest(self, rounds: int) -> None:
        loop = asyncio.get_running_loop()
        if rounds:
            loop.call_soon(self._rest, rounds - 1)
        else:
            loop.call_soon(self._next)

    def _next(self) -> None:
        try:
            self._waiting[0]()
        finally:
            self._waiting.popleft()
            if self._waiting:
                self._rest(ROUNDS_BETWEEN)


class Promptly(Order):
    """The first thing in a round of the loop at once, the next one in the next: what comes in a crowd waits for it."""

    def __init__(self) -> None:
        self._has_done_one = False

    def ask(self, act: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if self._has_done_one:
            loop.call_soon(act)
            return
        self._has_done_one = True
        loop.call_soon(self._is_over)
        act()

    def _is_over(self) -> None:
        self._has_done_one = False
