"""A trial of a database that was filled by copying: one new row in each table, taken back at once.

Rows that are equal on both sides do not say that another one can be added: a sequence, a right or a rule may be in the
way. Values are made from the declaration of each table, so that a new table is tried as well.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from segue.core.errors import StoreError, StoreTaken
from segue.storage.copying import COPIED_TABLES
from segue.storage.schema import IDENTITY, Column, Table
from segue.storage.sql import Executor, columns, placeholders

_VALUES = {"INTEGER": 0, "REAL": 0.0}
_ALLOWED = re.compile(r"IN \('(\w+)'")


class NotWritable(StoreError):
    def __init__(self, reason: object) -> None:
        super().__init__(f"All rows were copied, but no new row can be added to the copy, so it is not used: {reason}")


@contextmanager
def no_second_attempt() -> Iterator[None]:
    """A row that is in the way of a new one stays there: another attempt would only use up ids until one is free."""
    try:
        yield
    except StoreTaken as error:
        raise NotWritable(error) from error


def probe_writes(executor: Executor) -> int:
    """Add a row to each table and take all of them back; the number of tables. Raises when one cannot be added."""
    token = f"probe-{uuid.uuid4().hex}"
    executor.run("SAVEPOINT probe", {})
    for table in COPIED_TABLES:
        _probe(executor, table, token)
    executor.run("ROLLBACK TO SAVEPOINT probe", {})
    executor.run("RELEASE SAVEPOINT probe", {})
    return len(COPIED_TABLES)


def new_row(table: Table, token: str) -> dict[str, object]:
    """A row with no more than it needs; references lead to rows that were made with the same token."""
    return {column.name: _value(column, token) for column in table.columns if _is_needed(column)}


def insert_row(executor: Executor, table: Table, token: str) -> int | None:
    """Add such a row; the id that the database gave it, if it gives ids."""
    row = new_row(table, token)
    sql = f"INSERT INTO {table.name} ({columns(row)}) VALUES ({placeholders(row)})"
    if table.has_identity:
        return executor.insert(sql, row)
    executor.run(sql, row)
    return None


def _probe(executor: Executor, table: Table, token: str) -> None:
    highest = int(executor.rows(f"SELECT max(id) FROM {table.name}", {})[0][0] or 0) if table.has_identity else 0
    given = insert_row(executor, table, token)
    if given is not None and given <= highest:
        raise NotWritable(f"A new row of {table.name} would get the id {given}, and ids up to {highest} are used.")


def _is_needed(column: Column) -> bool:
    return "NOT NULL" in column.rule and "DEFAULT" not in column.rule and column.rule != IDENTITY


def _value(column: Column, token: str) -> object:
    allowed = _ALLOWED.search(column.rule)
    return allowed[1] if allowed else _VALUES.get(column.type, token)
