"""PostgreSQL through psycopg: a pool of connections, transactions that are one snapshot, and commits that are certain.

what returned is on disk        synchronous_commit as the server has it, and asked after when the answer was lost
two writers of one row          repeatable read: the later one is told, and runs again
somebody else's rows            not there: a transaction says whom it acts for before anything else
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import errors

from segue.core.errors import (
    ForeignDatabase,
    SchemaTooOld,
    StoreClosed,
    StoreConflict,
    StoreError,
    StoreFault,
    StoreForked,
    StoreReadOnly,
)
from segue.core.messages import Draft
from segue.core.moments import DAY
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.ports.store import Search
from segue.storage import guards
from segue.storage.copying import copy_rows, copy_rows_at_once
from segue.storage.ownership import check_age
from segue.storage.patience import PATIENCE, patiently
from segue.storage.postgres_address import place_of
from segue.storage.postgres_connection import PostgresConnection, our_errors
from segue.storage.postgres_locks import telling_of_locks
from segue.storage.postgres_schema import POLICIES, SCHEMA, WHOLE_VIEW, declare_all, missing_in, open_to_all
from segue.storage.postgres_search import FORGET_WORDS, PostgresSearch, words_of
from segue.storage.postgres_sequences import advance_sequences, lagging_sequences
from segue.storage.probing import no_second_attempt, probe_writes
from segue.storage.schema import SCHEMA_VERSION, SHARED_MIGRATIONS, TABLES, add_columns
from segue.storage.sql import Executor, LaggingSequence
from segue.storage.waiting import THE_SERVER

OLDEST_SERVER = 140_000
IDLE_CONNECTIONS = 8
AT_THE_DOOR = (0.2, 0.6)
"""Seconds between two attempts: a server that counts them must not shut us out."""
PATIENCE_AT_THE_DOOR = 5.0
"""Seconds for a server to come back; a person waits them too, when the address is wrong."""
_LONGEST_GONE = 7 * DAY  # for a writer that was not seen
_MAKING_TABLES = 0x5365_6775_65  # one process at a time
_MEMBERSHIP = """
    SELECT pg_has_role(current_user, oid, 'MEMBER'), pg_has_role(current_user, oid, 'USAGE')
    FROM pg_roles WHERE rolname = :role"""
"""Whether we may act as a role, and whether we have its rights even when we do not."""
_IS_OPEN = "SELECT count(*) = :tables FROM pg_policies WHERE schemaname = :schema AND policyname = 'everything'"


class PostgresEngine:
    """A database on a server."""

    index_follows = False
    """Messages are indexed in the transaction that stores them."""
    reads_beside_writer = True
    is_awaited = False
    is_near = is_quick = False

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = url
        self.place = place_of(url)
        self._is_read_only = read_only
        self._notices: list[str] = []
        self._unusable: Callable[[], StoreError] | None = None
        self._idle: list[PostgresConnection] = []
        self._whole_view: str | None = None
        self._pool = threading.Lock()
        guards.watch_for_fork(self)
        logging.getLogger("psycopg").setLevel(logging.ERROR)  # what fails is raised, and told once
        patiently(lambda _: self._open(), PATIENCE_AT_THE_DOOR, AT_THE_DOOR, THE_SERVER)

    @contextmanager
    def writing(self, patience: float, scope: Scope) -> Iterator[Executor]:
        """A transaction that changes the database; raises `StoreBusy` when it cannot be had or lost a race."""
        if self._is_read_only:
            raise StoreReadOnly(f"{self.place} was opened for reading only.")
        deadline = time.monotonic() + patience
        connection = self._begun(scope, patience)
        try:
            with our_errors(self.url), telling_of_locks(self.url, connection):
                yield connection
                number = connection.mark()
                self._commit(connection, number, deadline)
        finally:
            self._give_back(connection)

    @contextmanager
    def reading(self, scope: Scope) -> Iterator[Executor]:
        """A snapshot of the database."""
        connection = self._begun(scope, PATIENCE, read_only=True)
        try:
            with our_errors(self.url):
                yield connection
        finally:
            self._give_back(connection)

    def search(self, executor: Executor, scope: Scope) -> Search:
        return PostgresSearch(executor, scope)

    def columns_to_find_by(self, message: Draft) -> dict[str, str]:
        return words_of(message)

    @property
    def notices(self) -> list[str]:
        return self._notices

    def size(self) -> int:
        """Bytes that our tables and their indexes take."""
        sql = """
            SELECT COALESCE(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c
            WHERE c.relkind = 'r' AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema)"""
        with self.reading(OWNER_AT_CONSOLE) as connection:
            return int(connection.rows(sql, {"schema": SCHEMA})[0][0])

    def compact(self) -> None:
        """Make the room of what was deleted free for what comes."""
        with self.writing(PATIENCE, OWNER_AT_CONSOLE) as executor:
            executor.run("SET LOCAL statement_timeout = 0", {})
            executor.run(FORGET_WORDS, {})
        with self._alone() as connection:
            connection.run("SET statement_timeout = 0")
            for table in TABLES:
                connection.run(f"VACUUM (ANALYZE) {SCHEMA}.{table.name}")

    def copy_to(self, target: Path, advance: Callable[[int], object] = bool) -> None:
        """Write everything as it is at one moment to a new SQLite file, beside any writer."""
        from segue.storage.connection import leave_no_log
        from segue.storage.sqlite import SqliteEngine
        from segue.storage.store import SqlStore

        file = SqliteEngine(target)
        copy_rows(self, file, advance)
        with SqlStore(file) as store:
            store.index_all()
        leave_no_log(target)

    def replace_with(
        self, source: Path, advance: Callable[[int], object] = bool, under_lock: Callable[[], object] = bool
    ) -> None:
        """Become what a SQLite file holds, in one transaction.

        `under_lock` may still read what there was, and nobody can add to that any more.
        """
        is_kept = iter([False])

        def keep_once() -> None:
            if next(is_kept, None) is not None:
                under_lock()

        patiently(lambda seconds_left: self._replace_with(seconds_left, source, advance, keep_once))

    def _replace_with(
        self, patience: float, source: Path, advance: Callable[[int], object], under_lock: Callable[[], object]
    ) -> None:
        from segue.storage.sqlite import SqliteEngine

        file = SqliteEngine(source, read_only=True)
        try:
            with no_second_attempt(), self.writing(patience, OWNER_AT_CONSOLE) as executor:
                for limit in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    executor.run(f"SET LOCAL {limit} = 0", {})
                executor.run(f"LOCK TABLE {', '.join(table.name for table in TABLES)} IN EXCLUSIVE MODE", {})
                under_lock()
                copy_rows_at_once(file, self, executor, advance)
                probe_writes(executor)
        finally:
            file.close()

    def continue_numbers(self, executor: Executor) -> None:
        advance_sequences(executor)

    def lagging_sequences(self, executor: Executor) -> list[LaggingSequence]:
        return lagging_sequences(executor)

    def close(self) -> None:
        with self._pool:
            if self._unusable is None:
                self._unusable = StoreClosed
                for connection in self._idle:
                    connection.close()
                self._idle.clear()

    def abandon(self) -> list[object]:
        self._unusable = StoreForked
        return [connection.handle for connection in self._idle]

    # Committing

    def _commit(self, connection: PostgresConnection, number: int, deadline: float) -> None:
        try:
            connection.commit()
        except (errors.SerializationFailure, errors.DeadlockDetected):
            raise  # refused, which is an answer
        except psycopg.OperationalError:
            if self._has_committed(connection.writer, number, deadline):
                return
            if connection.handle.closed:
                raise StoreConflict(f"The connection to {self.place} was lost before the commit; try again.") from None
            raise

    def _has_committed(self, writer: str, number: int, deadline: float) -> bool:
        """Whether a commit that nobody answered has happened."""
        try:
            return patiently(lambda _: self._count(writer) >= number, max(deadline - time.monotonic(), 1.0))
        except StoreError as error:
            raise StoreFault(f"Whether {self.place} has kept the last change is not known: {error}") from error

    def _count(self, writer: str) -> int:
        """How many commits of a writer there are, once the last one has come to its end."""
        connection = self._begun(OWNER_AT_CONSOLE, patience=0)
        try:
            with our_errors(self.url):
                count = connection.marks_of(writer)
                connection.commit()
                return count
        finally:
            self._give_back(connection)

    # Connections

    def _begun(self, scope: Scope, patience: float, *, read_only: bool = False) -> PostgresConnection:
        return patiently(lambda _: self._try_to_begin(scope, read_only=read_only), patience, awaited=THE_SERVER)

    def _try_to_begin(self, scope: Scope, *, read_only: bool) -> PostgresConnection:
        connection = self._taken()
        try:
            with our_errors(self.url):
                connection.begin(scope, read_only=read_only)
        except BaseException:
            connection.close()  # one that was cut off while nobody used it
            raise
        return connection

    def _taken(self) -> PostgresConnection:
        if self._unusable is not None:
            raise self._unusable()
        with self._pool:
            if self._idle:
                return self._idle.pop()
        return self._connected()

    def _connected(self) -> PostgresConnection:
        connection = PostgresConnection(self.url, writer=uuid.uuid4().hex)
        connection.whole_view = self._whole_view
        return connection

    def _give_back(self, connection: PostgresConnection) -> None:
        connection.roll_back()
        with self._pool:
            if self._unusable is None and connection.is_usable and len(self._idle) < IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    @contextmanager
    def _alone(self) -> Iterator[PostgresConnection]:
        """A connection outside any transaction, for upkeep."""
        connection = self._connected()
        try:
            with our_errors(self.url):
                yield connection
        finally:
            connection.close()

    # Opening

    def _open(self) -> None:
        connection = self._connected()
        try:
            with our_errors(self.url), telling_of_locks(self.url, connection):
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)

    def _prepare(self, connection: PostgresConnection) -> None:
        connection.begin(OWNER_AT_CONSOLE, read_only=True)
        self._check_server(connection)
        is_complete = self._version(connection) == SCHEMA_VERSION and not missing_in(connection)
        connection.commit()
        if not is_complete:
            if self._is_read_only:
                raise SchemaTooOld(f"{self.place} is not ready for this Segue; open it once for writing to make it so.")
            self._make_tables(connection)
        self._find_whole_view(connection)
        if not self._is_read_only:
            connection.begin(OWNER_AT_CONSOLE)
            connection.forget_writers(_LONGEST_GONE)
            connection.commit()

    def _check_server(self, connection: PostgresConnection) -> None:
        if connection.handle.info.server_version < OLDEST_SERVER:
            raise StoreError(
                f"{self.place} runs PostgreSQL {connection.handle.info.server_version // 10_000}; use 14 or newer."
            )
        sql = """
            SELECT current_setting('server_encoding'), rolsuper OR rolbypassrls
            FROM pg_roles WHERE rolname = current_user"""
        encoding, is_privileged = connection.rows(sql)[0]
        if encoding != "UTF8":
            raise StoreError(f"{self.place} is in {encoding}; Segue needs a database in UTF8.")
        if is_privileged:
            self._note(
                f"Segue uses {self.place} as a role that may see everything; use a plain one, so that the server keeps"
                " people apart as well."
            )

    def _note(self, sentence: str) -> None:
        """The first thing to know is enough: it is said each time that somebody looks."""
        if not self._notices:
            self._notices.append(sentence)

    def _find_whole_view(self, connection: PostgresConnection) -> None:
        """Act as the role that sees everything, if there is one and we may; tables older than it are opened to it."""
        membership = connection.rows(_MEMBERSHIP, {"role": WHOLE_VIEW})
        if not membership or not membership[0][0]:
            self._note(f"Searching {self.place} is slow without the role {WHOLE_VIEW}.")
            return
        if membership[0][1]:
            self._note(
                f"The role that Segue uses in {self.place} always has the rights of {WHOLE_VIEW}; ALTER ROLE …"
                " NOINHERIT and a new GRANT let the server keep people apart."
            )
            return
        if not connection.rows(_IS_OPEN, {"schema": SCHEMA, "tables": len(POLICIES)})[0][0]:
            if self._is_read_only:
                return
            connection.begin(OWNER_AT_CONSOLE, isolation="READ COMMITTED")
            connection.rows(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})")
            open_to_all(connection)
            connection.commit()
        self._whole_view = connection.whole_view = WHOLE_VIEW

    def _version(self, connection: PostgresConnection) -> int:
        """The schema version, 0 when there is none yet; anything else is refused."""
        if not connection.columns_of("schema_version"):
            if connection.columns_of("sessions"):
                raise ForeignDatabase(
                    f"The schema {SCHEMA} of {self.place} is another program's; choose another database."
                )
            return 0
        rows = connection.rows("SELECT version FROM schema_version")
        version = int(rows[0][0]) if rows else 0
        check_age(version, SCHEMA_VERSION, self.place)
        return version

    def _make_tables(self, connection: PostgresConnection) -> None:
        """One process at a time; whoever waited sees what the first one made."""
        connection.begin(OWNER_AT_CONSOLE, isolation="READ COMMITTED")
        try:
            for limit in ("statement_timeout", "lock_timeout"):
                connection.run(f"SET LOCAL {limit} = 0")
            connection.rows(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})")
            version = self._version(connection)
            if version >= SCHEMA_VERSION:
                add_columns(connection, missing_in(connection))
                connection.commit()
                return
            declare_all(connection)
            for step, migration in sorted(SHARED_MIGRATIONS.items()):
                if 0 < version < step:  # a new database has nothing to be changed
                    migration(connection)
            connection.run("DELETE FROM schema_version")
            connection.run("INSERT INTO schema_version (version) VALUES (:version)", {"version": SCHEMA_VERSION})
            connection.commit()
        except BaseException:
            connection.roll_back()
            raise
