"""Asks a running gateway how it is: whether its store can be read and written, and how its platforms stand.

The store is asked by one at a time, and not more often than once a second, however many want to know. Whoever asks is
answered within seconds, even while the store is not.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from segue.core.errors import SegueError
from segue.gateway.gateway import Gateway
from segue.gateway.metrics import Counters, Link, exposition
from segue.gateway.readiness import Health, LinkState, Readiness, health, readiness
from segue.ports.store import Transaction
from segue.sessions.figures import Figures, figures

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds after which a store that does not answer is out of order."""
FRESH_SECONDS = 1.0
"""For which an answer of the store holds."""


class _Shared(Generic[T]):
    """An answer that everybody shares who asks at about the same time."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[T] | None = None
        self._asked_at = 0.0

    async def answer(self) -> T | None:
        """What came of it; nothing while nothing has."""
        asking, now = self._asking, time.monotonic()
        if asking is None or (asking.done() and now - self._asked_at > FRESH_SECONDS):
            asking = self._asking = asyncio.create_task(self._ask())
            self._asked_at = now
        await asyncio.wait({asking}, timeout=PATIENCE)
        return asking.result() if asking.done() else None


class Probe:
    """Looks at one gateway."""

    def __init__(self, gateway: Gateway, counters: Counters) -> None:
        self._gateway = gateway
        self._counters = counters
        self._began_at = time.monotonic()
        self._trouble = _Shared(self._find_trouble)
        self._figures = _Shared(self._read_figures)

    def health(self) -> Health:
        return health(self._began_at, time.monotonic())

    async def readiness(self) -> Readiness:
        is_begun, is_draining = self._gateway.is_begun, not self._gateway.desk.is_open
        trouble: str | None = ""
        if is_begun and not is_draining:
            trouble = await self._trouble.answer()
        told = f"It has not answered for {PATIENCE:g} seconds." if trouble is None else trouble or None
        return readiness(self._links(), store_trouble=told, is_begun=is_begun, is_draining=is_draining)

    async def exposition(self) -> tuple[bytes, str]:
        """What Prometheus reads: body and content type."""
        links = [Link(one.platform, one.is_up) for one in self._links()]
        return exposition(self._counters, await self._figures.answer(), links)

    async def _read_figures(self) -> Figures | None:
        try:
            return await self._gateway.door.read(figures, time.time(), self._gateway.presence.is_gone)
        except SegueError:
            return None  # which is one of the figures

    async def _find_trouble(self) -> str:
        """What is wrong with the store; nothing when it was written and read just now."""
        door, run_id = self._gateway.door, self._gateway.presence.run.id
        try:
            await door.write(_beat, run_id)
            await door.read(lambda tx: tx.leases.find_run(run_id))
        except SegueError as error:
            return str(error) or type(error).__name__
        return ""

    def _links(self) -> list[LinkState]:
        found = [(one.platform, one.link) for one in self._gateway.connections]
        return [LinkState(one.name, one.account, link.is_up, link.trouble) for one, link in found]


def _beat(tx: Transaction, run_id: str) -> None:
    """Write what is written every few seconds anyway."""
    tx.leases.change_run(run_id, beat_at=tx.leases.now())
