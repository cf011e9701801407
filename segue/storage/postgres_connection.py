"""One connection to a PostgreSQL server: our statements in its spelling, its values and its errors in ours."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from segue.core.errors import (
    Invalid,
    StoreBusy,
    StoreConflict,
    StoreCorrupt,
    StoreError,
    StoreFault,
    StoreFull,
    StoreReadOnly,
)
from segue.core.scope import Scope
from segue.core.text import storable
from segue.storage.meta import drawer_of
from segue.storage.postgres_schema import SCHEMA
from segue.storage.sql import Executor, Parameters, Row

SETTINGS = {
    "application_name": "segue",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
"""How a connection is made, where its address does not say otherwise."""

_ON_THE_SERVER = (
    f"SET search_path = {SCHEMA}; SET timezone = 'UTC'; SET default_transaction_isolation = 'repeatable read';"
    " SET statement_timeout = '60s'; SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '10min'"
)
_ROWS_AT_A_TIME = 500
_NAMED = re.compile(r"'(?:[^']|'')*'|::|:([a-z_]\w*)|%")


class PostgresConnection(Executor):
    """A connection with our settings. Reads and writes only inside `transaction`."""

    def __init__(self, url: str, writer: str) -> None:
        self.writer = writer
        """The name under which this connection counts its commits."""
        with our_errors(url):
            given = psycopg.conninfo.conninfo_to_dict(url)
            self.handle = psycopg.connect(**SETTINGS | given, autocommit=True)  # type: ignore[arg-type]
            self.handle.adapters.register_loader("numeric", _Number)
            self.handle.execute(_ON_THE_SERVER)
        self._cursors = count()

    def rows(self, sql: str, parameters: Parameters = {}) -> list[Row]:  # noqa: B006
        return self.handle.execute(translated(sql), _storable(parameters)).fetchall()

    def stream(self, sql: str, parameters: Parameters = {}) -> Iterator[Row]:  # noqa: B006
        """Rows a few hundred at a time, while other statements may run."""
        with self.handle.cursor(f"rows_{next(self._cursors)}") as cursor:
            cursor.itersize = _ROWS_AT_A_TIME
            cursor.execute(translated(sql), _storable(parameters))
            yield from cursor

    def run(self, sql: str, parameters: Parameters = {}) -> int:  # noqa: B006
        return self.handle.execute(translated(sql), _storable(parameters)).rowcount

    def run_many(self, sql: str, many: Sequence[Parameters]) -> None:
        with self.handle.cursor() as cursor:
            cursor.executemany(translated(sql), many)

    def insert(self, sql: str, parameters: Parameters) -> int:
        return int(self.rows(f"{sql} RETURNING id", parameters)[0][0])

    def now(self) -> float:
        return float(self.rows("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def columns_of(self, table: str) -> set[str]:
        sql = """
            SELECT column_name FROM information_schema.columns
            WHERE table_schema = current_schema() AND table_name = :table"""
        return {str(row[0]) for row in self.rows(sql, {"table": table})}

    def begin(self, scope: Scope, *, read_only: bool = False) -> None:
        """Begin a transaction in which only what a scope may see is there, whatever is asked."""
        self.handle.execute(f"BEGIN {'READ ONLY' if read_only else 'READ WRITE'}; {_as(scope)}")

    def mark(self) -> int:
        """Count the commit that follows; the number it has."""
        sql = """
            INSERT INTO writers (id, number, seen_at) VALUES (:id, 1, :now)
            ON CONFLICT (id) DO UPDATE SET number = writers.number + 1, seen_at = excluded.seen_at
            RETURNING number"""
        return int(self.rows(sql, {"id": self.writer, "now": time.time()})[0][0])

    def marks_of(self, writer: str) -> int:
        """How many commits a writer has counted; waits for one that is still on its way."""
        sql = "INSERT INTO writers (id, number, seen_at) VALUES (:id, 0, :now) ON CONFLICT (id) DO NOTHING"
        self.run(sql, {"id": writer, "now": time.time()})
        return int(self.rows("SELECT number FROM writers WHERE id = :id FOR UPDATE", {"id": writer})[0][0])

    def commit(self) -> None:
        self.handle.execute("COMMIT")

    def roll_back(self) -> None:
        """End what is left of a transaction, if anything is."""
        if self.handle.info.transaction_status is not TransactionStatus.IDLE:
            with suppress(psycopg.Error):  # the first error is the one to hear about
                self.handle.execute("ROLLBACK")

    @property
    def is_usable(self) -> bool:
        return not self.handle.closed and self.handle.info.transaction_status is TransactionStatus.IDLE

    def close(self) -> None:
        with suppress(psycopg.Error):
            self.handle.close()


class _Number(Loader):
    """Sums of whole numbers are whole numbers."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return int(text) if text.lstrip("-").isdigit() else float(text)


