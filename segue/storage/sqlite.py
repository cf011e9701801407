"""SQLite through APSW: one connection that writes, a few that read, and the settings that make a commit durable.

what returned is on disk        WAL, synchronous=FULL (fullfsync on macOS), no memory mapping
a lock is seen at the start     BEGIN IMMEDIATE
damage stops writing            a corrupt page ends this handle; reading what can be read goes on
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from segue.core.errors import (
    IndexDamaged,
    SchemaTooOld,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreForked,
    StoreReadOnly,
    StoreReplaced,
)
from segue.core.messages import Draft
from segue.core.scope import OWNER_AT_CONSOLE, Scope
from segue.ports.store import Search
from segue.storage import guards
from segue.storage.checkpoints import Checkpoints
from segue.storage.connection import READING, WRITING, SqliteConnection, sqlite_version
from segue.storage.faults import our_errors, translated
from segue.storage.ownership import APPLICATION_ID, check_age, is_ours
from segue.storage.patience import MOMENT, patiently
from segue.storage.schema import MIGRATIONS, SCHEMA_VERSION, TABLES, Column, add_columns, declare, missing_columns
from segue.storage.search_index import create_index, forget_deleted
from segue.storage.sql import Executor, LaggingSequence
from segue.storage.turnstile import Turnstile
from segue.storage.waiting import A_READER

OLDEST_SAFE_SQLITE = (3, 51, 3)  # before it, a race between a checkpoint and a writer could corrupt the file
QUICK_SECONDS = 0.005
"""As long may a commit take as a rule, so that somebody who has other things to do makes it themselves."""
IDLE_READERS = 8
PATIENCE_WITH_READERS = 5.0


class SqliteEngine:
    """A database file: opened carefully, handed out one transaction at a time."""

    index_follows = True

    @property
    def is_near(self) -> bool:
        return self.reads_beside_writer

    @property
    def reads_beside_writer(self) -> bool:
        return not self._notices  # which speak of a file system where there can be no log

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if tuple(map(int, sqlite_version().split("."))) < OLDEST_SAFE_SQLITE:
            raise StoreError(f"SQLite {sqlite_version()} can corrupt its files; install apsw 3.51.3 or newer.")
        self.path = path.absolute()
        self._notices: list[str] = []
        self._is_immutable = False
        self._unusable: Callable[[], StoreError] | None = None
        self._damage: str | None = None
        self._replaced: Path | None = None
        """The file that was replaced under this one."""
        self._checkpoints = Checkpoints(self.path, self._note_damage)
        self._writing = Turnstile()
        self._readers: list[SqliteConnection] = []
        self._pool = threading.Lock()
        if guards.is_on_network(self.path.parent):
            self._notices.append(f"{self.path} is on a network file system: one process at a time, and slower.")
        self._writer: SqliteConnection | None = None
        if read_only:
            self._readers.append(self._open_reading())
        else:
            self._writer = patiently(lambda _: self._open_writing())
            self._checkpoints.watch(self._writer)
        self._files = guards.OpenedFiles(self.path, has_log=self.reads_beside_writer)
        guards.watch_for_fork(self)
        guards.forbid_opening(self.path)

    @property
    def is_awaited(self) -> bool:
        return self._writing.is_awaited

    @property
    def is_quick(self) -> bool:
        return self._writer is not None and self._writer.commit_seconds < QUICK_SECONDS

    @contextmanager
    def writing(self, patience: float, _scope: Scope = OWNER_AT_CONSOLE) -> Iterator[Executor]:
        """A transaction that changes the database; raises `StoreBusy` when others hold it."""
        writer = self._usable_writer()
        if self._damage:
            raise StoreCorrupt(self._damage)
        if not self._writing.acquire(max(patience, 0)):
            raise StoreBusy(f"Another thread has been writing to {self.path} for too long.")
        try:
            with self._our_errors(), writer.transaction(WRITING, is_patient=patience > MOMENT):
                yield writer
            self._check_files()
            if self.reads_beside_writer:
                self._checkpoints.count(writer)
        finally:
            self._writing.release()

    @contextmanager
    def reading(self, _scope: Scope = OWNER_AT_CONSOLE) -> Iterator[SqliteConnection]:
        """A snapshot of the database."""
        self._check()
        with self._our_errors():
            with self._pool:
                reader = self._readers.pop() if self._readers else None
            reader = reader or SqliteConnection(self.path, writes=False, is_immutable=self._is_immutable)
            try:
                with reader.transaction(READING):
                    yield reader
            finally:
                self._give_back(reader)

    def search(self, executor: Executor, scope: Scope) -> Search:
        from segue.storage.sqlite_search import SqliteSearch  # slow to load, and a list needs none

        return SqliteSearch(executor, scope)

    def columns_to_find_by(self, _: Draft) -> dict[str, str]:
        return {}

    def continue_numbers(self, _: Executor) -> None:
        """SQLite does by itself."""

    def lagging_sequences(self, _: Executor) -> list[LaggingSequence]:
        return []

    @contextmanager
    def alone(self) -> Iterator[SqliteConnection]:
        """The writing connection outside any transaction, for upkeep such as VACUUM."""
        writer = self._usable_writer()
        with self._writing, self._our_errors():
            writer.set_patience(is_patient=True)
            yield writer

    @property
    def notices(self) -> list[str]:
        return self._notices

    def size(self) -> int:
        """Bytes on disk, log included."""
        files = [self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())

    def compact(self) -> None:
        """Rewrite the file without free pages, and empty the log, so that nothing deleted is left in any byte."""
        patiently(self._rewrite)
        self.empty_log()

    def copy_to(self, target: Path, advance: Callable[[int], object] = bool) -> None:
        """Write the database as it is at one moment to a new file, beside any writer."""
        with self.reading() as source, self._our_errors():
            source.value("PRAGMA schema_version")  # the moment is now, whatever others write from here on
            copy = SqliteConnection.made(target)
            try:
                copy.copy_from(source, advance)
                copy.value("PRAGMA journal_mode=delete")  # one file, with no log beside it
            finally:
                copy.handle.close()

    def replace_with(
        self, source: Path, advance: Callable[[int], object] = bool, under_lock: Callable[[], object] = bool
    ) -> None:
        """Become what another file is, in one transaction that every process sees whole or not at all.

        `under_lock` may still read what there was, and nobody can add to that any more.
        """
        patiently(lambda _: self._replace_with(source, advance, under_lock))
        self._damage = None

    def _replace_with(self, source: Path, advance: Callable[[int], object], under_lock: Callable[[], object]) -> None:
        with self.alone() as writer:
            new = SqliteConnection(source, writes=False)
            try:
                writer.copy_from(new, advance, under_lock)
            finally:
                new.handle.close()

    def _rewrite(self, _seconds_left: float) -> None:
        with self.alone() as connection:
            with suppress(IndexDamaged), connection.transaction(WRITING):
                forget_deleted(connection)
            connection.run("VACUUM")

    def empty_log(self) -> None:
        """Take the log into the file, and leave none of it."""
        patiently(self._empty_log, PATIENCE_WITH_READERS, awaited=A_READER)

    def _empty_log(self, _seconds_left: float) -> None:
        with self.alone() as connection:
            busy, *_ = connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if busy:
            raise StoreBusy(
                "Another process is reading, so traces of what was deleted are left in the log;"
                " `segue sessions trash empty` removes them later."
            )

    def close(self) -> None:
        with self._writing, self._pool:
            if self._unusable is None:
                self._unusable = StoreClosed
                self._checkpoints.close()
                for connection in self._connections():
                    connection.handle.close()
                self._readers.clear()
                guards.allow_opening(self.path)

    def abandon(self) -> list[object]:
        self._unusable = StoreForked
        return [connection.handle for connection in [*self._connections(), *self._checkpoints.connections]]

    def _connections(self) -> list[SqliteConnection]:
        return self._readers if self._writer is None else [*self._readers, self._writer]

    def _usable_writer(self) -> SqliteConnection:
        self._check()
        if self._writer is None:
            raise StoreReadOnly(f"{self.path} was opened for reading only.")
        return self._writer

    def _check(self) -> None:
        if self._unusable is not None:
            raise self._unusable()
        if self._replaced is not None:
            raise StoreReplaced(
                f"{self._replaced} was replaced or removed while Segue was using it, so the last changes may be lost,"
                " and nothing more is stored. Put the file back, and start Segue again."
            )

    def _check_files(self) -> None:
        """Acknowledge nothing that was written to a file which nobody can find again."""
        if (replaced := self._files.find_replaced()) is not None:
            self._replaced = replaced
            self._check()

    def _give_back(self, reader: SqliteConnection) -> None:
        with self._pool:
            if self._unusable is None and len(self._readers) < IDLE_READERS and not reader.handle.in_transaction:
                self._readers.append(reader)
                return
        reader.handle.close()

    def _note_damage(self, error: apsw.CorruptError) -> None:
        self._damage = str(translated(error, self.path))

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """The driver's errors in our words; damage is remembered."""
        try:
            with our_errors(self.path):
                yield
        except StoreCorrupt as damage:
            self._damage = str(damage)
            raise

    # Opening

    def _open_reading(self) -> SqliteConnection:
        if not self.path.exists():
            raise StoreReadOnly(f"There is no database at {self.path} yet, and it was to be opened for reading only.")
        guards.check_file(self.path)
        with self._our_errors():
            try:
                connection = SqliteConnection(self.path, writes=False)
                version = self._version(connection)
            except (apsw.CantOpenError, apsw.ReadOnlyError):
                # A disk that allows no writing has no place for the shared memory of the log.
                log = self.path.with_name(self.path.name + "-wal")
                if log.exists() and log.stat().st_size:
                    sentence = f"The latest messages of {self.path} are in its log, which cannot be read on this disk."
                    raise StoreReadOnly(f"{sentence} Copy the folder to another one first.") from None
                self._is_immutable = True
                connection = SqliteConnection(self.path, writes=False, is_immutable=True)
                version = self._version(connection)
            is_complete = version == SCHEMA_VERSION and not self._missing_columns(connection)
        if not is_complete:
            raise SchemaTooOld(f"{self.path} is from an older Segue; open it once for writing to bring it up to date.")
        return connection

    def _open_writing(self) -> SqliteConnection:
        try:
            guards.make_folders(self.path.parent)
            guards.make_private_file(self.path)
        except OSError as error:
            raise StoreReadOnly(f"{self.path} cannot be written ({error.strerror}); nothing was changed.") from error
        with self._our_errors():
            connection = SqliteConnection(self.path, writes=True)
            try:
                self._prepare(connection)
            except BaseException:
                connection.handle.close()
                raise
            return connection

    def _prepare(self, connection: SqliteConnection) -> None:
        version = self._version(connection)
        self._choose_journal(connection)
        if version < SCHEMA_VERSION:
            self._migrate(connection)
        elif self._missing_columns(connection):
            with connection.transaction(WRITING):
                add_columns(connection, self._missing_columns(connection))  # unless another process was faster

    def _missing_columns(self, connection: SqliteConnection) -> list[tuple[str, Column]]:
        return missing_columns({table.name: connection.columns_of(table.name) for table in TABLES})

    def _version(self, connection: SqliteConnection) -> int:
        """The schema version of our file, 0 for an empty one; anything else is refused."""
        if not is_ours(connection, self.path):
            return 0
        try:
            ((version,),) = connection.rows("SELECT version FROM schema_version")
        except (ValueError, apsw.SQLError):
            raise StoreError(
                f"{self.path} does not say which version it is of; `segue doctor --fix` mends it."
            ) from None
        check_age(version, SCHEMA_VERSION, self.path)
        return int(version)

    def _choose_journal(self, connection: SqliteConnection) -> None:
        wanted = "delete" if self._notices else "wal"
        if connection.value("PRAGMA journal_mode") != wanted:
            connection.value(f"PRAGMA journal_mode={wanted}")

    def _migrate(self, connection: SqliteConnection) -> None:
        while (version := self._version(connection)) < SCHEMA_VERSION:
            with connection.transaction(WRITING):
                if self._version(connection) != version:
                    continue  # another process was faster
                declare(connection)
                step = version + 1 if version else SCHEMA_VERSION  # a new file has nothing to be changed
                if version:
                    MIGRATIONS.get(step, _declared_only)(connection)
                create_index(connection)
                connection.run("DELETE FROM schema_version")
                connection.run("INSERT INTO schema_version (version) VALUES (:version)", {"version": step})
                connection.run(f"PRAGMA application_id={APPLICATION_ID}")


def _declared_only(_: object) -> None:
    """A version whose whole change is in the declarations."""
