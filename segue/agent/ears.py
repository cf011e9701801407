"""What people say while an agent works: kept at once, heard between two steps, and never said twice."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from segue.agent.door import Door
from segue.agent.footing import Footing
from segue.core.errors import StoreError
from segue.core.turns import Heard
from segue.sessions import turning


class Hears(Protocol):
    """How an agent that works hears people, and what becomes of what they say."""

    async def take(self) -> list[str]:
        """What the agent has not been told yet."""

    async def acknowledge(self, text: str) -> None: ...
    async def close(self) -> None:
        """Hear nothing more."""


class Ears(Hears):
    """Open for as long as a turn runs."""

    def __init__(self, door: Door, footing: Footing, earlier: Sequence[Heard] = ()) -> None:
        self._door = door
        self._footing = footing
        self._waiting = deque(earlier)
        self._passed_on: deque[Heard] = deque()
        self._last = max((line.number for line in earlier), default=0)
        self._keeping: set[asyncio.Task[None]] = set()
        self._is_open = True

    def hear(self, text: str) -> bool:
        """Keep a line for the agent; False when the turn is over."""
        if not self._is_open:
            return False
        self._last += 1
        line = Heard(self._footing.turn.id, self._last, text, time.time())
        self._waiting.append(line)
        keeping = asyncio.create_task(self._keep(line))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        return True

    async def take(self) -> list[str]:
        """What the agent has not been told yet."""
        lines = list(self._waiting)
        self._passed_on += lines
        self._waiting.clear()
        return [line.content for line in lines]

    async def acknowledge(self, text: str) -> None:
        """The agent says that it has heard something: it becomes a message. A text of its own is one, too."""
        await self._door.write(turning.record_speech, self._footing.lease, self._footing.turn, self._passed(text))

    def _passed(self, text: str) -> Heard:
        for line in self._passed_on:
            if line.content == text:
                self._passed_on.remove(line)
                return line
        self._last += 1
        return Heard(self._footing.turn.id, self._last, text, time.time())

    async def close(self) -> None:
        """Hear nothing more; what was heard is kept by then."""
        self._is_open = False
        if self._keeping:
            await asyncio.wait(self._keeping)

    async def _keep(self, line: Heard) -> None:
        with suppress(StoreError):  # the turn meets the same trouble with its next word, and tells it
            await self._door.write(turning.hear, self._footing.lease, line)
