"""Sessions as cells of tables. Nothing here prints."""

from collections.abc import Sequence

from segue.cli.output import NOTHING, Column, excerpt
from segue.core.moments import ago
from segue.core.sessions import MAX_PREVIEW, Listed
from segue.ports.store import TrashEntry


def session_table(sessions: Sequence[Listed], now: float) -> tuple[list[Column], list[list[str]]]:
    """A list of sessions as columns and rows; titles have a column when there are any."""
    if any(session.title for session in sessions):
        columns = [
            Column("Title", 2),
            Column("Preview", 3, yields=2, fills="Title"),
            Column("Last Active", yields=1),
            Column("ID"),
        ]
    else:
        columns = [Column("Preview", 1), Column("Last Active", yields=1), Column("Src", yields=2), Column("ID")]
    cells = [_cells(session, now) for session in sessions]
    return columns, [[row[column.name] for column in columns] for row in cells]


def _cells(session: Listed, now: float) -> dict[str, str]:
    return {
        "Title": session.title or NOTHING,
        "Preview": excerpt(session.first_line, MAX_PREVIEW),
        "Last Active": ago(session.last_active_at, now),
        "Src": session.source,
        "ID": session.id,
    }


def trash_cells(entry: TrashEntry, now: float) -> list[str]:
    name = entry.title or excerpt(entry.first_line, MAX_PREVIEW) or NOTHING
    return [name, str(entry.message_count), ago(entry.trashed_at, now), entry.session_id]
