"""What a removal takes: whole conversations, shown before anything happens, and counted alike afterwards."""

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from segue.cli.output import Column, show_json, table
from segue.core.errors import SessionNotFound
from segue.core.moments import ago
from segue.core.sessions import preview_of
from segue.ports.store import Transaction, TrashEntry
from segue.sessions import discarding, finding

_COLUMNS = [
    Column("Title or beginning", 1),
    Column("Parts", yields=3),
    Column("Messages", yields=2),
    Column("Last Active", yields=1),
    Column("ID"),
]


class Removal(NamedTuple):
    """A conversation that is to go, with all its parts."""

    id: str
    title: str | None
    first_line: str
    parts: tuple[str, ...]
    messages: int
    last_at: float
    """When it was last active; of one in the trash, when it was deleted."""

    def as_row(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "title": self.title,
            "preview": preview_of(self.first_line),
            "parts": list(self.parts),
            "message_count": self.messages,
            "last_active_at": self.last_at,
        }


def removals_named(tx: Transaction, wanted: Iterable[str], purge: bool) -> list[Removal]:
    """Return what the names mean, each conversation once; for a purge, also what is in the trash already."""
    return _apart([_named(tx, name, purge) for name in wanted])


def removals_of(tx: Transaction, tips: Iterable[str]) -> list[Removal]:
    """Return the conversations that these sessions belong to, each once."""
    return _apart([_at_hand(tx, tip) for tip in tips])


def preview(removals: Sequence[Removal]) -> None:
    table(_COLUMNS, [_cells(one, time.time()) for one in removals])


def _cells(one: Removal, now: float) -> list[str]:
    name = one.title or preview_of(one.first_line) or "—"
    return [name, str(len(one.parts)), str(one.messages), ago(one.last_at, now), one.id]


def show_removals(removals: Sequence[Removal], *, purged: bool, dry_run: bool) -> None:
    """Tell programs what was removed, or would be."""
    show_json({"conversations": [one.as_row() for one in removals], "purged": purged, "dry_run": dry_run})


def _named(tx: Transaction, name: str, purge: bool) -> Removal:
    try:
        wanted = finding.get_id(tx, name)
    except SessionNotFound:
        if not purge:
            raise
        return _of_entries(discarding.find_trashed(tx, name))
    return _at_hand(tx, finding.find_tip(tx, wanted))


def _at_hand(tx: Transaction, tip: str) -> Removal:
    session = finding.get_session(tx, tip)
    parts = [finding.get_session(tx, part) for part in finding.find_conversation(tx, tip)]
    messages = sum(part.message_count for part in parts)
    ids = tuple(part.id for part in parts)
    return Removal(session.id, session.title, session.first_line, ids, messages, session.last_active_at)


def _of_entries(entries: Sequence[TrashEntry]) -> Removal:
    first = entries[0]
    messages = sum(entry.message_count for entry in entries)
    parts = tuple(entry.session_id for entry in entries)
    return Removal(first.session_id, first.title, first.first_line, parts, messages, first.trashed_at)


def _apart(removals: Iterable[Removal]) -> list[Removal]:
    """Leave out what goes with another one: a second end of a conversation, or a subagent that it started."""
    kept: list[Removal] = []
    for removal in removals:
        if not any(removal.id in other.parts for other in kept):
            kept = [*(other for other in kept if other.id not in removal.parts), removal]
    return kept
