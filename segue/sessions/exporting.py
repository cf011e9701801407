"""Sessions leave the store whole, every column, every message in every state; or as a document for people."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from segue.core.documents import Entry, Format, begun_anew, continued, entry_of, is_shown, said
from segue.core.messages import Message
from segue.core.portable import Mask, message_to_json, pieces, session_to_json, usage_to_json
from segue.core.sessions import Session
from segue.ports.store import Filter, Transaction
from segue.sessions.finding import find_ancestors, find_parts, get_session

_STEP = 20  # messages read at a time: each may be large


def export_session(tx: Transaction, session_id: str) -> dict[str, Any]:
    """One session as the object that its line in an export holds."""
    session = get_session(tx, session_id)
    messages = [message_to_json(message) for message in _messages(tx, session_id)]
    usage = usage_to_json(tx.ledger.of(session_id))
    return session_to_json(session, _tags(tx, session)) | {"messages": messages} | usage


def export_conversation(tx: Transaction, session_id: str) -> dict[str, Any]:
    """A conversation, whichever part is named: its newest part as in an export, the ones before it under `earlier`."""
    *earlier, tip = (export_session(tx, part.id) for part in find_parts(tx, session_id))
    return tip | {"earlier": earlier}


def export_lines(
    tx: Transaction,
    write: Callable[[str], object],
    sources: Collection[str] = (),
    ids: Collection[str] = (),
    advance: Callable[[int], object] = bool,
    *,
    mask: Mask | None = None,
) -> int:
    """Write sessions as JSON lines, oldest first, piece by piece; how many there were."""
    count = 0
    sessions = (get_session(tx, one) for one in ids) if ids else tx.sessions.in_order(sources)
    for session in sessions:
        usage = tx.ledger.of(session.id)
        for piece in pieces(session, _tags(tx, session), _messages(tx, session.id), usage, mask):
            write(piece)
        write("\n")
        advance(1)
        count += 1
    return count


def export_page(
    tx: Transaction,
    write: Callable[[str], object],
    session_id: str,
    after: int,
    max_chars: int,
    mask: Mask | None = None,
) -> int | None:
    """Write a session with the messages behind a number, until there is so much text.

    Returns the number of the last one that was written, if there are more.
    """
    session = get_session(tx, session_id)
    written, last, is_cut = 0, after, False

    def some() -> Iterator[Message]:
        nonlocal last, is_cut
        for message in _messages(tx, session_id, after):
            if written > max_chars and last > after:
                is_cut = True
                return
            yield message
            last = message.seq

    for piece in pieces(session, _tags(tx, session), some(), tx.ledger.of(session_id), mask):
        written += len(piece)
        write(piece)
    return last if is_cut else None


def export_document(
    tx: Transaction,
    write: Callable[[str], object],
    form: Format,
    mask: Callable[[Any], Any],
    sources: Collection[str] = (),
    ids: Collection[str] = (),
    advance: Callable[[int], object] = bool,
) -> int:
    """Write conversations for people to read, oldest first, a message at a time; how many there were."""
    total = len(ids) or tx.sessions.count(conversations(sources))
    for piece in form.begin(_contents(tx, mask, sources, ids), total):
        write(piece)
    for number, parts in enumerate(_conversations(tx, sources, ids), 1):
        write(form.conversation(entry_of(number, parts, mask)))
        for place, part in enumerate(parts, 1):
            _write_part(tx, write, form, mask, number, place, part)
        write(form.close_conversation())
        advance(1)
    write(form.end())
    return total


def conversations(sources: Collection[str] = ()) -> Filter:
    """Every conversation once, by its newest part."""
    return Filter(sources=tuple(sources), archived=None)


def _write_part(
    tx: Transaction,
    write: Callable[[str], object],
    form: Format,
    mask: Callable[[Any], Any],
    number: int,
    place: int,
    part: Session,
) -> None:
    if place > 1:
        write(form.break_(continued(part, mask)))
    if reset := tx.lanes.reset_into(part.id):
        write(form.break_(begun_anew(reset.reason, reset.at, reset.from_session, mask)))
    for message in _messages(tx, part.id):
        if is_shown(message):
            write(form.message(said(message, number, place, mask)))


def _contents(
    tx: Transaction, mask: Callable[[Any], Any], sources: Collection[str], ids: Collection[str]
) -> Iterator[Entry]:
    for number, parts in enumerate(_conversations(tx, sources, ids), 1):
        yield entry_of(number, parts, mask)


def _conversations(tx: Transaction, sources: Collection[str], ids: Collection[str]) -> Iterator[list[Session]]:
    """The parts of each conversation, read anew for every walk through them: all at once might be too many."""
    if ids:
        yield from (find_parts(tx, one) for one in ids)
        return
    for session in tx.sessions.in_order(sources):
        if not tx.sessions.children([session.id]):
            yield [*find_ancestors(tx, session), session]


def _tags(tx: Transaction, session: Session) -> list[str]:
    return tx.sessions.tags([session.id]).get(session.id, [])


def _messages(tx: Transaction, session_id: str, after: int = -1) -> Iterator[Message]:
    while batch := tx.messages.of(session_id, every_state=True, after=after, limit=_STEP):
        yield from batch
        after = batch[-1].seq
