"""Whether something has served its time, asked by every command and therefore quickly; `tidying` acts on it."""

import json
from typing import NamedTuple

from segue.core.moments import DAY
from segue.core.retention import Announcement, Decision, Wait, decide
from segue.ports.store import Transaction

EMPTYING = "upkeep:announced_emptying"
PRUNING = "upkeep:announced_pruning"
NAMED = "upkeep:named_for_pruning"
LOOKED_AT = "upkeep:looked_for_old_at"


class Keeping(NamedTuple):
    """For how many days something is kept: in the trash, and, unless 0, as an ended conversation without activity."""

    trash_days: int
    prune_days: int = 0


def is_due(tx: Transaction, keeping: Keeping, now: float) -> bool:
    """Whether tidying would do anything; costs next to nothing, so that every command may ask."""
    if not isinstance(about_trash(tx, keeping, now), Wait) or is_time_to_look(tx, keeping, now):
        return True
    return not keeping.prune_days and tx.meta.get(PRUNING) is not None


def forget_announcements(tx: Transaction) -> None:
    """Announce everything anew."""
    tx.meta.remove(EMPTYING)
    forget_pruning(tx)


def forget_pruning(tx: Transaction) -> None:
    """What was announced no longer holds."""
    for key in (PRUNING, NAMED, LOOKED_AT):
        tx.meta.remove(key)


def about_trash(tx: Transaction, keeping: Keeping, now: float) -> Decision:
    return decide(tx.trash.oldest(), keeping.trash_days, now, announced(tx, EMPTYING))


def is_time_to_look(tx: Transaction, keeping: Keeping, now: float) -> bool:
    """Looking for old conversations reads all of them, so once a day is enough."""
    looked_at = tx.meta.get(LOOKED_AT) if keeping.prune_days else None
    return bool(keeping.prune_days) and (looked_at is None or not 0 <= now - json.loads(looked_at) < DAY)


def announced(tx: Transaction, key: str) -> Announcement | None:
    said = tx.meta.get(key)
    return Announcement(*json.loads(said)) if said else None


def announce(tx: Transaction, key: str, announcement: Announcement) -> None:
    tx.meta.set(key, json.dumps(announcement))
