"""Sessions that an agent begins for another one to work in. They belong to whom its own session belongs to."""

from enum import StrEnum

from segue.core.leases import session_lease
from segue.core.sessions import Kind, Session
from segue.ports.store import Transaction
from segue.sessions.finding import find_ancestors, get_session
from segue.sessions.starting import create_session, end_session
from segue.sessions.turning import close_left_turn

_DELEGATED = "delegated"


class Ending(StrEnum):
    """How the work of a subagent came to its end."""

    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


def begin_subagent(tx: Transaction, spawned_by: str, subagent_id: str, prompt: str, now: float) -> Session:
    """A session for a task of another session: the same person, place and choices, and nothing said yet."""
    asking = get_session(tx, spawned_by)
    session = Session(
        subagent_id,
        asking.source,
        started_at=now,
        kind=Kind.SUBAGENT,
        user_id=asking.user_id,
        agent=asking.agent,
        principal=asking.principal,
        audience=asking.audience,
        cwd=asking.cwd,
        spawned_by=spawned_by,
        start_reason=_DELEGATED,
        model_config=asking.model_config,
        system_prompt=prompt,
    )
    create_session(tx, session)
    return session


def count_stopped(tx: Transaction, session_id: str, since: float) -> int:
    """How many subagents of a conversation were at work at a moment and are stopped, or about to be."""
    session = get_session(tx, session_id)
    parts = [part.id for part in (*find_ancestors(tx, session), session)]
    return sum(_is_stopped(tx, get_session(tx, name), since) for name in tx.sessions.spawned_by(parts))


def _is_stopped(tx: Transaction, subagent: Session, since: float) -> bool:
    if subagent.ended_at is not None:
        return subagent.end_reason == Ending.STOPPED and subagent.ended_at >= since
    lease = tx.leases.find(session_lease(subagent.id))
    return lease is not None and lease.expires_at > tx.leases.now()


def end_left_subagents(tx: Transaction, session_id: str, now: float) -> None:
    """End what was left at work for a session: whoever holds its lease and runs none knows that nobody goes on."""
    for name in tx.sessions.spawned_by([session_id]):
        if get_session(tx, name).is_open:
            close_left_turn(tx, name, now)
            end_session(tx, name, Ending.INTERRUPTED, now)
