"""Sessions begin, end and begin again."""

from segue.core.errors import InvalidSession
from segue.core.ids import LONGEST_ID
from segue.core.sessions import Session
from segue.core.text import storable
from segue.ports.store import Transaction
from segue.sessions.finding import get_session


def create_session(tx: Transaction, session: Session) -> str:
    """Store a new session. It belongs to whoever creates it, unless the owner says whose it is."""
    if not session.id or len(session.id) > LONGEST_ID or storable(session.id) != session.id:
        raise InvalidSession(f"A session id has 1 to {LONGEST_ID} ordinary characters.")
    if not session.source:
        raise InvalidSession("A session needs a source, such as cli.")
    if not tx.scope.sees_all:
        session = session._replace(principal=tx.scope.principal, audience=tx.scope.room or "")
    if not tx.sessions.insert(session._replace(last_active_at=session.last_active_at or session.started_at)):
        raise InvalidSession(f"There is a session {session.id} already.")
    return session.id


def end_session(tx: Transaction, session_id: str, reason: str, now: float) -> None:
    """Close a session. The first reason stays."""
    session = get_session(tx, session_id)
    if session.is_open:
        tx.sessions.change(session_id, ended_at=now, end_reason=storable(reason))


def reopen_session(tx: Transaction, session_id: str) -> None:
    """Carry on with an ended session."""
    session = get_session(tx, session_id)
    if session.lane_key is not None and (current := tx.sessions.open_in_lane(session.lane_key)):
        if current.id != session_id:
            raise InvalidSession(f"Its lane goes on in session {current.id}; end that one first.")
        return
    tx.sessions.change(session_id, ended_at=None, end_reason=None)
