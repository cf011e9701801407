"""How many bytes of answers are in memory at once: for each holder of a token, and for all together.

An answer that may be long reserves room before it is put together, and keeps what it needs until it has been sent. So a
client that asks for much and reads slowly waits for itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from segue.listening.bodies import Refusal

MAX_ANSWER = 8 * 1024 * 1024
"""Bytes of one answer, and of the answers to one batch together, over HTTP and over a WebSocket."""
PER_HOLDER = 2 * MAX_ANSWER
TOTAL = 6 * MAX_ANSWER
WAIT_TIMEOUT = 30.0
_AGAIN_SECONDS = 5


class Reservation:
    """Room for one answer."""

    def __init__(self, size: int) -> None:
        self.size = size


class AnswerBudget:
    """The room for answers of one server."""

    def __init__(self, per_holder: int = PER_HOLDER, total: int = TOTAL) -> None:
        self._per_holder = per_holder
        self._total = total
        self._held: dict[str, int] = {}
        self._freed = asyncio.Condition()

    @property
    def held(self) -> int:
        return sum(self._held.values())

    @asynccontextmanager
    async def reserve(self, holder: str, size: int = MAX_ANSWER) -> AsyncIterator[Reservation]:
        """Wait until an answer of so many bytes has room, and hold it; raise `Refusal` when it takes too long."""
        try:
            async with asyncio.timeout(WAIT_TIMEOUT), self._freed:
                await self._freed.wait_for(lambda: self._fits(holder, size))
                self._held[holder] = self._held.get(holder, 0) + size
        except TimeoutError:
            raise Refusal(503, "Answers that were asked for are not read; read them first.", _AGAIN_SECONDS) from None
        reservation = Reservation(size)
        try:
            yield reservation
        finally:
            await self.shrink(holder, reservation, 0)

    async def shrink(self, holder: str, reservation: Reservation, size: int) -> None:
        """Give back what an answer does not need."""
        freed = reservation.size - size
        if freed > 0:
            reservation.size = size
            left = self._held[holder] - freed
            if left:
                self._held[holder] = left
            else:
                del self._held[holder]
            async with self._freed:
                self._freed.notify_all()

    def _fits(self, holder: str, size: int) -> bool:
        own = self._held.get(holder, 0)
        is_theirs_free = own == 0 or own + size <= self._per_holder
        return is_theirs_free and (not self._held or self.held + size <= self._total)
