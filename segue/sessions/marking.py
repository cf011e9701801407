"""Conversations are put aside, kept for good, or given words to find them by. A mark holds for all their parts."""

from collections.abc import Iterable
from typing import NamedTuple

from segue.core.errors import Invalid
from segue.core.titles import clean_title
from segue.ports.store import Transaction
from segue.sessions.finding import find_conversation, get_session
from segue.sessions.titling import set_title

LONGEST_TAG = 50


class Marked(NamedTuple):
    """A conversation, and what is said of it now."""

    id: str
    title: str | None
    tags: list[str]


def mark_conversation(
    tx: Transaction,
    session_id: str,
    *,
    title: str | None = None,
    archived: bool | None = None,
    pinned: bool | None = None,
    add_tags: Iterable[str] = (),
    remove_tags: Iterable[str] = (),
) -> Marked:
    """Name a conversation, put it aside, keep it, give it tags: what is not said stays as it is."""
    if title is not None:
        set_title(tx, session_id, title)
    if archived is not None:
        archive_conversation(tx, session_id, archived=archived)
    if pinned is not None:
        pin_conversation(tx, session_id, pinned=pinned)
    tags = tag_conversation(tx, session_id, add=add_tags, remove=remove_tags)
    return Marked(session_id, get_session(tx, session_id).title, tags)


def archive_conversation(tx: Transaction, session_id: str, *, archived: bool) -> list[str]:
    """Hide a conversation from lists, or show it again; the ids of its parts."""
    return _mark(tx, session_id, archived=int(archived))


def pin_conversation(tx: Transaction, session_id: str, *, pinned: bool) -> list[str]:
    """Keep a conversation from being pruned, or let it go."""
    return _mark(tx, session_id, pinned=int(pinned))


def tag_conversation(
    tx: Transaction, session_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = ()
) -> list[str]:
    """Add tags and take others away; the tags that it has now."""
    added, removed = [clean_tag(tag) for tag in add], [clean_tag(tag) for tag in remove]
    parts = find_conversation(tx, session_id)
    for part in parts:
        tx.sessions.tag(part, added)
        tx.sessions.untag(part, removed)
    return tx.sessions.tags([session_id]).get(session_id, [])


def clean_tag(raw: str) -> str:
    """The tag that is kept of what somebody typed: visible, on one line, and short."""
    tag = clean_title(raw[: LONGEST_TAG + 1])
    if tag is None or len(tag) > LONGEST_TAG:
        raise Invalid(f"A tag has 1 to {LONGEST_TAG} visible characters.")
    return tag


def _mark(tx: Transaction, session_id: str, **columns: int) -> list[str]:
    parts = find_conversation(tx, session_id)
    for part in parts:
        tx.sessions.change(part, **columns)
    return parts
