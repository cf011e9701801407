"""Sessions come in from an export: unchanged, once, and without disturbing what is there."""

from enum import StrEnum
from hashlib import sha256
from typing import NamedTuple

from segue.core.errors import InvalidSession
from segue.core.ids import LONGEST_ID
from segue.core.portable import PortableSession, dated, from_mapping, has_own_preview
from segue.core.sessions import Session, TitleSource
from segue.ports.store import Transaction
from segue.sessions.discarding import discard_session
from segue.sessions.exporting import export_session
from segue.sessions.finding import find_successor, get_session, is_above
from segue.sessions.titling import free_title

_CAME_IN_ENDED = "import"
_MOST_NAMED = 10


class OnConflict(StrEnum):
    """What to do with a session whose id is here with other content."""

    SKIP = "skip"
    REPLACE = "replace"
    COPY = "copy"


class Outcome(StrEnum):
    ADDED = "added"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REPLACED = "replaced"
    COPIED = "copied"


class Imported(NamedTuple):
    """What became of one session, and what had to be adjusted."""

    session_id: str
    outcome: Outcome
    messages: int
    notes: tuple[str, ...] = ()


def import_session(tx: Transaction, portable: PortableSession, *, on_conflict: OnConflict, now: float) -> Imported:
    """Take one session in. The same session twice is one session; a different one under its id is a conflict."""
    session_id, outcome = portable.session.id, Outcome.ADDED
    if tx.sessions.find(session_id):
        if _is_here(tx, portable):
            return Imported(session_id, Outcome.UNCHANGED, len(portable.messages))
        if on_conflict is OnConflict.SKIP:
            return Imported(session_id, Outcome.SKIPPED, 0, ("it is here already, with other content",))
        if on_conflict is OnConflict.REPLACE:
            discard_session(tx, session_id, now)
            outcome = Outcome.REPLACED
        else:
            portable, outcome = _renamed(portable), Outcome.COPIED
            if tx.sessions.find(portable.session.id):
                return Imported(portable.session.id, Outcome.UNCHANGED, len(portable.messages))
    portable = dated(portable, now)
    session, notes = _fitted(tx, portable.session, now)
    session = session._replace(first_line=_preview(tx, session, portable))
    if not tx.sessions.insert(session):
        raise InvalidSession(f"its id {session.id} belongs to somebody else here")
    tx.sessions.tag(session.id, portable.tags)
    for message in portable.messages:
        tx.messages.insert(session.id, message.seq, message.state, message.draft)
    _pass_preview_on(tx, session)
    tx.ledger.add(*(entry._replace(session_id=session.id) for entry in portable.usage))
    if portable.unknown:
        notes.append(f"fields this version does not know were left out: {_named(portable.unknown)}")
    return Imported(session.id, outcome, len(portable.messages), tuple(notes))


def _is_here(tx: Transaction, portable: PortableSession) -> bool:
    """Whether the same session is here, apart from what had to be adjusted when it came in."""
    here = from_mapping(export_session(tx, portable.session.id))
    session = here.session
    portable = dated(portable, session.started_at)
    wanted = portable.session
    if session.title_source == TitleSource.IMPORT and wanted.title:
        session = session._replace(title=wanted.title, title_source=wanted.title_source)
    if session.end_reason == _CAME_IN_ENDED and wanted.is_open:
        session = session._replace(ended_at=None, end_reason=wanted.end_reason)
    if has_own_preview(portable):
        session = session._replace(first_line=wanted.first_line)
    if not tx.scope.sees_all:
        session = session._replace(principal=wanted.principal, audience=wanted.audience, lane_key=wanted.lane_key)
    return here._replace(session=session) == portable._replace(unknown=())


def _fitted(tx: Transaction, session: Session, now: float) -> tuple[Session, list[str]]:
    """The session with whatever would clash here adjusted, and a sentence for each adjustment."""
    notes = []
    if not tx.scope.sees_all:  # nobody brings a session in for somebody else, or into somebody's lane
        session = session._replace(principal=tx.scope.principal, audience=tx.scope.room or "", lane_key=None)
    if session.title and tx.sessions.holder_of(session.principal, session.title):
        title = free_title(tx, session.principal, session.title)
        notes.append(f"its title {session.title!r} is taken here; it is now {title!r}")
        session = session._replace(title=title, title_source=TitleSource.IMPORT)
    if session.is_open and (current := find_successor(tx, session)):
        notes.append(f"its lane goes on here in session {current.id}; it came in as ended")
        session = session._replace(ended_at=now, end_reason=_CAME_IN_ENDED)
    if session.parent_session_id and is_above(tx, session.id, session.parent_session_id):
        notes.append("its parent is one of its own descendants; the link was left out")
        session = session._replace(parent_session_id=None)
    return session, notes


def _preview(tx: Transaction, session: Session, portable: PortableSession) -> str:
    """How the conversation of a part began, if that is known and the file does not say that another line is shown."""
    parent = tx.sessions.find(session.parent_session_id) if session.parent_session_id else None
    is_known = parent is not None and parent.principal == session.principal and parent.first_line
    return parent.first_line if parent is not None and is_known and has_own_preview(portable) else session.first_line


def _pass_preview_on(tx: Transaction, session: Session) -> None:
    """Let the parts that came in before the one they continue show how the conversation began."""
    for link in tx.sessions.children([session.id]) if session.first_line else []:
        child = get_session(tx, link.id)
        if child.first_line != session.first_line and has_own_preview(from_mapping(export_session(tx, child.id))):
            tx.sessions.change(child.id, first_line=session.first_line)
            _pass_preview_on(tx, child._replace(first_line=session.first_line))


def _named(fields: tuple[str, ...]) -> str:
    """The first of them; a file of somebody else may have any number."""
    more = len(fields) - _MOST_NAMED
    return ", ".join(fields[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _renamed(portable: PortableSession) -> PortableSession:
    """The same session under an id that its content decides, so that copying it twice makes one copy."""
    digest = sha256(repr(portable).encode("utf-8", "replace")).hexdigest()[:8]
    name = f"{portable.session.id[: LONGEST_ID - 9]}_{digest}"
    return portable._replace(session=portable.session._replace(id=name))
