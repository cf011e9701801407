"""Sessions begin, end and begin again."""

from segue.core.errors import InvalidSession
from segue.core.ids import LONGEST_ID
from segue.core.moments import is_moment
from segue.core.sessions import COMPRESSION, Session, as_child, storable_session
from segue.core.text import storable
from segue.ports.store import Transaction
from segue.sessions.finding import find_successor, find_tip, get_session, is_above
from segue.sessions.titling import free_title


def create_session(tx: Transaction, session: Session) -> str:
    """Store a new session. It belongs to whoever creates it, unless the owner says whose it is."""
    if not 0 < len(session.id) <= LONGEST_ID or storable(session.id) != session.id:
        raise InvalidSession(f"A session id has 1 to {LONGEST_ID} ordinary characters.")
    if not session.source:
        raise InvalidSession("A session needs a source, such as cli.")
    if not is_moment(session.started_at):
        raise InvalidSession(f"{session.started_at} is no moment: use Unix seconds.")
    if session.id == session.spawned_by or is_above(tx, session.id, session.parent_session_id or ""):
        raise InvalidSession(f"Session {session.id} cannot be its own ancestor.")
    session = _continued(tx, session)
    if not tx.scope.sees_all:
        session = session._replace(principal=tx.scope.principal, audience=tx.scope.room or "")
    insert_session(tx, session._replace(last_active_at=session.last_active_at or session.started_at))
    return session.id


def insert_session(tx: Transaction, session: Session) -> None:
    """Store a session that is right in itself, under an id that nobody has."""
    if not tx.sessions.insert(storable_session(session)):
        raise InvalidSession(f"There is a session {session.id} already.")


def _continued(tx: Transaction, session: Session) -> Session:
    """A child of another session belongs to whom that belongs to, in its lane, and carries its name on, numbered."""
    parent = tx.sessions.find(session.parent_session_id) if session.parent_session_id else None
    if parent is None:
        return session
    title = free_title(tx, parent.principal, parent.title) if parent.title else None
    is_lane_free = not parent.is_open and find_successor(tx, parent) is None
    return as_child(session, parent, title, is_lane_free=is_lane_free)


def end_session(tx: Transaction, session_id: str, reason: str, now: float) -> None:
    """Close a session. The first reason stays."""
    session = get_session(tx, session_id)
    if session.is_open:
        tx.sessions.change(session_id, ended_at=now, end_reason=storable(reason))


def reopen_session(tx: Transaction, session_id: str) -> None:
    """Carry on with an ended session."""
    session = get_session(tx, session_id)
    if current := find_successor(tx, session):
        raise InvalidSession(f"The lane of {session_id} goes on in session {current.id}; end that one first.")
    if session.end_reason == COMPRESSION and (tip := find_tip(tx, session_id)) != session_id:
        raise InvalidSession(f"Session {session_id} was compressed; its conversation goes on in {tip}.")
    tx.sessions.change(session_id, ended_at=None, end_reason=None)
