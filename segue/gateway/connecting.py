"""A platform, connected for as long as the gateway runs: what arrives there is taken in, what is for it is sent.

The two fail apart. Where nothing can be taken in, because the store or the platform's adapter is in trouble, what is to
be sent is sent all the same. Only an adapter that fails again and again gives way to other gateways for a while.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.errors import InUse, LeaseLost, SegueError, StoreError
from segue.core.inbound import Cursor, Inbound, Receipt
from segue.core.leases import Lease, platform_lease
from segue.core.links import LinkRow, LinkState
from segue.core.redaction import redact
from segue.core.scope import OWNER
from segue.core.sources import SessionSource
from segue.core.text import one_line
from segue.gateway.delivery import Delivery
from segue.gateway.desk import Desk
from segue.gateway.fencing import FencedDoor
from segue.gateway.outages import is_outage, log_store_error
from segue.hookspecs import Tell, nobody
from segue.ports.platform import Intake, Platform
from segue.ports.store import Transaction
from segue.sessions import leasing
from segue.sessions.delivering import as_reason

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

    state: LinkState = LinkState.CONNECTING
    since: float = 0.0
    """When it came into this state."""
    trouble: str | None = None
    failures: int = 0
    """Of the platform's adapter, in a row."""
    retry_at: float | None = None

    @property
    def is_up(self) -> bool:
        return self.state is LinkState.CONNECTED

    def come_to(self, state: LinkState) -> bool:
        """Whether that is news."""
        is_news = state is not self.state
        if is_news and not (state is LinkState.RESTING and self.state is LinkState.FAILED):
            self.since = time.time()
        self.state = state
        return is_news


class _Ended(SegueError):
    """An adapter does nothing more."""


class _GivenWay(SegueError):
    """An adapter has failed too often."""


class _Door(Intake):
    """Where one platform passes on what it receives."""

    def __init__(self, platform: Platform, desk: Desk, connected: Callable[[], None]) -> None:
        self._platform = platform
        self._desk = desk
        self._connected = connected

    async def receive(self, inbound: Inbound) -> Receipt:
        self._connected()
        return await self._desk.receive(inbound)

    async def learn(self, source: SessionSource) -> None:
        await self._desk.learn(source)

    async def withdraw(self, source: SessionSource, message_id: str) -> None:
        await self._desk.withdraw(source, message_id)

    async def cursor(self, name: str) -> str | None:
        return await self._desk.cursor(self._platform.name, self._platform.account, name)

    async def advance(self, cursor: Cursor) -> None:
        await self._desk.advance(self._platform.name, self._platform.account, cursor)

    async def is_heard(self, source: SessionSource, *, is_mention: bool) -> bool:
        return await self._desk.is_heard(source, is_mention=is_mention)

    async def is_welcome(self, source: SessionSource) -> bool:
        return await self._desk.is_welcome(source)

    def connected(self) -> None:
        self._connected()


