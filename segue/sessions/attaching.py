"""Which files are needed: by what was said, by what waits to be answered or sent, and by what is in the trash."""

import json
from collections.abc import Iterable

from segue.core.attachments import kept_in
from segue.core.portable import from_mapping
from segue.ports.store import Transaction, TrashEntry
from segue.sessions.discarding import find_trashed
from segue.sessions.finding import find_conversation

_SIGN = '"sha256"'


def files_needed(tx: Transaction) -> set[str]:
    """The digests of everything that somebody could still ask for."""
    named = {digest for listed in tx.health.files() for digest in kept_in(listed)}
    return named | files_in_trash(tx, tx.trash.listed())


def files_of(tx: Transaction, session_id: str) -> set[str]:
    """Those of a conversation: of all its parts, of what was received and sent in it, and of copies in the trash."""
    is_there = tx.sessions.find(session_id) is not None
    parts = find_conversation(tx, session_id) if is_there else [one.session_id for one in find_trashed(tx, session_id)]
    copies = [entry for entry in tx.trash.listed() if entry.session_id in parts or entry.conversation in parts]
    named = {digest for listed in tx.health.files(parts) for digest in kept_in(listed)}
    return named | files_in_trash(tx, copies)


def files_in_trash(tx: Transaction, entries: Iterable[TrashEntry]) -> set[str]:
    found: set[str] = set()
    for entry in entries:
        payload = tx.trash.payload(entry)
        if _SIGN in payload:
            messages = from_mapping(json.loads(payload)).messages
            found |= {digest for one in messages for digest in kept_in(one.draft.attachments or "[]")}
    return found
