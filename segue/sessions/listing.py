"""What there is, without opening any of it."""

from collections.abc import Collection
from typing import Any, NamedTuple

from segue.core.errors import Invalid
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


def check_sources(tx: Transaction, wanted: Collection[str], known: Collection[str]) -> None:
    """Refuse a platform that is not known and that no session is from: it is probably misspelt."""
    unknown = [name for name in wanted if name not in known]
    if any(not tx.sessions.listed(_from_source(name), limit=1, offset=0) for name in unknown):
        refuse_unknown(unknown, {*known, *(one.source for one in tx.sessions.by_source())})


def refuse_unknown(wanted: Collection[str], known: Collection[str]) -> None:
    """Raise an error for the first platform that is not known."""
    from difflib import get_close_matches  # only a mistake needs it

    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(known))}."
            raise Invalid(f"There is no platform {name!r}; {hint}")


def _from_source(name: str) -> Filter:
    return Filter(sources=(name,), archived=None, tips_only=False)


def count_sessions(tx: Transaction, wanted: Filter) -> int:
    return tx.sessions.count(wanted)


def stats(tx: Transaction) -> Stats:
    """Totals, and one line per source that occurs. Counted from the sessions alone."""
    sources = tx.sessions.by_source()
    return Stats(sum(one.sessions for one in sources), sum(one.messages for one in sources), sources)
