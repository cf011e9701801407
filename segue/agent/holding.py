"""The right to a session, kept for as long as somebody is at it."""

import asyncio
import contextlib
import time

from segue.agent.door import Door
from segue.core.errors import StoreError
from segue.core.leases import RENEWAL_SECONDS, Lease, Run, session_lease
from segue.ports.store import Transaction
from segue.sessions import leasing
from segue.sessions.leasing import IsGone


class Holder:
    """One run, and the session it holds. The door is that of the program itself, not of a person."""

    def __init__(self, door: Door, run: Run, is_gone: IsGone) -> None:
        self._door = door
        self._run = run
        self._is_gone = is_gone
        self._lease: Lease | None = None
        self._beating: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self._door.write(leasing.begin_run, self._run)
        self._beating = asyncio.create_task(self._beat())

    def claim(self, tx: Transaction, session_id: str, principal: str) -> Lease:
        """Take a session in a transaction, or see that it is ours; whoever has it otherwise is named."""
        name = session_lease(session_id)
        if self._lease is not None and self._lease.name == name and leasing.keep(tx, self._lease):
            return self._lease
        return leasing.take_lease(tx, name, self._run.id, principal, self._is_gone)

    def has(self, tx: Transaction, session_id: str) -> bool:
        """Whether a session is still ours."""
        lease = self._lease
        return lease is not None and lease.name == session_lease(session_id) and leasing.keep(tx, lease)

    async def now_holds(self, lease: Lease) -> None:
        """The transaction has been committed: let go of the session before."""
        if self._lease is None or lease.name != self._lease.name:
            await self.let_go()
        self._lease = lease

    async def let_go(self) -> None:
        if self._lease is not None:
            await self._door.write(leasing.release, self._lease)
            self._lease = None

    async def end(self) -> None:
        if self._beating is not None:
            self._beating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._beating
        await self.let_go()
        await self._door.write(leasing.end_run, self._run.id, time.time())

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            with contextlib.suppress(StoreError):  # whoever writes next hears of it; the next beat may be well
                await self._door.write(_beat, self._run.id, self._lease)


def _beat(tx: Transaction, run_id: str, lease: Lease | None) -> None:
    tx.leases.change_run(run_id, beat_at=tx.leases.now())
    if lease is not None:
        leasing.keep(tx, lease)