@lru_cache(maxsize=1000)
def translated(sql: str) -> str:
    """Our `:named` parameters as the driver writes them; quoted text and casts stay as they are."""

    def spelled(found: re.Match[str]) -> str:
        return f"%({found[1]})s" if found[1] else found[0].replace("%", "%%")

    return _NAMED.sub(spelled, sql)


def _storable(parameters: Parameters) -> Parameters:
    """What is looked for may hold a NUL, which nothing that is stored does."""
    if not any(isinstance(value, str) and "\0" in value for value in parameters.values()):
        return parameters
    return {name: storable(value) if isinstance(value, str) else value for name, value in parameters.items()}


def _as(scope: Scope) -> str:
    settings = {
        "segue.sees_all": "yes" if scope.sees_all else "",
        "segue.principal": scope.principal,
        "segue.room": scope.room or "",
        "segue.drawer": drawer_of(scope),
    }
    return "; ".join(f"SET LOCAL {name} = {_quoted(value)}" for name, value in settings.items())


def _quoted(text: str) -> str:
    """A text as a literal, whatever is in it."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "") + "'"


def place_of(url: str) -> str:
    """Where a database is, without whatever is secret in its address."""
    given: Mapping[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    host = given.get("host", "this machine")
    return f"{given.get('dbname', given.get('user', ''))} on {host}" + (f":{given['port']}" if "port" in given else "")


@contextmanager
def our_errors(url: str) -> Iterator[None]:
    """What the server says, in our words."""
    try:
        yield
    except psycopg.Error as error:
        raise _ours(error, place_of(url)) from error
    except UnicodeEncodeError as error:
        raise Invalid(f"A value cannot be stored: {error}.") from error


def _ours(error: psycopg.Error, place: str) -> StoreError | Invalid:
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    match error:
        case errors.SerializationFailure() | errors.DeadlockDetected() | errors.UniqueViolation():
            return StoreConflict(f"Others changed the same rows of {place} at the same time; try again.")
        case errors.LockNotAvailable() | errors.QueryCanceled():
            return StoreBusy(f"{place} took too long; try again, or look for what holds it.")
        case errors.DiskFull():
            return StoreFull(f"The disk of {place} is full: nothing was written. Free some space and try again.")
        case errors.ReadOnlySqlTransaction():
            return StoreReadOnly(f"{place} cannot be written: it is read-only. Nothing was changed.")
        case errors.InsufficientPrivilege():
            return StoreError(f"The role that Segue uses is not allowed to do this in {place}: {said}.")
        case errors.DataCorrupted() | errors.IndexCorrupted():
            return StoreCorrupt(f"{place} is damaged ({said}); restore the last backup.")
        case errors.IoError():
            return StoreFault(f"The disk of {place} failed ({said}); what had been committed is kept.")
        case psycopg.DataError():
            return Invalid(f"A value cannot be stored: {said}.")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreBusy(f"{place} cannot be reached: {said}.")
    return StoreError(f"The database {place} refused: {said}.")
