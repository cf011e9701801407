"""A platform, connected for as long as the gateway runs: what arrives there is taken in, what is for it is sent.

The two fail apart. Where nothing can be taken in, because the store or the platform's adapter is in trouble, what is to
be sent is sent all the same. Only an adapter that fails again and again gives way to other gateways for a while.
"""

import asyncio
import logging
import time
from dataclasses import dataclass

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.errors import InUse, LeaseLost, SegueError, StoreError
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
STEADY_SECONDS = 10.0
"""Who has been connected for so long has not failed before."""
MOST_FAILURES = 3
"""After so many in a row another gateway may try."""
KEPT_SECONDS = 5.0
"""For which what is to be sent is sent even then."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Link:
    """How a platform stands."""

    is_up: bool = False
    since: float = 0.0
    trouble: str | None = None
    failures: int = 0
    """Of the platform's adapter, in a row."""


class _Ended(SegueError):
    """An adapter does nothing more."""


class _GivenWay(SegueError):
    """An adapter has failed too often."""


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
            except (InUse, StoreError) as error:
                self._down(str(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            self._presence.holds(lease)
            self._fence.lease = lease
            try:
                await self._connected()
            finally:
                await self._release(lease)
            await asyncio.sleep(self._pause())

    async def _connected(self) -> None:
        """Take in and send, until another gateway does or may."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_in())
                group.create_task(self.delivery.run())
        except* (LeaseLost, _GivenWay) as errors:
            self._down(_told(errors.exceptions[0]))
        except* Exception as errors:  # noqa: BLE001 - whatever it is, the other platforms go on
            self.link.failures += 1
            self._down(_told(errors.exceptions[0]))

    async def _take_in(self) -> None:
        """What arrives is taken in, whatever happens; what cannot be stored is brought again in a moment."""
        while True:
            try:
                await self._listen()
            except StoreError as error:
                self._down(_told(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            except Exception as error:  # noqa: BLE001 - of an adapter anything may come, and the others go on
                self.link.failures += 1
                self._down(_told(error))
            if self.link.failures >= MOST_FAILURES:
                await asyncio.sleep(KEPT_SECONDS)
                raise _GivenWay(self.link.trouble)
            await asyncio.sleep(self._pause())

    async def _listen(self) -> None:
        """Be connected until something goes wrong, as it does when an adapter just ends."""
        self.link.is_up, self.link.since = True, time.time()
        steady = asyncio.get_running_loop().call_later(STEADY_SECONDS, self._forget_failures)
        try:
            await self.platform.run(self._intake)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        finally:
            steady.cancel()
        raise _Ended("The connection came to an end.")

    def _forget_failures(self) -> None:
        self.link.failures = 0

    def _pause(self) -> float:
        return float(min(FIRST_PAUSE * 2 ** min(max(self.link.failures - 1, 0), 10), LONGEST_PAUSE))

    def _down(self, trouble: str) -> None:
        is_news = self.link.is_up or trouble != self.link.trouble
        self.link.is_up, self.link.trouble = False, trouble
        if is_news:
            _log.warning("%s is not connected: %s", self.platform.name, trouble)

    def _take(self, tx: Transaction) -> Lease:
        name = platform_lease(self.platform.name, self.platform.account)
        return leasing.take_lease(tx, name, self._presence.run.id, OWNER, self._presence.is_gone)

    async def _release(self, lease: Lease) -> None:
        try:
            await self._presence.release(lease)
        except StoreError as error:
            _log.warning("The store does not answer: %s", error)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SegueError) else f"{type(error).__name__}: {error}"
