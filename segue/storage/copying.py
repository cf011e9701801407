"""All rows of one database in another, a piece at a time.

A piece that is equal on both sides is left alone, so a copy that was cut off goes on where it was, and one that is made
again brings only what has changed. Nothing is remembered in between: the rows themselves say how far it got.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, Protocol

from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.storage.patience import PATIENCE, patiently
from segue.storage.schema import (
    LANES,
    MESSAGES,
    RESETS,
    SESSION_TAGS,
    SESSIONS,
    STATE_META,
    STEPS,
    TRASH,
    TURNS,
    Table,
)
from segue.storage.sql import Condition, Executor, Row, columns, placeholders

COPYING = "copying:from"
"""Where a database says that it is becoming a copy, and of what."""

_KEYS = {
    SESSIONS: ("id",),
    SESSION_TAGS: ("session_id", "tag"),
    MESSAGES: ("id",),
    LANES: ("key",),
    RESETS: ("id",),
    TRASH: ("id",),
    TURNS: ("id",),
    STEPS: ("turn_id", "number"),
    STATE_META: ("key",),
}
_OWN_FACTS = ("search:", "copying:")  # of a database itself, not of what it holds
_MOST_ROWS = 500
_MOST_CHARACTERS = 4_000_000

Advance = Callable[[int], object]
Key = tuple[Any, ...]


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
    for table in _KEYS:
        copier = _Copier(table, target)
        after: Key | None = None
        for piece in _pieces(_all_rows(source, table)):
            upto = copier.key_of(piece[-1])
            work(partial(copier.put, piece=piece, after=after, upto=upto))
            after = upto
            advance(len(piece))
        work(partial(copier.put, piece=[], after=after, upto=None))
    work(target.continue_numbers)


class _Copier:
    """Puts pieces of a table where they belong."""

    def __init__(self, table: Table, target: Copyable) -> None:
        self._table = table
        self._target = target
        self._names = stored_columns(table)
        self._key = _KEYS[table]
        self._places = [self._names.index(name) for name in self._key]

    def key_of(self, row: Row) -> Key:
        return tuple(row[place] for place in self._places)

    def put(self, executor: Executor, *, piece: list[Row], after: Key | None, upto: Key | None) -> None:
        """Let the rows between two keys be exactly these."""
        there = {self.key_of(row): row for row in self._rows_between(executor, after, upto)}
        new = [row for row in piece if there.get(self.key_of(row)) != row]
        gone = there.keys() - {self.key_of(row) for row in piece}
        for key in gone:
            where = " AND ".join(f"{name} = :{name}" for name in self._key)
            executor.run(f"DELETE FROM {self._table.name} WHERE {where}", dict(zip(self._key, key, strict=True)))
        if new:
            values = [self._values(row) for row in new]
            executor.run_many(_upsert(self._table.name, tuple(values[0]), self._key), values)

    def _rows_between(self, executor: Executor, after: Key | None, upto: Key | None) -> Iterator[Row]:
        where = _copied(self._table)
        for sign, bound, prefix in ((">", after, "after"), ("<=", upto, "upto")):
            if bound is not None:
                names = {f"{prefix}_{name}": value for name, value in zip(self._key, bound, strict=True)}
                where.add(f"({columns(self._key)}) {sign} ({placeholders(names)})", **names)
        sql = f"SELECT {columns(self._names)} FROM {self._table.name} WHERE {where.sql}"
        return executor.stream(sql, where.parameters)

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
