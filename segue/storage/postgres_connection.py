"""One connection to a PostgreSQL server: our statements in its spelling, its values and its errors in ours."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import count

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
    StoreTaken,
)
from segue.core.scope import Scope
from segue.core.text import storable
from segue.storage.meta import drawer_of
from segue.storage.postgres_address import parsed, place_of
from segue.storage.postgres_schema import SCHEMA
from segue.storage.sql import Executor, Parameters, Row

SETTINGS = {
    "application_name": "segue",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""How a connection is made, where its address does not say otherwise."""

_IN_A_TRANSACTION = (
    f"SET LOCAL search_path = {SCHEMA}, pg_temp; SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '20s';"
    " SET LOCAL idle_in_transaction_session_timeout = '10min'"
)
"""Said in every transaction: between the server and us may be a pool that gives each one another connection."""
_ROWS_AT_A_TIME = 500
_NOW = "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
_NAMED = re.compile(r"'(?:[^']|'')*'|::|:([a-z_]\w*)|%")


class PostgresConnection(Executor):
    """A connection with our settings, on which transactions begin and end."""

    def __init__(self, url: str, writer: str) -> None:
        self.writer = writer
        """The name under which this connection counts its commits."""
        with our_errors(url):
            self.handle = psycopg.connect(**SETTINGS | parsed(url), autocommit=True)
            self.handle.adapters.register_loader("numeric", _Number)
        self.whole_view: str | None = None
        """The role to act as for whoever may see everything."""
        self._cursors = count()
        self._transactions = 0

    def rows(self, sql: str, parameters: Parameters = {}) -> list[Row]:  # noqa: B006
        return self.handle.execute(translated(sql), _storable(parameters)).fetchall()

    def stream(self, sql: str, parameters: Parameters = {}) -> Iterator[Row]:  # noqa: B006
        """Rows a few hundred at a time, while other statements may run."""
        name, transaction = f"rows_{next(self._cursors)}", self._transactions
        self.handle.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {translated(sql)}", _storable(parameters))
        try:
            while rows := self.handle.execute(f"FETCH {_ROWS_AT_A_TIME} FROM {name}").fetchall():
                yield from rows
        finally:
            if transaction == self._transactions and self.handle.info.transaction_status is TransactionStatus.INTRANS:
                self.handle.execute(f"CLOSE {name}")

    def run(self, sql: str, parameters: Parameters = {}) -> int:  # noqa: B006
        return self.handle.execute(translated(sql), _storable(parameters)).rowcount

    def run_many(self, sql: str, many: Sequence[Parameters]) -> None:
        with self.handle.cursor() as cursor:
            cursor.executemany(translated(sql), many)

    def insert(self, sql: str, parameters: Parameters) -> int:
        return int(self.rows(f"{sql} RETURNING id", parameters)[0][0])

    def now(self) -> float:
        return float(self.rows(f"SELECT {_NOW}")[0][0])

    def has_schema(self, name: str) -> bool:
        return self.rows("SELECT to_regnamespace(:name) IS NOT NULL", {"name": name})[0][0] is True

    def columns_of(self, table: str) -> set[str]:
        sql = """
            SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid = (
                SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = :schema AND c.relname = :table)"""
        return {str(row[0]) for row in self.rows(sql, {"schema": SCHEMA, "table": table})}

    def columns_by_table(self) -> dict[str, set[str]]:
        sql = """
            SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname = :schema AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"""
        found: dict[str, set[str]] = {}
        for table, column in self.rows(sql, {"schema": SCHEMA}):
            found.setdefault(str(table), set()).add(str(column))
        return found

    def begin(self, scope: Scope, *, read_only: bool = False, isolation: str = "REPEATABLE READ") -> None:
        """Begin a transaction in which only what a scope may see is there, whatever is asked."""
        self._transactions += 1
        mode = "READ ONLY" if read_only else "READ WRITE"
        role = f"; SET LOCAL ROLE {self.whole_view}" if self.whole_view and scope.sees_all else ""
        self.handle.execute(f"BEGIN ISOLATION LEVEL {isolation} {mode}; {_IN_A_TRANSACTION}; {_as(scope)}{role}")

    def mark(self) -> int:
        """Count the commit that follows; the number it has."""
        sql = f"""
            INSERT INTO writers (id, number, seen_at) VALUES (:id, 1, {_NOW})
            ON CONFLICT (id) DO UPDATE SET number = writers.number + 1, seen_at = excluded.seen_at
            RETURNING number"""
        return int(self.rows(sql, {"id": self.writer})[0][0])

    def forget_writers(self, seconds: float) -> None:
        """Those that were not seen for so long."""
        self.run(f"DELETE FROM writers WHERE seen_at < {_NOW} - :seconds", {"seconds": seconds})

    def marks_of(self, writer: str) -> int:
        """How many commits a writer has counted; waits for one that is still on its way."""
        sql = f"INSERT INTO writers (id, number, seen_at) VALUES (:id, 0, {_NOW}) ON CONFLICT (id) DO NOTHING"
        self.run(sql, {"id": writer})
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
        case errors.SerializationFailure() | errors.DeadlockDetected():
            return StoreConflict(f"Others changed the same rows of {place} at the same time; try again.")
        case errors.UniqueViolation():
            return StoreTaken(f"The database {place} has another row in its place: {said}.")
        case errors.ProgramLimitExceeded():
            return Invalid(f"A value is too large for {place}: {said}.")
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
            return _refused(said, place) or StoreBusy(f"The database {place} cannot be reached: {_short(said)}.")
    return StoreError(f"The database {place} refused: {said}.")


_REFUSALS = {
    "password authentication failed": "refuses the password; put the right one into ~/.pgpass or PGPASSWORD",
    "no password supplied": "wants a password; put it into ~/.pgpass or PGPASSWORD",
    "no pg_hba.conf entry": "lets nobody in from here under this name; its pg_hba.conf decides",
    "is not permitted to log in": "does not let this role log in; ALTER ROLE … LOGIN allows it",
    "server does not support SSL": "has no TLS; leave sslmode out of the address, or switch it on there",
    "certificate verify failed": "shows a certificate that is not trusted here; see sslrootcert",
}
"""What waiting does not change, and what does."""


def _refused(said: str, place: str) -> StoreError | None:
    for words, advice in _REFUSALS.items():
        if words in said:
            return StoreError(f"The server of {place} {advice}.")
    if "does not exist" in said and "FATAL" in said:
        what = said.partition("FATAL:")[2].strip()
        return StoreError(f"The server of {place} says: {what}; docs/postgres.md says how to make it.")
    return None


def _short(said: str) -> str:
    """The driver repeats the address and the word failed; what is left is why."""
    return said.rpartition("failed: ")[2].strip()
