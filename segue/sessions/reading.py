"""Transcripts read back: as rows, and as the conversation that a model sees."""

from typing import Any, NamedTuple

from segue.core.errors import MessageNotFound
from segue.core.messages import LARGEST_SEQ, SUMMARY_SEQ, Message, Said
from segue.core.sessions import Session
from segue.core.transcript import Eye, as_chat, read_through
from segue.ports.store import ResetRow, Transaction
from segue.sessions.finding import find_ancestors, find_parts, get_session

_AROUND = 5


class Part(NamedTuple):
    """A stretch of a conversation as it was said, and the reset it began with."""

    session: Session
    messages: list[Message]
    reset: ResetRow | None = None


def transcript_of(tx: Transaction, session_id: str) -> list[Part]:
    """A conversation from its beginning, part by part, whichever part is named."""
    return [Part(part, tx.messages.of(part.id), tx.lanes.reset_into(part.id)) for part in find_parts(tx, session_id)]


def excerpt_of(tx: Transaction, session_id: str, around: int) -> list[Part]:
    """The messages next to one message, in every state."""
    session = get_session(tx, session_id)
    if not 0 <= around < LARGEST_SEQ or tx.messages.find_seq(session_id, around) is None:
        raise MessageNotFound(f"Session {session_id} has no message {around}; it has {session.message_count}.")
    near = tx.messages.of(session_id, every_state=True, after=around - _AROUND - 1, limit=2 * _AROUND + 1)
    return [Part(session, [message for message in near if message.seq <= around + _AROUND])]


def view_of(tx: Transaction, session_id: str) -> list[Said]:
    """What the conversation is now: of a compressed one the summary, the tail its parents kept, its own messages."""
    own = tx.messages.said(session_id)
    if own and own[0].seq != SUMMARY_SEQ:
        return own
    session = get_session(tx, session_id)  # which may not be there at all
    return read_through(own, _kept(tx, session)) if own else own


class Placed(NamedTuple):
    """A message of a view, and the session that it is in."""

    session_id: str
    said: Said


def placed_view(tx: Transaction, session_id: str) -> list[Placed]:
    """The same as `view_of`, each message with where it is."""
    session = get_session(tx, session_id)
    own = [Placed(session_id, message) for message in tx.messages.said(session_id)]
    if not own or own[0].said.seq != SUMMARY_SEQ:
        return own
    kept = [
        Placed(name, message)
        for name, after in kept_stretches(tx, session)
        for message in tx.messages.said(name, after)
        if message.seq != SUMMARY_SEQ
    ]
    return [own[0], *kept, *own[1:]]


def conversation(tx: Transaction, session_id: str, *, provider: str | None = None, shared: bool = False) -> list[Any]:
    """The view in chat format, always valid for a provider."""
    return as_chat(view_of(tx, session_id), Eye(provider, shared))


def _kept(tx: Transaction, session: Session) -> list[Said]:
    """The messages that a compression left as they were, from where it says on, up to this session's beginning.

    They stand and fall with the summary: without it nothing was compressed.
    """
    return [message for name, after in kept_stretches(tx, session) for message in tx.messages.said(name, after)]


def kept_stretches(tx: Transaction, session: Session) -> list[tuple[str, int]]:
    """Where those messages are: in which sessions, and behind which place in each."""
    if session.kept_session_id is None or session.kept_seq is None:
        return []
    names = [ancestor.id for ancestor in find_ancestors(tx, session)]
    if session.kept_session_id not in names:
        return []
    first, *rest = names[names.index(session.kept_session_id) :]
    return [(first, session.kept_seq - 1), *((name, SUMMARY_SEQ) for name in rest)]
