"""Asks a running gateway how it is: whether its store can be read and written, and how its platforms stand.

The store is asked by one at a time, and not more often than once a second, however many want to know. Whoever asks is
answered within `PATIENCE`, also while the store answers nobody.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from segue.core.errors import SegueError
from segue.gateway.gateway import Gateway
from segue.gateway.metrics import Counters, Link, exposition
from segue.gateway.readiness import Health, LinkState, Readiness, StoreState, health, readiness
from segue.ports.store import Transaction
from segue.sessions.figures import Figures, figures
from segue.sessions.watching import watch

T = TypeVar("T")

PATIENCE = 1.2
"""Seconds after which a store that does not answer counts as out of order. Who probes gives up after a few."""
FRESH_SECONDS = 1.0
"""For which an answer of the store holds."""


class _Shared(Generic[T]):
    """An answer that everybody shares who asks at about the same time."""

    def __init__(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[T] | None = None
        self._asked_at = 0.0

    async def answer(self, patience: float | None = None) -> T | None:
        """What came of it; nothing while nothing has."""
        asking, now = self._asking, time.monotonic()
        if asking is None or (asking.done() and now - self._asked_at > FRESH_SECONDS):
            asking = self._asking = asyncio.create_task(self._ask())
            self._asked_at = now
        await asyncio.wait({asking}, timeout=PATIENCE if patience is None else patience)
        return asking.result() if asking.done() else None


class Probe:
    """Looks at one gateway."""

    def __init__(self, gateway: Gateway, counters: Counters) -> None:
        self._gateway = gateway
        self._counters = counters
        self._began_at = time.monotonic()
        self._store = _Shared(self._look_at_store)
        self._figures = _Shared(self._read_figures)

    def health(self) -> Health:
        return health(self._began_at, time.monotonic())

    async def readiness(self) -> Readiness:
        is_begun, is_draining = self._gateway.is_begun, not self._gateway.desk.is_open
        store = await self.store() if is_begun and not is_draining else StoreState()
        return readiness(self._links(), store=store, is_begun=is_begun, is_draining=is_draining)

    async def store(self) -> StoreState:
        """What was found when the store was asked within the last second; within `PATIENCE`."""
        found = await self._store.answer()
        return found or StoreState(f"It has not answered for {PATIENCE:g} seconds.", is_answering=False)

    async def exposition(self, patience: float | None = None) -> tuple[bytes, str]:
        """What Prometheus reads: body and content type. Figures that take longer than that are left out."""
        links = [Link(one.platform, one.is_up, bool(one.held_by)) for one in self._links()]
        return exposition(self._counters, await self._figures.answer(patience), links)

    async def _read_figures(self) -> Figures | None:
        try:
            return await self._gateway.door.read(figures, time.time(), self._gateway.presence.is_gone)
        except SegueError:
            return None  # which is one of the figures

    async def _look_at_store(self) -> StoreState:
        """Write to the store and read from it."""
        door, presence = self._gateway.door, self._gateway.presence
        try:
            await door.write(_beat, presence.run.id)
            seen = await door.read(watch, presence.is_gone)
        except SegueError as error:
            return StoreState(str(error) or type(error).__name__)
        return StoreState(None, sum(queue.waiting for queue in seen.unattended), seen.left_waiting)

    def _links(self) -> list[LinkState]:
        found = [(one.platform, one.link) for one in self._gateway.connections]
        return [
            LinkState(
                one.name,
                one.account,
                link.is_up,
                link.trouble,
                link.held_by if link.is_standby else None,
                one.traits.is_listener,
            )
            for one, link in found
        ]


def _beat(tx: Transaction, run_id: str) -> None:
    """Write what is written every few seconds anyway."""
    tx.leases.change_run(run_id, beat_at=tx.leases.now())
