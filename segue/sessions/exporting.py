"""Sessions leave the store whole: every column, every message in every state."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from segue.core.messages import Message
from segue.core.portable import message_to_json, pieces, session_to_json
from segue.core.sessions import Session
from segue.ports.store import Transaction
from segue.sessions.finding import get_session

_STEP = 200  # messages read at a time


def export_session(tx: Transaction, session_id: str) -> dict[str, Any]:
    """One session as the object that its line in an export holds."""
    session = get_session(tx, session_id)
    messages = [message_to_json(message) for message in _messages(tx, session_id)]
    return session_to_json(session, _tags(tx, session)) | {"messages": messages}


def export_lines(
    tx: Transaction,
    write: Callable[[str], object],
    sources: Collection[str] = (),
    ids: Collection[str] = (),
    advance: Callable[[int], object] = bool,
    *,
    mask: Callable[[Any], Any] | None = None,
) -> int:
    """Write sessions as JSON lines, oldest first, piece by piece; how many there were."""
    count = 0
    sessions = (get_session(tx, one) for one in ids) if ids else tx.sessions.in_order(sources)
    for session in sessions:
        for piece in pieces(session, _tags(tx, session), _messages(tx, session.id), mask):
            write(piece)
        write("\n")
        advance(1)
        count += 1
    return count


def _tags(tx: Transaction, session: Session) -> list[str]:
    return tx.sessions.tags([session.id]).get(session.id, [])


def _messages(tx: Transaction, session_id: str) -> Iterator[Message]:
    after = -1
    while batch := tx.messages.of(session_id, every_state=True, after=after, limit=_STEP):
        yield from batch
        after = batch[-1].seq
