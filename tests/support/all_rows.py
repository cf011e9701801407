"""Everything a database holds, to be compared as a whole."""

from typing import Any

from segue.core.scope import OWNER_AT_CONSOLE as OWNER
from segue.storage.schema import SEARCH_WORDS, STATE_META, TABLES
from segue.storage.sqlite import SqliteEngine

Rows = dict[str, frozenset[tuple[Any, ...]]]
_COMPARED = [table.name for table in TABLES if table is not SEARCH_WORDS]


def all_rows(engine: SqliteEngine) -> Rows:
    """The rows of every table. The search index follows behind, so that it is not compared."""
    with engine.reading(OWNER) as executor:
        rows = {name: frozenset(executor.rows(f"SELECT * FROM {name}", {})) for name in _COMPARED}
    rows[STATE_META.name] = frozenset(row for row in rows[STATE_META.name] if not row[0].startswith("search:"))
    return rows


def is_sound(engine: SqliteEngine) -> bool:
    with engine.reading(OWNER) as executor:
        whole = executor.rows("PRAGMA integrity_check", {}) == [("ok",)]
        return whole and not executor.rows("PRAGMA foreign_key_check", {})


def difference(expected: Rows, found: Rows) -> str:
    """Which tables are not as they should be, and by how many rows."""
    told = [
        f"{name}: {len(rows - found[name])} missing, {len(found[name] - rows)} unknown"
        for name, rows in expected.items()
        if rows != found[name]
    ]
    return "; ".join(told) or "nothing"
