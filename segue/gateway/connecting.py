"""A platform, connected for as long as the gateway runs: what arrives there is taken in, what is for it is sent."""

import asyncio
import logging
import time
from dataclasses import dataclass

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.errors import InUse, SegueError, StoreError
from segue.core.inbound import Inbound, Receipt
from segue.core.leases import Lease, platform_lease
from segue.core.scope import OWNER
from segue.core.sources import SessionSource
from segue.gateway.delivery import Delivery
from segue.gateway.desk import Desk
from segue.gateway.fencing import FencedDoor
from segue.hookspecs import Tell, nobody
from segue.ports.platform import Intake, Platform
from segue.ports.store import Transaction
from segue.sessions import leasing

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Link:
    """How a platform stands."""

    is_up: bool = False
    since: float = 0.0
    trouble: str | None = None
    failures: int = 0


class _Door(Intake):
    """Where one platform passes on what it receives."""

    def __init__(self, platform: Platform, desk: Desk) -> None:
        self._platform = platform
        self._desk = desk

    async def receive(self, inbound: Inbound) -> Receipt:
        return await self._desk.receive(inbound)

    async def learn(self, source: SessionSource) -> None:
        await self._desk.learn(source)

    async def cursor(self, name: str) -> str | None:
        return await self._desk.cursor(self._platform.name, self._platform.account, name)


class Connection:
    """One platform and account. Whoever holds its lease is connected; the others wait."""

    def __init__(self, door: Door, presence: Presence, platform: Platform, desk: Desk, tell: Tell = nobody) -> None:
        self._door = door
        self._presence = presence
        self._intake = _Door(platform, desk)
        self.platform = platform
        self.link = Link()
        self._fence = FencedDoor(door)
        self.delivery = Delivery(self._fence, platform, tell)

    async def run(self) -> None:
        """Be connected, again and again, until cancelled."""
        while True:
            try:
                lease = await self._door.write(self._take)
            except InUse as error:
                self._down(str(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            except StoreError as error:
                self._down(str(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            self._presence.holds(lease)
            self._fence.lease = lease
            try:
                await self._connected()
            finally:
                await self._release(lease)
            await asyncio.sleep(min(FIRST_PAUSE * 2 ** min(self.link.failures, 10), LONGEST_PAUSE))

    async def _connected(self) -> None:
        self.link.is_up, self.link.since = True, time.time()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.platform.run(self._intake))
                group.create_task(self.delivery.run())
        except* SegueError as errors:
            self._down(str(errors.exceptions[0]))
        except* Exception as errors:  # noqa: BLE001 - of an adapter anything may come, and the others go on
            self._down(f"{type(errors.exceptions[0]).__name__}: {errors.exceptions[0]}")
        _log.warning("%s is not connected: %s", self.platform.name, self.link.trouble)

    def _down(self, trouble: str) -> None:
        self.link.is_up, self.link.trouble = False, trouble
        self.link.failures += 1

    def _take(self, tx: Transaction) -> Lease:
        name = platform_lease(self.platform.name, self.platform.account)
        return leasing.take_lease(tx, name, self._presence.run.id, OWNER, self._presence.is_gone)

    async def _release(self, lease: Lease) -> None:
        try:
            await self._presence.release(lease)
        except StoreError as error:
            _log.warning("The store does not answer: %s", error)
