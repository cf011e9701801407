"""How much there is of what a gateway deals with, as whoever watches many gateways wants it: numbers, and nothing else.

No number says whose it is. What only ever grows is counted where it happens, and not by going through the rows.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from segue.core.inbox import InboxState
from segue.core.leases import lane_lease, platform_lease, session_lease
from segue.core.outbox import UNSENT
from segue.ports.store import Filter, Queue, Transaction
from segue.sessions.leasing import IsGone
from segue.sessions.watching import watch

_EVERY_SESSION = Filter(archived=None, tips_only=False)
_LEASES = {
    "lane": lane_lease(""),
    "platform": platform_lease("", "").removesuffix(":"),
    "session": session_lease(""),
}


class Figures(NamedTuple):
    """What the rows say at one moment."""

    inbox: Mapping[str, int]
    """Messages that wait, run, were refused or are dead."""
    oldest_waiting: float
    """Seconds for which a message has waited at most."""
    oldest_unattended: float
    """Seconds since the oldest unfinished message was accepted in a lane that no living process works in."""
    outbox: Mapping[str, int]
    """What has not certainly arrived, by state, and what never will."""
    oldest_undelivered: float
    turns_running: int
    leases: Mapping[str, int]
    """Held by those who are alive, by what they are for."""
    sessions: int
    gateways: int


def figures(tx: Transaction, now: float, is_gone: IsGone) -> Figures:
    seen = watch(tx, is_gone)
    undelivered = tx.outbox.listed(UNSENT, 1)
    alive = [run for run in tx.leases.open_runs() if not is_gone(run)]
    ids = {run.id for run in alive}
    return Figures(
        inbox=seen.inbox,
        oldest_waiting=_longest(tx.inbox.queues((InboxState.WAITING,)), now),
        oldest_unattended=_longest(seen.unattended, now),
        outbox=seen.outbox,
        oldest_undelivered=max(now - undelivered[0].created_at, 0.0) if undelivered else 0.0,
        turns_running=sum(len(tx.turns.running_of(run.id)) for run in alive),
        leases={
            kind: sum(lease.owner in ids for lease in tx.leases.unexpired(beginning))
            for kind, beginning in _LEASES.items()
        },
        sessions=tx.sessions.count(_EVERY_SESSION),
        gateways=len(seen.gateways),
    )


def _longest(queues: Iterable[Queue], now: float) -> float:
    return max((max(now - queue.oldest_at, 0.0) for queue in queues), default=0.0)
