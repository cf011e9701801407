"""Everything from one database to another, compared row by row at the end."""

from collections.abc import Callable
from typing import NamedTuple

from segue.core.errors import StoreError
from segue.core.scope import OWNER_AT_CONSOLE
from segue.ports.store import Transaction
from segue.sessions import listing
from segue.storage.copying import COPYING, Contents
from segue.storage.store import SqlStore


class Differs(StoreError):
    def __init__(self, tables: list[str]) -> None:
        super().__init__(
            f"Somebody wrote while {', '.join(tables)} was copied; stop other programs, and the same command brings it."
        )


class Held(NamedTuple):
    sessions: int
    messages: int


def held(store: SqlStore) -> Held:
    return store.read(OWNER_AT_CONSOLE, _held)


def in_the_way(target: SqlStore, source: str) -> Held | None:
    """What a database holds that is no copy, not even a half, of the source."""
    return target.read(OWNER_AT_CONSOLE, _in_the_way, source)


def migrate(source: SqlStore, target: SqlStore, name: str, advance: Callable[[int], object] = bool) -> list[Contents]:
    """Make the target what the source is; what both hold, once it is the same."""
    target.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.set(COPYING, name))
    source.copy_rows_to(target, advance)
    before, after = source.contents(advance), target.contents(advance)
    if different := [one.table for one, other in zip(before, after, strict=True) if one != other]:
        raise Differs(different)
    target.index_all()
    target.write(OWNER_AT_CONSOLE, lambda tx: tx.meta.remove(COPYING))
    return after


def _in_the_way(tx: Transaction, source: str) -> Held | None:
    there = _held(tx)
    return None if not there.sessions or tx.meta.get(COPYING) == source else there


def _held(tx: Transaction) -> Held:
    stats = listing.stats(tx)
    return Held(stats.sessions, stats.messages)
