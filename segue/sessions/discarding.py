"""Sessions go into the trash, come back from it, and leave it for good."""

import json
from collections.abc import Collection
from typing import NamedTuple

from segue.core.errors import Ambiguous, NotFound
from segue.core.portable import from_mapping
from segue.core.sessions import Listed, Session
from segue.core.spelling import dumps
from segue.core.titles import title_key
from segue.ports.store import Filter, Transaction, TrashEntry
from segue.sessions.calling import forget_calls
from segue.sessions.ending import is_in_use, seize
from segue.sessions.exporting import export_session
from segue.sessions.finding import find_conversation, find_successor, get_session
from segue.sessions.leasing import release
from segue.sessions.minding import Hand
from segue.sessions.titling import free_title


class Restored(NamedTuple):
    session_ids: list[str]
    notes: list[str]


def discard_session(tx: Transaction, session_id: str, now: float, conversation: str | None = None) -> TrashEntry:
    """Move one session into the trash, whole."""
    session = get_session(tx, session_id)
    entry = TrashEntry(
        id=0,
        session_id=session.id,
        conversation=conversation or session.id,
        title=session.title,
        first_line=session.first_line,
        source=session.source,
        principal=session.principal,
        audience=session.audience,
        message_count=session.message_count,
        trashed_at=now,
    )
    kept = tx.trash.put(entry, dumps(export_session(tx, session_id)))
    tx.sessions.delete([session_id])
    return kept


def discard_conversation(tx: Transaction, session_id: str, now: float) -> list[TrashEntry]:
    """Move a conversation into the trash: all its parts and the subagents it started. Its title is free again."""
    parts = find_conversation(tx, session_id)
    return [discard_session(tx, part, now, conversation=parts[0]) for part in parts]


def purge_conversation(tx: Transaction, session_id: str) -> int:
    """Remove a conversation without a trace in the tables; the caller compacts the file afterwards."""
    if tx.sessions.find(session_id) is None:
        parts = [entry.session_id for entry in find_trashed(tx, session_id)]
    else:
        parts = find_conversation(tx, session_id)
    copies = [entry for entry in tx.trash.listed() if entry.session_id in parts or entry.conversation in parts]
    tx.inbox.erase(parts)
    tx.outbox.erase(parts)
    owners = {session.principal for part in parts if (session := tx.sessions.find(part))}
    forget_calls(tx, parts, owners | {entry.principal for entry in copies})
    return tx.trash.remove(copies) + tx.sessions.delete(parts)


def said_in(tx: Transaction, session_id: str) -> set[str]:
    """What people said in a conversation, in any state and in all its parts, also in the trash."""
    is_there = tx.sessions.find(session_id) is not None
    parts = find_conversation(tx, session_id) if is_there else [one.session_id for one in find_trashed(tx, session_id)]
    copies = [entry for entry in tx.trash.listed() if entry.session_id in parts or entry.conversation in parts]
    trashed = [message.draft for one in copies for message in from_mapping(json.loads(tx.trash.payload(one))).messages]
    said = {(one.role, one.content) for one in trashed}
    for part in parts if is_there else []:
        said |= {(one.role, one.content) for one in tx.messages.of(part, every_state=True)}
    return {content for role, content in said if role == "user" and content}


def find_trashed(tx: Transaction, wanted: str) -> list[TrashEntry]:
    """The parts of the trashed conversation that an id, a title or the beginning of an id means; the latest one."""
    entries = tx.trash.listed()
    exact = [entry for entry in entries if entry.session_id == wanted]
    found = (
        exact[:1]
        or [entry for entry in entries if entry.title == wanted]
        or [entry for entry in entries if entry.title and title_key(entry.title) == title_key(wanted)]
        or [entry for entry in entries if wanted and entry.session_id.startswith(wanted)]
    )
    if not found:
        raise NotFound(f"Nothing in the trash has the id or title {wanted!r}; `segue sessions trash list` shows it.")
    if len({entry.conversation for entry in found}) > 1:
        raise Ambiguous(wanted, sorted({entry.session_id for entry in found}))
    together = (found[0].conversation, found[0].trashed_at)
    return [entry for entry in entries if (entry.conversation, entry.trashed_at) == together]


