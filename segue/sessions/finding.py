"""From what somebody typed to the session that is meant, and from one part of a conversation to the others."""

from collections.abc import Sequence
from typing import NamedTuple

from segue.core.errors import Ambiguous, SessionNotFound, SessionTrashed
from segue.core.lineage import Link, tip_of
from segue.core.scope import OWNER
from segue.core.sessions import Listed, Session
from segue.core.titles import fitted_title, near_titles, title_key
from segue.ports.store import Titled, Transaction

_CANDIDATES = 100


def get_session(tx: Transaction, session_id: str) -> Session:
    session = tx.sessions.find(session_id)
    if session is None:
        raise SessionNotFound(session_id)
    return session


def find_id(tx: Transaction, wanted: str) -> str | None:
    """The session with that id, or the only one whose id begins so."""
    if tx.sessions.find(wanted):
        return wanted
    candidates = tx.sessions.with_prefix(wanted, _CANDIDATES) if wanted else []
    if len(candidates) > 1:
        raise Ambiguous(wanted, candidates)
    return candidates[0] if candidates else None


def find_titled(tx: Transaction, title: str) -> str | None:
    """The newest part of the conversation that carries exactly the title. One's own comes before anybody else's."""
    wanted = fitted_title(title)
    holder = _holder(tx, title, tx.sessions.titled(wanted)) if wanted else None
    return find_tip(tx, holder) if holder else None


def get_id(tx: Transaction, wanted: str) -> str:
    """The session that an id, a title or the beginning of an id means; a title leads to the newest part."""
    meant = _get_meant(tx, wanted)
    return find_tip(tx, meant.id) if meant.is_titled else meant.id


def get_named(tx: Transaction, wanted: str) -> str:
    """The same, but exactly the part that carries the title."""
    return _get_meant(tx, wanted).id


class _Meant(NamedTuple):
    id: str
    is_titled: bool = False


def _get_meant(tx: Transaction, wanted: str) -> _Meant:
    """By id, by title, by a title in other upper and lower case, by the beginning of an id, in that order."""
    if tx.sessions.find(wanted):
        return _Meant(wanted)
    title = fitted_title(wanted) or ""
    holder = _holder(tx, wanted, tx.sessions.titled(title)) if title else None
    titles: list[Titled] | None = None
    if holder is None and title.lower() != title.upper():
        titles = tx.sessions.titles()
        holder = _holder(tx, wanted, [one for one in titles if title_key(one.title) == title_key(title)])
    if holder is not None:
        return _Meant(holder, is_titled=True)
    if (found := find_id(tx, wanted)) is not None:
        return _Meant(found)
    key = title_key(title)
    if any(wanted == one.session_id or (key and title_key(one.title or "") == key) for one in tx.trash.listed()):
        raise SessionTrashed(wanted)
    known = tx.sessions.titles() if titles is None else titles
    raise SessionNotFound(wanted, near_titles(wanted, [one.title for one in known]))


def _holder(tx: Transaction, typed: str, holders: Sequence[Listed | Titled]) -> str | None:
    """The one session that carries a title: one's own before anybody else's."""
    own = [one for one in holders if one.principal in (tx.scope.principal, OWNER)] or holders
    if len(own) > 1:
        alike = len({one.title for one in own}) == 1
        raise Ambiguous(typed, [f"{one.id} ({one.principal if alike else repr(one.title)})" for one in own])
    return own[0].id if own else None


def find_tip(tx: Transaction, session_id: str) -> str:
    """Where the conversation goes on now."""
    return tip_of(session_id, _descendants(tx, session_id))


def find_ancestors(tx: Transaction, session: Session) -> list[Session]:
    """The parts of the conversation before this one, oldest first."""
    found: list[Session] = []
    seen = {session.id}
    while session.parent_session_id and session.parent_session_id not in seen:
        parent = tx.sessions.find(session.parent_session_id)
        if parent is None or parent.principal != session.principal:
            break
        seen.add(parent.id)
        found.append(parent)
        session = parent
    return found[::-1]


def find_parts(tx: Transaction, session_id: str) -> list[Session]:
    """A conversation from its beginning to its newest part, whichever part is named."""
    tip = get_session(tx, find_tip(tx, session_id))
    return [*find_ancestors(tx, tip), tip]


def is_above(tx: Transaction, session_id: str, below: str) -> bool:
    """Whether a session is another one or an ancestor of it, so that a link between them would close a circle."""
    seen: set[str] = set()
    current: str | None = below
    while current is not None and current not in seen:
        seen.add(current)
        found = tx.sessions.find(current)
        current = found.parent_session_id if found else None
    return session_id in seen


def find_conversation(tx: Transaction, session_id: str) -> list[str]:
    """Every part of a conversation from its beginning, and the subagents it started; what is deleted goes together."""
    ancestors = find_ancestors(tx, get_session(tx, session_id))
    root = ancestors[0].id if ancestors else session_id
    found = [root, *(link.id for link in _descendants(tx, root))]
    fresh = found
    while fresh := [one for one in tx.sessions.spawned_by(fresh) if one not in found]:
        found += fresh
    return found


def find_successor(tx: Transaction, session: Session) -> Session | None:
    """The other session that is open in the lane of this one."""
    if session.lane_key is None:
        return None
    current = tx.sessions.open_in_lane(session.lane_key, session.principal, session.audience)
    return None if current is None or current.id == session.id else current


def _descendants(tx: Transaction, session_id: str) -> list[Link]:
    found: list[Link] = []
    seen = {session_id}
    generation = [session_id]
    while generation:
        links = [link for link in tx.sessions.children(generation) if link.id not in seen]
        found += links
        generation = [link.id for link in links]
        seen.update(generation)
    return found
