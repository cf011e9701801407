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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[Callable[[], None]] = deque()
        self._has_leisure = False

    def ask(self, act: Callable[[], None]) -> None:
        if self._loop is not (loop := asyncio.get_running_loop()):  # what waited in another loop, nobody waits for
            self._loop, self._has_leisure = loop, False
            self._waiting.clear()
        self._waiting.append(act)
        if len(self._waiting) == 1:
            self._rest(ROUNDS_BETWEEN)

    def ask_later(self, act: Callable[[], bool]) -> None:
        """Let something be done when what waits is done, and again as long as it says that it is worth while.

        There is only one such thing at a time; whoever asks for it while it waits need not have asked.
        """
        if not self._has_leisure or self._loop is not asyncio.get_running_loop():
            self.ask(partial(self._at_leisure, act))
            self._has_leisure = True

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
        self._busy: asyncio.AbstractEventLoop | None = None
        """The loop that is in a round in which something was done."""

    def ask(self, act: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if self._busy is loop:
            loop.call_soon(act)
            return
        self._busy = loop
        loop.call_soon(self._end_round)
        act()

    def _end_round(self) -> None:
        self._busy = None