def restore_conversation(tx: Transaction, wanted: str) -> Restored:
    """Bring a conversation back as it was. A title that was given away meanwhile gets a number."""
    done = Restored([], [])
    for entry in find_trashed(tx, wanted):
        portable = from_mapping(json.loads(tx.trash.payload(entry)))
        session = _free(tx, portable.session, done.notes)
        if not tx.sessions.insert(session):
            done.notes.append(f"{session.id} is here already; the copy in the trash was left there.")
            continue
        tx.sessions.tag(session.id, portable.tags)
        for message in portable.messages:
            tx.messages.insert(session.id, message.seq, message.state, message.draft)
        tx.trash.remove([entry])
        done.session_ids.append(session.id)
    return done


def trash_before(tx: Transaction, before: float | None = None) -> list[TrashEntry]:
    """What is in the trash, or what has been there since before a moment."""
    return tx.trash.listed() if before is None else tx.trash.older_than(before)


def empty_trash(tx: Transaction, before: float | None = None) -> list[TrashEntry]:
    """Forget it."""
    entries = trash_before(tx, before)
    tx.trash.remove(entries)
    kept = {entry.session_id for entry in tx.trash.listed()}
    for entry in entries:
        if entry.session_id not in kept and tx.sessions.find(entry.session_id) is None:
            forget_calls(tx, [entry.session_id], [entry.principal])
    return entries


def find_prunable(
    tx: Transaction, before: float, sources: Collection[str] = (), idle: Hand | None = None
) -> list[Listed]:
    """Ended conversations without activity since a moment; never one that is open or pinned in any of its parts.

    With `idle` also open ones, unless somebody works in them. A subagent goes with the conversation that started it.
    """
    ended = True if idle is None else None
    wanted = Filter(sources=tuple(sources), inactive_since=before, ended=ended, pinned=False, archived=None)
    found = tx.sessions.listed(wanted, limit=None, offset=0)
    tops = [one for one in found if one.spawned_by is None or tx.sessions.find(one.spawned_by) is None]
    return [one for one in tops if all(_is_over(tx, part, before, idle) for part in _parts(tx, one.id))]


def prune(
    tx: Transaction, before: float, now: float, sources: Collection[str] = (), idle: Hand | None = None
) -> list[TrashEntry]:
    """Move every prunable conversation into the trash."""
    found = find_prunable(tx, before, sources, idle)
    return [entry for session in found for entry in prune_conversation(tx, session.id, before, now, idle)]


def prune_conversation(
    tx: Transaction, session_id: str, before: float, now: float, idle: Hand | None = None
) -> list[TrashEntry]:
    """Move one conversation into the trash, if it still is prunable and has not gone with another end of it."""
    if tx.sessions.find(session_id) is None:
        return []
    parts = _parts(tx, session_id)
    if not all(_is_over(tx, part, before, idle) for part in parts):
        return []
    taken = [lease for part in parts if part.is_open and idle for lease in seize(tx, part, idle)]
    gone = discard_conversation(tx, session_id, now)
    for lease in taken:
        release(tx, lease)
    return gone


def _parts(tx: Transaction, session_id: str) -> list[Session]:
    return [get_session(tx, part) for part in find_conversation(tx, session_id)]


def _is_over(tx: Transaction, session: Session, before: float, idle: Hand | None) -> bool:
    if session.pinned or session.last_active_at >= before:
        return False
    return not session.is_open or (idle is not None and not is_in_use(tx, session, idle.is_gone))


def _free(tx: Transaction, session: Session, notes: list[str]) -> Session:
    if session.title and tx.sessions.holder_of(session.principal, session.title):
        title = free_title(tx, session.principal, session.title)
        notes.append(f"The title {session.title!r} is taken now; it came back as {title!r}.")
        session = session._replace(title=title)
    if session.is_open and find_successor(tx, session):
        session = session._replace(ended_at=session.last_active_at, end_reason="trashed")
        notes.append(f"The lane of {session.id} goes on elsewhere; it came back as ended.")
    return session
