"""What goes by itself: out of the trash after its days, and into it when a setting says so. Announced a day before."""

import json
from typing import NamedTuple

from segue.core.moments import DAY
from segue.core.retention import Announce, Remove, decide
from segue.ports.store import Transaction
from segue.sessions.discarding import empty_trash, find_prunable, prune_conversation, trash_before
from segue.sessions.retaining import (
    EMPTYING,
    LOOKED_AT,
    NAMED,
    PRUNING,
    Keeping,
    about_trash,
    announce,
    announced,
    forget_pruning,
    is_time_to_look,
)


class Tidied(NamedTuple):
    """Sessions that will go, and that went: out of the trash for good, and conversations into the trash."""

    due_at: float
    leaving_trash: int = 0
    left_trash: int = 0
    leaving_store: int = 0
    left_store: int = 0


def tidy(tx: Transaction, keeping: Keeping, now: float) -> Tidied:
    """Announce what has served its time, and remove what was announced a day ago."""
    done = _tidy_trash(tx, keeping, now)
    if not keeping.prune_days:
        forget_pruning(tx)
    return _tidy_sessions(tx, keeping, now, done) if is_time_to_look(tx, keeping, now) else done


def _tidy_trash(tx: Transaction, keeping: Keeping, now: float) -> Tidied:
    done = Tidied(due_at=now + DAY)
    match about_trash(tx, keeping, now):
        case Announce(announcement):
            announce(tx, EMPTYING, announcement)
            return done._replace(leaving_trash=len(trash_before(tx, announcement.before)))
        case Remove(before):
            tx.meta.remove(EMPTYING)
            return done._replace(left_trash=len(empty_trash(tx, before)))
    return done


def _tidy_sessions(tx: Transaction, keeping: Keeping, now: float, done: Tidied) -> Tidied:
    old = find_prunable(tx, now - (keeping.prune_days - 1) * DAY)
    oldest = min((session.last_active_at for session in old), default=None)
    tx.meta.set(LOOKED_AT, json.dumps(now))
    match decide(oldest, keeping.prune_days, now, announced(tx, PRUNING)):
        case Announce(announcement):
            announce(tx, PRUNING, announcement)
            tx.meta.set(NAMED, json.dumps([session.id for session in old]))
            return done._replace(leaving_store=len(old))
        case Remove(before):
            named = json.loads(tx.meta.get(NAMED) or "[]")
            forget_pruning(tx)
            return done._replace(left_store=sum(len(prune_conversation(tx, one, before, now)) for one in named))
    return done
