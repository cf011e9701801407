"""A platform, connected for as long as the gateway runs: what arrives there is taken in, what is for it is sent.

The two fail apart. Where nothing can be taken in, because the store or the platform's adapter is in trouble, what is to
be sent is sent all the same. Only an adapter that fails again and again gives way to other gateways for a while.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from segue.agent.door import Door
from segue.agent.holding import Presence
from segue.core.errors import LeaseLost, SegueError, StoreError
from segue.core.leases import Lease, Run, platform_lease
from segue.core.links import LinkRow, LinkState
from segue.core.redaction import redact
from segue.core.scope import OWNER
from segue.core.text import one_line
from segue.gateway.delivery import Delivery
from segue.gateway.desk import Desk
from segue.gateway.fencing import FencedDoor
from segue.gateway.outages import is_outage, log_store_error
from segue.gateway.platform_intake import PlatformIntake
from segue.hookspecs import Tell, nobody
from segue.ports.platform import Platform
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
    held_by: str = ""
    """Which gateway holds the connection while this one stands by: its process and machine."""

    @property
    def is_up(self) -> bool:
        return self.state is LinkState.CONNECTED

    @property
    def is_standby(self) -> bool:
        return self.state is LinkState.STANDBY

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


class Connection:
    """One platform and account. The gateway that holds its lease is connected; the others stand by.

    A platform that only listens needs no lease for that, so every gateway listens; the lease is for sending.
    """

    def __init__(self, door: Door, presence: Presence, platform: Platform, desk: Desk, tell: Tell = nobody) -> None:
        self._door = door
        self._presence = presence
        self._intake = PlatformIntake(platform, desk, self._come_up)
        self.platform = platform
        self.link = Link()
        self._is_listener = platform.traits.is_listener
        self._is_holder = False
        """True while the platform's lease is ours."""
        self._standby_for: Run | None = None
        """The gateway that held the lease when this one last asked for it."""
        self._fence = FencedDoor(door)
        self._noting: asyncio.Task[None] | None = None
        self._steady: asyncio.TimerHandle | None = None
        """Rings when the platform has been connected for so long that it has not failed before."""
        self.delivery = Delivery(self._fence, platform, tell)

    async def run(self) -> None:
        """Be connected, again and again, until cancelled."""
        if not self._is_listener:
            await self._work_under_lease(self._connected)
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(self._take_in())
            group.create_task(self._work_under_lease(self._send))

    async def _work_under_lease(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work whenever the platform's lease is ours, until cancelled."""
        while True:
            lease = await self._take_lease()
            if lease is not None:
                try:
                    if self._is_listener:  # which may have been connected before the lease was ours to note it under
                        await self._note()
                    await work()
                    await self._note()
                finally:
                    await self._release(lease)
            await asyncio.sleep(FIRST_PAUSE if lease is None else self._pause())

    async def _take_lease(self) -> Lease | None:
        """Take the platform's lease, unless another gateway that is alive holds it, or the store fails."""
        try:
            taken = await self._door.write(self._take)
        except StoreError as error:
            if not self._is_listener:
                self._down(str(error), is_logged=not is_outage(error))
            return None
        if isinstance(taken, Run):
            self._stand_by(taken)
            return None
        if self._standby_for is not None:
            level = logging.DEBUG if self._is_listener else logging.INFO
            _log.log(level, "%s: took over from the gateway in %s", self.platform.name, _named(self._standby_for))
            self._standby_for = None
        self._presence.holds(taken)
        self._fence.lease = taken
        self._is_holder = True
        return taken

    def _stand_by(self, holder: Run) -> None:
        if self._standby_for is None or self._standby_for.id != holder.id:
            level = logging.DEBUG if self._is_listener else logging.INFO  # which is only about sending then
            _log.log(level, "%s: standing by, the gateway in %s is connected", self.platform.name, _named(holder))
        self._standby_for = holder
        if not self._is_listener:
            self.link.come_to(LinkState.STANDBY)
            self.link.held_by, self.link.trouble, self.link.retry_at = _named(holder), None, None

    async def _send(self) -> None:
        """Send, until another gateway does."""
        try:
            await self.delivery.run()
        except LeaseLost:
            _log.warning("%s: lost the lease for sending to another gateway; standing by", self.platform.name)
        except Exception:  # noqa: BLE001 - whatever it is, the other platforms go on
            _log.exception("%s: sending failed, retrying in %.1f s", self.platform.name, self._pause())

    async def _connected(self) -> None:
        """Take in and send, until another gateway does or may."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.delivery.run())
                group.create_task(self._take_in())
        except* LeaseLost:
            self.link.come_to(LinkState.STANDBY)
            self.link.trouble, self.link.retry_at = None, None
            _log.warning("%s: lost the connection's lease to another gateway; standing by", self.platform.name)
        except* _GivenWay as errors:
            self._down(_told(errors.exceptions[0]), LinkState.RESTING, self._pause())
        except* Exception as errors:  # noqa: BLE001 - whatever it is, the other platforms go on
            self.link.failures += 1
            self._down(_told(errors.exceptions[0]), LinkState.RESTING, self._pause())

    async def _take_in(self) -> None:
        """What arrives is taken in, whatever happens; what cannot be stored is brought again in a moment.

        Who sends is ready first, so that whoever speaks can see that they are answered. A platform that only listens
        does not wait for that, and never gives way: that it cannot listen here says nothing about other gateways.
        """
        if not self._is_listener:
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
                is_worn_out = self.link.failures >= MOST_FAILURES and not self._is_listener
                self._down(_told(error), LinkState.RESTING if is_worn_out else LinkState.FAILED, self._pause())
            await self._note()
            if self.link.failures >= MOST_FAILURES and not self._is_listener:
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
        if not self._is_holder:
            return
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

    def _take(self, tx: Transaction) -> Lease | Run:
        """Take the platform's lease; if another gateway holds it, return that one's run instead."""
        name = platform_lease(self.platform.name, self.platform.account)
        holder = leasing.find_holder(tx, name, self._presence.is_gone)
        if holder is not None and holder.id != self._presence.run.id:
            return holder
        return leasing.take_lease(tx, name, self._presence.run.id, OWNER, self._presence.is_gone)

    async def _release(self, lease: Lease) -> None:
        self._is_holder = False
        try:
            await self._presence.release(lease)
        except StoreError as error:
            log_store_error(_log, f"Lease of {self.platform.name} not released", error)


def _named(run: Run) -> str:
    return f"process {run.pid} on {one_line(run.host)}"


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, SegueError) else f"{type(error).__name__}: {error}"
