"""All rows of one database in another, a piece at a time.

A piece that is equal on both sides is left alone, so a copy that was cut off goes on where it was, and one that is made
again brings only what has changed. Nothing is remembered in between: the rows themselves say how far it got.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.storage.patience import PATIENCE, patiently
from segue.storage.schema import (
    CURSORS,
    HEARD,
    INBOX,
    JOBS,
    LANES,
    MESSAGES,
    OUTBOX,
    PAIRINGS,
    PEOPLE,
    RESETS,
    SESSION_TAGS,
    SESSIONS,
    STATE_META,
    STEPS,
    TRASH,
    TURNS,
    USAGE,
    Table,
)
from segue.storage.sql import Condition, Executor, Row, batches, columns, placeholders

COPIED = "copying:copied"
"""Where a database says that it is a copy, of what, and what it held then."""
PROBE = "copying:probe"
"""Where one database is asked whether it is another."""

_KEYS = {
    SESSIONS: ("id",),
    SESSION_TAGS: ("session_id", "tag"),
    MESSAGES: ("id",),
    LANES: ("key",),
    RESETS: ("id",),
    TRASH: ("id",),
    TURNS: ("id",),
    STEPS: ("turn_id", "number"),
    HEARD: ("turn_id", "number"),
    USAGE: ("id",),
    INBOX: ("id",),
    OUTBOX: ("id",),
    CURSORS: ("platform", "account", "name"),
    PEOPLE: ("platform", "peer"),
    PAIRINGS: ("platform", "peer", "slot"),
    JOBS: ("name",),
    STATE_META: ("key",),
}
COPIED_TABLES = tuple(_KEYS)
"""Those whose rows are copied, each behind those that it refers to."""
_OWN_FACTS = ("search:", "copying:")  # of a database itself, not of what it holds
_MOST_ROWS = 500
_MOST_KEYS = 250  # in one statement
_MOST_CHARACTERS = 4_000_000

Advance = Callable[[int], object]
Key = tuple[Any, ...]
T = TypeVar("T")


class Copyable(Protocol):
    """A database that rows can be read from and written to."""

    def writing(self, patience: float, scope: Scope) -> AbstractContextManager[Executor]: ...
    def reading(self, scope: Scope) -> AbstractContextManager[Executor]: ...
    def columns_to_find_by(self, message: Draft) -> dict[str, str]: ...
    def continue_numbers(self, executor: Executor) -> None:
        """Go on counting behind the rows that were put in with their numbers."""


class Contents(NamedTuple):
    """How much a table holds, and a fingerprint of all of it."""

    table: str
    rows: int
    digest: str


def count_rows(source: Executor) -> int:
    return sum(int(source.rows(f"SELECT count(*) FROM {table.name}", {})[0][0]) for table in _KEYS)


def contents_of(engine: Copyable, advance: Advance = bool) -> list[Contents]:
    """What a database holds, row by row and column by column."""
    with engine.reading(OWNER_AT_CONSOLE) as source:
        return [_contents(source, table, advance) for table in _KEYS]


def copy_rows(source: Copyable, target: Copyable, advance: Advance = bool) -> None:
    """Make all rows of a database those of another, in many small transactions."""

    def work(part: Callable[[Executor], None]) -> None:
        def attempt(seconds_left: float) -> None:
            with target.writing(seconds_left, OWNER_AT_CONSOLE) as executor:
                part(executor)

        patiently(attempt, PATIENCE)

    with source.reading(OWNER_AT_CONSOLE) as rows:
        _copy_rows(rows, target, work, advance)


def copy_rows_at_once(source: Copyable, target: Copyable, executor: Executor, advance: Advance = bool) -> None:
    """The same inside a transaction of the target."""
    with source.reading(OWNER_AT_CONSOLE) as rows:
        _copy_rows(rows, target, lambda part: part(executor), advance)


def _copy_rows(
    source: Executor, target: Copyable, work: Callable[[Callable[[Executor], None]], None], advance: Advance
) -> None:
    """First whatever is in the way goes, everywhere; then whatever is missing comes.

    A name that must be the only one may have moved from one row to another, so nothing comes before all has gone.
    """
    copiers = [_Copier(table, source, target) for table in _KEYS]
    for copier in reversed(copiers):
        after: Key | None = None
        while (after := _done(work, partial(copier.make_room, after=after))) is not None:
            pass
    for copier in copiers:
        for piece in copier.pieces():
            work(partial(copier.put, piece=piece))
            advance(len(piece))
    work(target.continue_numbers)


def _done(work: Callable[[Callable[[Executor], None]], None], part: Callable[[Executor], T]) -> T:
    """What a part of the work came to."""
    results: list[T] = []
    work(lambda executor: results.append(part(executor)))
    return results[-1]


class _Copier:
    """Brings the rows of one table."""

    def __init__(self, table: Table, source: Executor, target: Copyable) -> None:
        self._table = table
        self._source = source
        self._target = target
        self._names = stored_columns(table)
        self._key = _KEYS[table]
        self._places = [self._names.index(name) for name in self._key]

    def pieces(self) -> Iterator[list[Row]]:
        return _pieces(_all_rows(self._source, self._table))

    def make_room(self, executor: Executor, *, after: Key | None) -> Key | None:
        """Let the next rows go that the source has otherwise or not at all; where to go on, unless that was all."""
        where = _copied(self._table)
        if after is not None:
            names = {f"after_{name}": value for name, value in zip(self._key, after, strict=True)}
            where.add(f"({columns(self._key)}) > ({placeholders(names)})", **names)
        sql = f"""
            SELECT {columns(self._names)} FROM {self._table.name} WHERE {where.sql}
            ORDER BY {columns(self._key)} LIMIT {_MOST_ROWS}"""
        piece = next(_pieces(executor.stream(sql, where.parameters)), [])
        wanted = self._by_key(self._source, piece)
        for row in piece:
            if wanted.get(key := self._key_of(row)) != row:
                self._let_go(executor, key, is_gone=key not in wanted)
        return self._key_of(piece[-1]) if piece else None

    def put(self, executor: Executor, *, piece: list[Row]) -> None:
        """Let these rows be there."""
        there = self._by_key(executor, piece)
        if new := [self._values(row) for row in piece if there.get(self._key_of(row)) != row]:
            executor.run_many(_upsert(self._table.name, tuple(new[0]), self._key), new)

    def _let_go(self, executor: Executor, key: Key, *, is_gone: bool) -> None:
        """A session that is only different keeps its row, for the sake of its messages, but none of its names."""
        of_row = " AND ".join(f"{name} = :{name}" for name in self._key)
        act = f"DELETE FROM {self._table.name}"
        if self._table is SESSIONS and not is_gone:
            act = "UPDATE sessions SET title = NULL, lane_key = NULL"
        executor.run(f"{act} WHERE {of_row}", dict(zip(self._key, key, strict=True)))

    def _by_key(self, executor: Executor, piece: list[Row]) -> dict[Key, Row]:
        """The rows of a database that have the keys of these."""
        found: dict[Key, Row] = {}
        for batch in batches(piece, _MOST_KEYS):
            where, alternatives = _copied(self._table), []
            for number, row in enumerate(batch):
                names = [f"{name}_{number}" for name in self._key]
                where.parameters |= dict(zip(names, self._key_of(row), strict=True))
                alternatives.append(f"({placeholders(names)})")
            where.add(f"({columns(self._key)}) IN (VALUES {', '.join(alternatives)})")
            sql = f"SELECT {columns(self._names)} FROM {self._table.name} WHERE {where.sql}"
            found |= {self._key_of(row): row for row in executor.rows(sql, where.parameters)}
        return found

    def _key_of(self, row: Row) -> Key:
        return tuple(row[place] for place in self._places)

    def _values(self, row: Row) -> dict[str, Any]:
        values = dict(zip(self._names, row, strict=True))
        if self._table is MESSAGES:
            values |= self._target.columns_to_find_by(Draft(**{name: values[name] for name in Draft._fields}))
        return values


def stored_columns(table: Table) -> list[str]:
    """The columns that hold something, without those that follow from others."""
    return [column.name for column in table.columns if not column.rule.startswith("GENERATED ALWAYS")]


def _all_rows(source: Executor, table: Table) -> Iterator[Row]:
    where = _copied(table)
    sql = (
        f"SELECT {columns(stored_columns(table))} FROM {table.name} WHERE {where.sql} ORDER BY {columns(_KEYS[table])}"
    )
    return source.stream(sql, where.parameters)


def _copied(table: Table) -> Condition:
    where = Condition()
    if table is STATE_META:
        for number, beginning in enumerate(_OWN_FACTS):
            where.add(f"substr(key, 1, {len(beginning)}) <> :own_{number}", **{f"own_{number}": beginning})
    return where


def _pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows by the hundred; fewer when they are large."""
    piece: list[Row] = []
    characters = 0
    for row in rows:
        piece.append(row)
        characters += sum(len(value) for value in row if isinstance(value, str))
        if len(piece) == _MOST_ROWS or characters > _MOST_CHARACTERS:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece


def _upsert(table: str, names: Sequence[str], key: Sequence[str]) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    then = f"DO UPDATE SET {changes}" if changes else "DO NOTHING"
    return f"INSERT INTO {table} ({columns(names)}) VALUES ({placeholders(names)}) ON CONFLICT ({columns(key)}) {then}"


def _contents(source: Executor, table: Table, advance: Advance) -> Contents:
    digest, count = hashlib.sha256(), 0
    for row in _all_rows(source, table):
        digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        count += 1
        if count % _MOST_ROWS == 0:
            advance(_MOST_ROWS)
    advance(count % _MOST_ROWS)
    return Contents(table.name, count, digest.hexdigest())
