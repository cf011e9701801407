"""A database file looked over without being changed: is every page sound, is every table and index there?"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import apsw

from segue.storage.connection import SqliteConnection
from segue.storage.schema import INDEXES, SCHEMA_VERSION, TABLES
from segue.storage.search_index import TABLE as SEARCH_INDEX

_MOST_COMPLAINTS = 100
_NAMED_INDEX = re.compile(r"(?:from|in|of) index (\S+)$")
_TREE = re.compile(r"^Tree (\d+) ")
_PAGE = re.compile(
    r"Tree |Page |Freelist|Outstanding|Failed|Extends|.*malformed|.*never used|.*freelist", re.IGNORECASE
)
_INDEX_NAME = re.compile(r"INDEX IF NOT EXISTS (\w+) ")


class Damage(StrEnum):
    """What is damaged, which decides how it can be mended."""

    INDEX = "index"
    PAGE = "page"
    ROW = "row"


class Complaint(NamedTuple):
    """One thing that SQLite says about a file."""

    damage: Damage
    where: str
    says: str


class Gap(NamedTuple):
    """Something that the program expects in the file and does not find; or finds otherwise."""

    what: str
    wrong_index: str | None = None


class Counts(NamedTuple):
    sessions: int
    messages: int


def complaints(connection: SqliteConnection) -> list[Complaint]:
    """Every page and every index read once. Nothing means that the file is sound.

    What the search index says of itself is no concern of the messages, and left out.
    """
    lines: list[str] = []
    try:
        roots = {int(root): str(name) for name, root in connection.rows(_INDEX_ROOTS)}
        lines += _checked(connection)
    except apsw.CorruptError as error:
        return [Complaint(Damage.PAGE, "", line) for line in [*lines, str(error)]]
    split = [line for text in lines for line in _split(text) if line != "ok" and SEARCH_INDEX not in line]
    return [_complaint(line, roots) for line in split]


def counts(connection: SqliteConnection) -> Counts:
    """How much is in a file."""
    return Counts(*connection.rows("SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages)")[0])


def gaps(connection: SqliteConnection) -> list[Gap]:
    """What a change of the schema that was cut off, or somebody's hands, left undone."""
    return [*_missing_columns(connection), *_wrong_indexes(connection), *_wrong_version(connection)]


def _checked(connection: SqliteConnection) -> Iterator[str]:
    try:
        rows = connection.rows(f"PRAGMA integrity_check({_MOST_COMPLAINTS})")
    except (apsw.NoMemError, apsw.SQLError):  # a search index can say such nonsense that nothing can be asked of it
        rows = [row for table in TABLES for row in connection.rows(f"PRAGMA integrity_check({table.name})")]
    return (str(row[0]) for row in rows)


_INDEX_ROOTS = "SELECT name, rootpage FROM sqlite_schema WHERE type = 'index'"


def _split(text: str) -> list[str]:
    """One row of the check may hold several lines, under a heading that says nothing."""
    return [line for line in text.splitlines() if line and not line.startswith("*** in database")]


def _complaint(line: str, indexes: dict[int, str]) -> Complaint:
    named, tree = _NAMED_INDEX.search(line), _TREE.match(line)
    if named:
        return Complaint(Damage.INDEX, named[1], line)
    if tree and int(tree[1]) in indexes:
        return Complaint(Damage.INDEX, indexes[int(tree[1])], line)
    return Complaint(Damage.PAGE if _PAGE.match(line) else Damage.ROW, "", line)


def _missing_columns(connection: SqliteConnection) -> Iterator[Gap]:
    for table in TABLES:
        existing = connection.columns_of(table.name)
        if not existing:
            yield Gap(f"the table {table.name}")
        else:
            wanted = [column.name for column in table.columns if column.name not in existing]
            yield from (Gap(f"the column {table.name}.{name}") for name in wanted)


def _wrong_indexes(connection: SqliteConnection) -> Iterator[Gap]:
    rows = connection.rows("SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    existing = {str(name): str(sql) for name, sql in rows}
    for wanted in INDEXES:
        name = _INDEX_NAME.findall(wanted)[0]
        if existing.get(name) != wanted.replace(" IF NOT EXISTS", ""):
            yield Gap(f"the index {name}", wrong_index=name)


def versions(connection: SqliteConnection) -> list[int]:
    """Which version a file says that it is of; exactly one, if all is well."""
    if not connection.columns_of("schema_version"):
        return []
    return [int(row[0]) for row in connection.rows("SELECT version FROM schema_version")]


def _wrong_version(connection: SqliteConnection) -> Iterator[Gap]:
    if versions(connection) != [SCHEMA_VERSION]:
        yield Gap("the schema version")
