"""What nobody needs any more goes by itself: lanes that were not used for long, and rows about past processes."""

from datetime import timedelta

from segue.core.moments import DAY, instant
from segue.ports.store import Transaction
from segue.sessions.steering import prune_lanes

RUNS_DAYS = 30
LEASES_DAYS = 7
MOST_ROWS = 500
"""So many at once, so that nobody waits for it."""


def clear_lanes(tx: Transaction, now: float, max_age: timedelta) -> int:
    """Forget lanes that nobody used for long, unless something goes on there; how many."""
    working = {process.session_id for process in tx.processes.running()}
    busy = {lane.key for lane in tx.lanes.listed() if lane.session_id in working} if working else set()
    return prune_lanes(tx, instant(now), max_age, busy | set(tx.inbox.open_lanes()))


def clear_rows(tx: Transaction) -> int:
    """Forget a few leases and runs that ended long ago; how many. Leases go first: they name their run."""
    now = tx.leases.now()
    leases = tx.leases.forget_expired(now - LEASES_DAYS * DAY, MOST_ROWS)
    return leases + tx.leases.forget_runs(now - RUNS_DAYS * DAY, MOST_ROWS)
