"""Everything that can still be read of a damaged file, in a sound one.

Tables are read row by row in the order of their row numbers. Where a page cannot be read, the next row number that can
is searched for with growing steps, so that what is lost is what lay on the damaged pages and nothing beside it.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import apsw

from segue.storage.connection import WRITING, SqliteConnection
from segue.storage.schema import TABLES, Table, declare
from segue.storage.search_index import create_index
from segue.storage.sql import Row

_UNKNOWN = 2**62
_LONGEST_STEP = 64  # rows that can be read are not stepped over


_UNREADABLE = (apsw.CorruptError, UnicodeDecodeError)


class Salvaged(NamedTuple):
    """What came out of a damaged file."""

    rows: int
    holes: int
    """Stretches of row numbers that could not be read."""


def salvage(source: SqliteConnection, target: Path, advance: Callable[[int], object] = bool) -> Salvaged:
    """Make a new file of what can be read of a damaged one. Rows whose session is lost stay, for others to adopt."""
    new = SqliteConnection.made(target)
    try:
        new.handle.pragma("foreign_keys", False)
        new.handle.pragma("application_id", source.handle.pragma("application_id"))
        with new.transaction(WRITING):
            declare(new)
            create_index(new)  # filled anew from the messages
            outcomes = [_copy(source, new, table, advance) for table in TABLES]
    finally:
        new.handle.close()
    return Salvaged(sum(one.rows for one in outcomes), sum(one.holes for one in outcomes))


def _copy(source: SqliteConnection, new: SqliteConnection, table: Table, advance: Callable[[int], object]) -> Salvaged:
    stored = {name for _, name, *_, hidden in source.rows(f"PRAGMA table_xinfo({table.name})") if not hidden}
    names = [column.name for column in table.columns if column.name in stored]
    if not names:
        return Salvaged(0, 0)  # the file is older than the table
    values = ", ".join("?" for _ in names)
    insert = f"INSERT OR IGNORE INTO {table.name} ({', '.join(names)}) VALUES ({values})"
    rows = holes = 0
    for row in _readable(source, table.name, ", ".join(names)):
        if row is None:
            holes += 1
            continue
        try:
            new.handle.execute(insert, row[1:])
        except apsw.ConstraintError:
            holes += 1  # what stands there is no row of ours any more
            continue
        rows += new.handle.changes()
        advance(1)
    return Salvaged(rows, holes)


def _readable(source: SqliteConnection, table: str, names: str) -> Iterator[Row | None]:
    """The rows in order, and None where some could not be read."""
    read = f"SELECT rowid, {names} FROM {table} NOT INDEXED WHERE rowid > ? ORDER BY rowid"
    last = _last_row(source, table)
    after = 0
    while after < last:
        try:
            for row in source.handle.execute(read, (after,)):
                after = int(row[0])
                yield row
        except _UNREADABLE:
            yield None
            after = _beyond_damage(source, read, after, last)
        else:
            return


def _last_row(source: SqliteConnection, table: str) -> int:
    try:
        return int(source.handle.execute(f"SELECT max(rowid) FROM {table}").get or 0)
    except apsw.CorruptError:
        return _UNKNOWN


def _beyond_damage(source: SqliteConnection, read: str, after: int, last: int) -> int:
    """The row number behind which rows can be read again, found with growing steps and then by halving the last."""
    low, step = after, 1
    while not _is_readable_after(source, read, low + step):
        low += step
        step = min(2 * step, _LONGEST_STEP) if last < _UNKNOWN else 2 * step
        if low >= last:
            return last
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_readable_after(source, read, middle) else (middle, high)
    return high


def _is_readable_after(source: SqliteConnection, read: str, rowid: int) -> bool:
    try:
        source.handle.execute(f"{read} LIMIT 1", (rowid,)).fetchall()
    except _UNREADABLE:
        return False
    return True
