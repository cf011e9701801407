"""Names for conversations."""

from typing import NamedTuple

from segue.core.errors import TitleTaken
from segue.core.events import Reply
from segue.core.naming import ChosenTitle
from segue.core.sessions import Kind, Session, TitleSource, standing
from segue.core.titles import clean_title, next_title, split_title
from segue.core.usage import Purpose
from segue.ports.store import Transaction
from segue.sessions.finding import find_ancestors, find_parts, get_session
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
            raise TitleTaken(title, holder.id if is_seen else TitleTaken.ELSEWHERE, standing(holder))
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
    """Its first part."""
    asked: str
    answered: str


def find_unnamed(tx: Transaction, session_id: str) -> FirstExchange | None:
    """The first exchange of a conversation that nobody named; nothing when it has a name, or is a program's own.

    Before its first answer it may have called many tools, and even have been compressed.
    """
    if get_session(tx, session_id).title:
        return None
    parts = find_parts(tx, session_id)
    first, tip = parts[0], parts[-1]
    if any(map(_is_named, parts)) or first.kind != Kind.INTERACTIVE:
        return None
    said = [*tx.messages.of(first.id, limit=_FIRST), *tx.messages.last(tip.id, 1)]
    asked = next((one.content for one in said if one.role == "user" and one.content), None)
    answered = next((one.content for one in said if one.role == "assistant" and one.content), None)
    return FirstExchange(first.id, asked, answered) if asked and answered else None


def name_by_itself(
    tx: Transaction, session_id: str, chosen: ChosenTitle, answer: Reply | None, now: float
) -> str | None:
    """Give a conversation a title that nobody chose, unless it has one by now; what finding it cost is counted.

    It may have been compressed meanwhile: its newest part gets the title.
    """
    parts = find_parts(tx, session_id)
    tip = parts[-1]
    if answer is not None:
        add_usage(tx, tip.id, answer.usage, answer.billing, now, Purpose.TITLE)
    title = chosen.title
    if title is None or any(map(_is_named, parts)):
        return tip.title
    holder = tx.sessions.holder_of(tip.principal, title)
    free = title if holder is None else free_title(tx, tip.principal, title)
    return set_title(tx, tip.id, free, chosen.source)


def _is_named(part: Session) -> bool:
    return part.title is not None or part.title_source is not None
