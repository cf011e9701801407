"""What goes by itself: out of the trash after its days, and into it when a setting says so. Announced a day before."""

import json
from typing import NamedTuple

from segue.core.retention import DAY, Announce, Announcement, Decision, Remove, Wait, decide
from segue.ports.store import Transaction
from segue.sessions.discarding import empty_trash, find_prunable, prune, trash_before

_EMPTYING = "upkeep:announced_emptying"
_PRUNING = "upkeep:announced_pruning"
_LOOKED_AT = "upkeep:looked_for_old_at"


class Keeping(NamedTuple):
    """For how many days something is kept: in the trash, and, unless 0, as an ended conversation without activity."""

    trash_days: int
    prune_days: int = 0


class Tidied(NamedTuple):
    """Sessions that will go, and that went: out of the trash for good, and conversations into the trash."""

    due_at: float
    leaving_trash: int = 0
    left_trash: int = 0
    leaving_store: int = 0
    left_store: int = 0


def is_due(tx: Transaction, keeping: Keeping, now: float) -> bool:
    """Whether tidying would do anything; costs next to nothing, so that every command may ask."""
    return not isinstance(_about_trash(tx, keeping, now), Wait) or _is_time_to_look(tx, keeping, now)


def tidy(tx: Transaction, keeping: Keeping, now: float) -> Tidied:
    """Announce what has served its time, and remove what was announced a day ago."""
    done = _tidy_trash(tx, keeping, now)
    return _tidy_sessions(tx, keeping, now, done) if _is_time_to_look(tx, keeping, now) else done


def _tidy_trash(tx: Transaction, keeping: Keeping, now: float) -> Tidied:
    done = Tidied(due_at=now + DAY)
    match _about_trash(tx, keeping, now):
        case Announce(announcement):
            _announce(tx, _EMPTYING, announcement)
            return done._replace(leaving_trash=len(trash_before(tx, announcement.before)))
        case Remove(before):
            tx.meta.remove(_EMPTYING)
            return done._replace(left_trash=len(empty_trash(tx, before)))
    return done


def _tidy_sessions(tx: Transaction, keeping: Keeping, now: float, done: Tidied) -> Tidied:
    old = find_prunable(tx, now - (keeping.prune_days - 1) * DAY)
    oldest = min((session.last_active_at for session in old), default=None)
    tx.meta.set(_LOOKED_AT, json.dumps(now))
    match decide(oldest, keeping.prune_days, now, _announced(tx, _PRUNING)):
        case Announce(announcement):
            _announce(tx, _PRUNING, announcement)
            return done._replace(leaving_store=len(old))
        case Remove(before):
            tx.meta.remove(_PRUNING)
            return done._replace(left_store=len(prune(tx, before, now)))
    return done


def _about_trash(tx: Transaction, keeping: Keeping, now: float) -> Decision:
    return decide(tx.trash.oldest(), keeping.trash_days, now, _announced(tx, _EMPTYING))


def _is_time_to_look(tx: Transaction, keeping: Keeping, now: float) -> bool:
    """Looking for old conversations reads all of them, so once a day is enough."""
    looked_at = tx.meta.get(_LOOKED_AT) if keeping.prune_days else None
    return bool(keeping.prune_days) and (looked_at is None or not 0 <= now - json.loads(looked_at) < DAY)


def _announced(tx: Transaction, key: str) -> Announcement | None:
    said = tx.meta.get(key)
    return Announcement(*json.loads(said)) if said else None


def _announce(tx: Transaction, key: str, announcement: Announcement) -> None:
    tx.meta.set(key, json.dumps(announcement))