class Connection:
    """One platform and account. Whoever holds its lease is connected; the others wait."""

    def __init__(self, door: Door, presence: Presence, platform: Platform, desk: Desk, tell: Tell = nobody) -> None:
        self._door = door
        self._presence = presence
        self._intake = _Door(platform, desk, self._come_up)
        self.platform = platform
        self.link = Link()
        self._fence = FencedDoor(door)
        self._noting: asyncio.Task[None] | None = None
        self._steady: asyncio.TimerHandle | None = None
        """Rings when the platform has been connected for so long that it has not failed before."""
        self.delivery = Delivery(self._fence, platform, tell)

    async def run(self) -> None:
        """Be connected, again and again, until cancelled."""
        while True:
            try:
                lease = await self._door.write(self._take)
            except (InUse, StoreError) as error:
                self._down(str(error), is_logged=not is_outage(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            self._presence.holds(lease)
            self._fence.lease = lease
            try:
                await self._connected()
                await self._note()
            finally:
                await self._release(lease)
            await asyncio.sleep(self._pause())

    async def _connected(self) -> None:
        """Take in and send, until another gateway does or may."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.delivery.run())
                group.create_task(self._take_in())
        except* (LeaseLost, _GivenWay) as errors:
            self._down(_told(errors.exceptions[0]), LinkState.RESTING, self._pause())
        except* Exception as errors:  # noqa: BLE001 - whatever it is, the other platforms go on
            self.link.failures += 1
            self._down(_told(errors.exceptions[0]), LinkState.RESTING, self._pause())

    async def _take_in(self) -> None:
        """What arrives is taken in, whatever happens; what cannot be stored is brought again in a moment.

        Who sends is ready first, so that whoever speaks can see that they are answered.
        """
        await self.delivery.begun.wait()
        while True:
            try:
                await self._listen()
            except StoreError as error:
                self._down(_told(error), retry=FIRST_PAUSE, is_logged=not is_outage(error))
                await asyncio.sleep(FIRST_PAUSE)
                continue
            except Exception as error:  # noqa: BLE001 - of an adapter anything may come, and the others go on
                self.link.failures += 1
                is_worn_out = self.link.failures >= MOST_FAILURES
                self._down(_told(error), LinkState.RESTING if is_worn_out else LinkState.FAILED, self._pause())
            await self._note()
            if self.link.failures >= MOST_FAILURES:
                await asyncio.sleep(KEPT_SECONDS)
                raise _GivenWay(self.link.trouble)
            await asyncio.sleep(self._pause())

    async def _listen(self) -> None:
        """Be connected until something goes wrong, as it does when an adapter just ends."""
        if not self.link.failures:
            self.link.come_to(LinkState.CONNECTING)
        try:
            await self.platform.run(self._intake)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        finally:
            if self._steady is not None:
                self._steady.cancel()
        raise _Ended("The connection came to an end.")

    def _come_up(self) -> None:
        """The platform answers."""
        if self.link.come_to(LinkState.CONNECTED):
            self.link.retry_at = None
            _log.info("%s is connected.", self.platform.name)
            self._steady = asyncio.get_running_loop().call_later(STEADY_SECONDS, self._forget_failures)
            self._noting = asyncio.create_task(self._note())

    def _forget_failures(self) -> None:
        self.link.failures, self.link.trouble = 0, None
        self._noting = asyncio.create_task(self._note())

    def _pause(self) -> float:
        return float(min(FIRST_PAUSE * 2 ** min(max(self.link.failures - 1, 0), 10), LONGEST_PAUSE))

    def _down(
        self, trouble: str, state: LinkState = LinkState.FAILED, retry: float | None = None, *, is_logged: bool = True
    ) -> None:
        """Note that the platform is not connected; an outage of the database has a line of its own."""
        is_news = self.link.come_to(state) or trouble != self.link.trouble
        self.link.trouble, self.link.retry_at = trouble, None if retry is None else time.time() + retry
        if is_news and is_logged:
            rests = " It is left alone for a while." if state is LinkState.RESTING else ""
            _log.warning("%s is not connected: %s%s", self.platform.name, trouble, rests)

    async def _note(self) -> None:
        """Let other processes know how the platform stands, as long as it is ours."""
        link, platform = self.link, self.platform
        row = LinkRow(
            platform.name,
            platform.account,
            self._presence.run.id,
            str(link.state),
            link.since,
            link.failures,
            as_reason(redact(link.trouble)) if link.trouble and not link.is_up else None,
            link.retry_at,
        )
        try:
            await self._fence.write(lambda tx: tx.leases.put_link(row))
        except (StoreError, LeaseLost) as error:
            _log.info("State of the connection to %s not stored: %s", platform.name, one_line(str(error)))

    def _take(self, tx: Transaction) -> Lease:
        name = platform_lease(self.platform.name, self.platform.account)
        return leasing.take_lease(tx, name, self._presence.run.id, OWNER, self._presence.is_gone)

    async def _release(self, lease: Lease) -> None:
        try:
            await self._presence.release(lease)
        except StoreError as error:
            log_store_error(_log, f"Lease of {self.platform.name} not released", error)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SegueError) else f"{type(error).__name__}: {error}"
