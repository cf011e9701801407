"""A conversation goes on twice: a branch begins with all that was said, and the one it comes from stays as it is.

A branch has rows of its own, so that whatever happens to either later, an undo, a compression or a deletion, the other
is not touched.
"""

from collections.abc import Iterable, Iterator

from segue.core.errors import InvalidSession
from segue.core.messages import SUMMARY_SEQ, Draft, Message, State
from segue.core.sessions import Session, TitleSource, kind_of
from segue.core.titles import clean_title
from segue.core.transcript import read_through
from segue.ports.store import Transaction
from segue.sessions.finding import get_session
from segue.sessions.reading import kept_stretches
from segue.sessions.starting import insert_session
from segue.sessions.titling import free_title, set_title

BRANCH = "branch"


def branch_session(
    tx: Transaction,
    session_id: str,
    *,
    branch_id: str,
    source: str,
    now: float,
    title: str | None = None,
    cwd: str | None = None,
    upto: int | None = None,
) -> Session:
    """A new session in which a model is told the same as in another one, or as up to one of its messages.

    It belongs to whoever asks for it.
    """
    origin = get_session(tx, session_id)
    told = [one for one in _told(tx, origin) if upto is None or one.session_id != session_id or one.seq <= upto]
    if not told:
        raise InvalidSession("Nothing has been said yet, so there is nothing to branch from.")
    insert_session(tx, _branch(tx, origin, branch_id, source, now)._replace(cwd=origin.cwd or cwd))
    for seq, message in _numbered(told):
        tx.messages.insert(branch_id, seq, State.LIVE, _draft(message))
    tx.sessions.recount(branch_id)
    counted = origin.context_tokens if upto is None else None  # of less than all nobody has counted anything
    tx.sessions.change(branch_id, first_line=origin.first_line, context_tokens=counted)
    tx.sessions.tag(branch_id, tx.sessions.tags([origin.id]).get(origin.id, []))
    _name(tx, branch_id, origin, clean_title(title))
    return get_session(tx, branch_id)


def _branch(tx: Transaction, origin: Session, branch_id: str, source: str, now: float) -> Session:
    return Session(
        id=branch_id,
        source=source,
        user_id=origin.user_id,
        model=origin.model,
        kind=kind_of(source),
        agent=origin.agent,
        started_at=now,
        last_active_at=now,
        start_reason=BRANCH,
        branched_from=origin.id,
        principal=tx.scope.principal,
        audience=tx.scope.room or "",
        context_window=origin.context_window,
        model_config=origin.model_config,
        system_prompt=origin.system_prompt,
    )


def _name(tx: Transaction, branch_id: str, origin: Session, title: str | None) -> None:
    if title:
        set_title(tx, branch_id, title)
    elif origin.title:
        set_title(tx, branch_id, free_title(tx, tx.scope.principal, origin.title), TitleSource.LINEAGE)


def _told(tx: Transaction, session: Session) -> list[Message]:
    """The rows of what `reading.view_of` shows."""
    own = tx.messages.of(session.id)
    return read_through(own, _kept(tx, session)) if own and own[0].seq == SUMMARY_SEQ else own


def _kept(tx: Transaction, session: Session) -> Iterator[Message]:
    for name, after in kept_stretches(tx, session):
        yield from tx.messages.of(name, after=after)


def _numbered(messages: Iterable[Message]) -> Iterator[tuple[int, Message]]:
    """Each message with its place: the one it had, unless a part before it has reached that already."""
    part, shift, free = "", 0, 0
    for message in messages:
        if message.session_id != part:
            part, shift = message.session_id, max(free - message.seq, 0)
        yield message.seq + shift, message
        free = message.seq + shift + 1


def _draft(message: Message) -> Draft:
    return Draft._make(getattr(message, name) for name in Draft._fields)
