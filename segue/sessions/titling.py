"""Names for conversations."""

from segue.core.errors import TitleTaken
from segue.core.sessions import TitleSource, standing
from segue.core.titles import clean_title, next_title, split_title
from segue.ports.store import Transaction
from segue.sessions.finding import find_ancestors, get_session

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
