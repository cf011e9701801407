"""What there is, without opening any of it."""

from typing import Any, NamedTuple

from segue.core.sessions import Listed, as_row
from segue.ports.store import Filter, SourceCount, Transaction


class Stats(NamedTuple):
    sessions: int
    messages: int
    sources: list[SourceCount]


def list_sessions(tx: Transaction, wanted: Filter, limit: int = 20, offset: int = 0) -> list[Listed]:
    """The most recently active first. A conversation in several parts is one row: the newest part."""
    return tx.sessions.listed(wanted, limit, offset)


def list_rows(tx: Transaction, wanted: Filter, limit: int = 20, offset: int = 0) -> list[dict[str, Any]]:
    """The same as dictionaries, with their tags."""
    rows = [as_row(session) for session in list_sessions(tx, wanted, limit, offset)]
    tags = tx.sessions.tags([row["id"] for row in rows])
    for row in rows:
        row["tags"] = tags.get(row["id"], [])
    return rows


def count_sessions(tx: Transaction, wanted: Filter) -> int:
    return tx.sessions.count(wanted)


def stats(tx: Transaction) -> Stats:
    """Totals, and one line per source that occurs. Counted from the sessions alone."""
    sources = tx.sessions.by_source()
    return Stats(sum(one.sessions for one in sources), sum(one.messages for one in sources), sources)
