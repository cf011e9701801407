"""Names for conversations."""

from typing import NamedTuple

from segue.core.errors import TitleTaken
from segue.core.events import Reply
from segue.core.sessions import Kind, TitleSource, standing
from segue.core.titles import clean_title, next_title, split_title
from segue.core.usage import Purpose
from segue.ports.store import Transaction
from segue.sessions.finding import find_ancestors, get_session
from segue.sessions.recording import add_usage

_FIRST = 10  # messages in which the first exchange is
_HIGHEST = 20  # the highest number is among the longest of the numbered titles


def set_title(tx: Transaction, session_id: str, raw: str | None, source: TitleSource = TitleSource.USER) -> str | None:
    """Give a session a title, or take it away; a title that another session holds is refused with the holder's name.

    An earlier part of the same conversation gives its title up.
    """
    title = clean_title(raw)
    session = get_session(tx, session_id)
    holder = tx.sessions.holder_of(session.principal, title) if title else None
    if title and holder and holder.id != session_id:
        if holder.id not in {ancestor.id for ancestor in find_ancestors(tx, session)}:
            is_seen = tx.sessions.find(holder.id) is not None
            raise TitleTaken(title, holder.id if is_seen else "of yours elsewhere", standing(holder))
        tx.sessions.change(holder.id, title=None, title_source=None)
    tx.sessions.change(session_id, title=title, title_source=source if title else None)
    return title


def free_title(tx: Transaction, principal: str, title: str) -> str:
    """The next `#N` of a title that nobody has yet."""
    base, _ = split_title(title)
    taken = tx.sessions.titles_of(principal, f"{base} #", _HIGHEST)
    while tx.sessions.holder_of(principal, candidate := next_title(title, taken)):
        taken.append(candidate)
    return candidate


class FirstExchange(NamedTuple):
    """How a conversation without a title began."""

    session_id: str
    asked: str
    answered: str


def find_unnamed(tx: Transaction, session_id: str) -> FirstExchange | None:
    """The first exchange of a conversation that nobody named; nothing when it has a name, or goes on from another."""
    session = get_session(tx, session_id)
    if session.title or session.title_source or session.parent_session_id or session.kind != Kind.INTERACTIVE:
        return None
    said = tx.messages.of(session_id, limit=_FIRST)
    asked = next((one.content for one in said if one.role == "user" and one.content), None)
    answered = next((one.content for one in said if one.role == "assistant" and one.content), None)
    return FirstExchange(session_id, asked, answered) if asked and answered else None


def name_by_itself(tx: Transaction, session_id: str, title: str | None, answer: Reply | None, now: float) -> str | None:
    """Give a session a title that nobody chose, unless it has one by now; what finding it cost is counted."""
    session = get_session(tx, session_id)
    if answer is not None:
        add_usage(tx, session_id, answer.usage, answer.billing, now, Purpose.TITLE)
    if title is None or session.title or session.title_source:
        return session.title
    holder = tx.sessions.holder_of(session.principal, title)
    free = title if holder is None else free_title(tx, session.principal, title)
    return set_title(tx, session_id, free, TitleSource.MODEL)
