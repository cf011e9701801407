"""The right to what a process works on, kept for as long as it works on it."""

import asyncio
import contextlib
import time
from collections.abc import Collection, Sequence
from typing import Protocol

from segue.agent.door import Door
from segue.core.errors import StoreError
from segue.core.leases import LEASE_SECONDS, RENEWAL_SECONDS, Lease, Run, session_lease
from segue.ports.store import Transaction
from segue.sessions import leasing
from segue.sessions.leasing import IsGone

KEPT_AT_ONCE = 64
"""Others want to write as well."""


class Presence:
    """This process, as others see it: a run that beats, and everything that it holds.

    The door is that of the program itself, not of a person.
    """

    def __init__(self, door: Door, run: Run, is_gone: IsGone, *, is_alone: bool = False) -> None:
        self.door = door
        self.run = run
        self.is_gone = is_gone
        self.is_alone = is_alone
        """Whether there may be no other run of this program."""
        self._held: dict[str, Lease] = {}
        self._beating: asyncio.Task[None] | None = None
        self._beat_at = self._steady_since = time.monotonic()

    @property
    def is_steady(self) -> bool:
        """True if this process could write to the store for as long as a lease lasts, up to now.

        Another one that has given no sign of life for so long could have done so, too, if it were alive.
        """
        now = time.monotonic()
        return now - self._beat_at <= 2 * RENEWAL_SECONDS and now - self._steady_since >= LEASE_SECONDS

    async def begin(self) -> None:
        if self.is_alone:
            await self.door.write(leasing.begin_only_run, self.run, self.is_gone)
        else:
            await self.door.write(leasing.begin_run, self.run)
        self._beat_at = self._steady_since = time.monotonic()
        self._beating = asyncio.create_task(self._beat())

    def holds(self, lease: Lease) -> None:
        """Keep a lease from now on."""
        self._held[lease.name] = lease

    async def release(self, *leases: Lease) -> None:
        """Let go of leases; one that was lost to somebody else of this process is theirs, and is kept for them."""
        self.forget(*leases)
        await self.door.write(_release, leases)

    def forget(self, *leases: Lease) -> None:
        """Keep them no longer."""
        for lease in leases:
            if self._held.get(lease.name) == lease:
                del self._held[lease.name]

    async def end(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
        await self.release(*self._held.values())
        await self.door.write(leasing.end_run, self.run.id, time.time())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            names = list(self._held)
            some = [names[first : first + KEPT_AT_ONCE] for first in range(0, len(names), KEPT_AT_ONCE)]
            keeping = [self.door.write(self._keep, few) for few in some]
            outcomes = await asyncio.gather(self.door.write(_beat, self.run.id), *keeping, return_exceptions=True)
            if outcomes[0] is None:
                self._note_beat(time.monotonic())
            for outcome in outcomes:
                if isinstance(outcome, BaseException) and not isinstance(outcome, StoreError):
                    raise outcome  # whoever writes next hears of the store's troubles; the next beat may be well

    def _note_beat(self, now: float) -> None:
        if now - self._beat_at > 2 * RENEWAL_SECONDS:
            self._steady_since = now
        self._beat_at = now

    def _keep(self, tx: Transaction, names: Sequence[str]) -> None:
        """Keep what is still held when it comes to that; what was let go of before stays so."""
        for name in names:
            if lease := self._held.get(name):
                leasing.keep(tx, lease)


class Holds(Protocol):
    """Whoever works on a conversation, one session of it at a time."""

    def claim(self, tx: Transaction, session_id: str, principal: str) -> Lease: ...
    async def now_holds(self, lease: Lease) -> None: ...


class Holder(Holds):
    """One conversation of a process: the session it is in, one at a time."""

    def __init__(self, presence: Presence) -> None:
        self._presence = presence
        self._lease: Lease | None = None

    def claim(self, tx: Transaction, session_id: str, principal: str) -> Lease:
        """Take a session in a transaction, or see that it is ours; whoever has it otherwise is named."""
        name = session_lease(session_id)
        if self._lease is not None and self._lease.name == name and leasing.keep(tx, self._lease):
            return self._lease
        return leasing.take_lease(tx, name, self._presence.run.id, principal, self._presence.is_gone)

    def has(self, tx: Transaction, session_id: str) -> bool:
        """Whether a session is still ours."""
        lease = self._lease
        return lease is not None and lease.name == session_lease(session_id) and leasing.keep(tx, lease)

    async def now_holds(self, lease: Lease) -> None:
        """The transaction has been committed: let go of the session before."""
        if self._lease is None or lease.name != self._lease.name:
            await self.let_go()
        self._lease = lease
        self._presence.holds(lease)

    async def let_go(self) -> None:
        if self._lease is not None:
            await self._presence.release(self._lease)
            self._lease = None


def _release(tx: Transaction, leases: Collection[Lease]) -> None:
    for lease in leases:
        leasing.release(tx, lease)


def _beat(tx: Transaction, run_id: str) -> None:
    tx.leases.change_run(run_id, beat_at=tx.leases.now(), how=None)
