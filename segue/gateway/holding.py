"""A lane that this process works in: the right to it, and to the session that it is in."""

from segue.agent.holding import Holds, Presence
from segue.core.errors import InUse
from segue.core.leases import Lease, Run, lane_lease, session_lease
from segue.core.scope import OWNER
from segue.ports.store import Transaction
from segue.sessions import leasing

ELSEWHERE = "This conversation is open elsewhere. It can go on here when it is closed there."


class LaneHolder(Holds):
    """What is written is checked against the right to the lane; the session is held so that nobody else opens it."""

    def __init__(self, presence: Presence, lease: Lease) -> None:
        self._presence = presence
        self._claimed: Lease | None = None
        self._session: Lease | None = None
        self.is_free = False
        self.lease = lease
        presence.holds(lease)

    def claim(self, tx: Transaction, session_id: str, principal: str) -> Lease:
        """Take the session that the lane goes on in, unless somebody has it elsewhere."""
        leasing.hold(tx, self.lease)
        name, run = session_lease(session_id), self._presence.run
        if self._session is None or self._session.name != name or not leasing.keep(tx, self._session):
            try:
                self._claimed = leasing.take_lease(tx, name, run.id, principal, self._has_no_say)
            except InUse as error:
                raise InUse(ELSEWHERE) from error  # where is for those to know who are at the machine
        return self.lease

    def _has_no_say(self, run: Run) -> bool:
        """Another gateway that had the session had it for the lane, which is ours now: nothing of it is stored here."""
        return run.program == self._presence.run.program or self._presence.is_gone(run)

    async def now_holds(self, lease: Lease) -> None:  # noqa: ARG002 - the lane's, which is the same for every session
        claimed, self._claimed = self._claimed, None
        if claimed is None:
            return
        if self._session is not None and self._session.name != claimed.name:
            await self._presence.release(self._session)
        self._session = claimed
        self._presence.holds(claimed)

    def give_back(self, tx: Transaction) -> None:
        """Let go of all in a transaction that has nothing more to do here; `is_free` says that it was committed."""
        self._presence.forget(*self._held)  # first, so that nobody keeps them alive
        for lease in self._held:
            leasing.release(tx, lease)

    async def let_go(self) -> None:
        held, self._session = self._held, None
        if not self.is_free:
            await self._presence.release(*held)

    @property
    def _held(self) -> list[Lease]:
        return [self.lease] if self._session is None else [self._session, self.lease]


def unattended(tx: Transaction, run_id: str, is_gone: leasing.IsGone) -> list[str]:
    """Lanes in which something is to be done, and in which no other process is at work."""
    others = [lease for lease in tx.leases.unexpired(lane_lease("")) if lease.owner != run_id]
    alive = {run.id for run in tx.leases.open_runs() if not is_gone(run)} if others else set()
    attended = {lease.name for lease in others if lease.owner in alive}
    return [key for key in tx.inbox.open_lanes() if lane_lease(key) not in attended]


def take_lane(tx: Transaction, key: str, run_id: str, is_gone: leasing.IsGone) -> Lease:
    """Take a lane that nobody works in, for whom it belongs to."""
    lane = tx.lanes.find(key)
    waiting = [] if lane else tx.inbox.waiting(key, 1)
    principal = lane.principal if lane else waiting[0].principal if waiting else OWNER
    return leasing.take_lease(tx, lane_lease(key), run_id, principal, is_gone)
