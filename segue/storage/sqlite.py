"""SQLite through APSW: one connection that writes, a few that read, and the settings that make a commit durable.

what returned is on disk        WAL, synchronous=FULL (fullfsync on macOS), no memory mapping
a lock is seen at the start     BEGIN IMMEDIATE
damage stops writing            a corrupt page ends this handle; reading what can be read goes on
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from segue.core.errors import (
    ForeignDatabase,
    Invalid,
    SchemaTooNew,
    SchemaTooOld,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFault,
    StoreForked,
    StoreFull,
    StoreReadOnly,
)
from segue.storage import guards
from segue.storage.patience import patiently
from segue.storage.schema import MIGRATIONS, SCHEMA_VERSION, declare
from segue.storage.sql import Executor, Parameters, Row

APPLICATION_ID = 0x5365_6775  # "Segu"
OLDEST_SAFE_SQLITE = (3, 51, 3)  # before it, a race between a checkpoint and a writer could corrupt the file
BUSY_TIMEOUT_MS = 1000
CHECKPOINT_EVERY = 50
IDLE_READERS = 8
PATIENCE_WITH_READERS = 5.0

_NOTHING: Parameters = {}
_WHOSE = "SELECT (SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)"


class SqliteConnection(Executor):
    """One connection to one file, with our settings."""

    def __init__(self, path: Path, *, writes: bool, is_immutable: bool = False) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE if writes else apsw.SQLITE_OPEN_READONLY
        uri = f"file:{_uri_path(path)}?immutable=1" if is_immutable else str(path)
        self.handle = apsw.Connection(uri, flags=flags | apsw.SQLITE_OPEN_URI)
        self.handle.set_busy_timeout(BUSY_TIMEOUT_MS)
        settings = ["foreign_keys=ON", "mmap_size=0", "trusted_schema=OFF", "cell_size_check=ON"]
        if writes:
            settings += ["synchronous=FULL", "secure_delete=ON"]
            settings += ["fullfsync=ON", "checkpoint_fullfsync=ON"] if sys.platform == "darwin" else []
        for setting in settings:
            self.handle.pragma(*setting.split("="))

    def rows(self, sql: str, parameters: Parameters = _NOTHING) -> list[Row]:
        return self.handle.execute(sql, parameters).fetchall()

    def stream(self, sql: str, parameters: Parameters = _NOTHING) -> Iterator[Row]:
        return iter(self.handle.execute(sql, parameters))

    def run(self, sql: str, parameters: Parameters = _NOTHING) -> int:
        self.handle.execute(sql, parameters)
        return self.handle.changes()

    def value(self, sql: str) -> object:
        return self.rows(sql)[0][0]

    def columns_of(self, table: str) -> set[str]:
        return {str(row[1]) for row in self.rows(f"PRAGMA table_xinfo({table})")}

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        self.handle.execute(begin)
        try:
            yield
            self.handle.execute("COMMIT")
        except BaseException:
            if self.handle.in_transaction:
                with suppress(apsw.Error):  # the first error is the one to hear about
                    self.handle.execute("ROLLBACK")
            raise


class SqliteEngine:
    """A database file: opened carefully, handed out one transaction at a time."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if tuple(map(int, apsw.sqlite_lib_version().split("."))) < OLDEST_SAFE_SQLITE:
            raise StoreError(f"SQLite {apsw.sqlite_lib_version()} can corrupt its files; install apsw 3.51.3 or newer.")
        self.path = path.absolute()
        self._notices: list[str] = []
        self._is_immutable = False
        self._unusable: Callable[[], StoreError] | None = None
        self._damage: str | None = None
        self._writing = threading.Lock()
        self._readers: list[SqliteConnection] = []
        self._pool = threading.Lock()
        self._writes = 0
        if guards.is_on_network(self.path.parent):
            self._notices.append(f"{self.path} is on a network file system: one process at a time, and slower.")
        self._writer: SqliteConnection | None = None
        if read_only:
            self._readers.append(self._open_reading())
        else:
            self._writer = patiently(lambda _: self._open_writing())
        guards.watch_for_fork(self)
        guards.forbid_opening(self.path)

    @contextmanager
    def writing(self, patience: float) -> Iterator[Executor]:
        """A transaction that changes the database; raises `StoreBusy` when others hold it."""
        writer = self._usable_writer()
        if self._damage:
            raise StoreCorrupt(self._damage)
        if not self._writing.acquire(timeout=max(patience, 0)):
            raise StoreBusy(f"Another thread has been writing to {self.path} for too long.")
        try:
            with self._our_errors(), writer.transaction("BEGIN IMMEDIATE"):
                yield writer
            self._count_write(writer)
        finally:
            self._writing.release()

    @contextmanager
    def reading(self) -> Iterator[Executor]:
        """A snapshot of the database."""
        self._check()
        with self._our_errors():
            with self._pool:
                reader = self._readers.pop() if self._readers else None
            reader = reader or SqliteConnection(self.path, writes=False, is_immutable=self._is_immutable)
            try:
                with reader.transaction("BEGIN"):
                    yield reader
            finally:
                self._give_back(reader)

    @contextmanager
    def alone(self) -> Iterator[SqliteConnection]:
        """The writing connection outside any transaction, for upkeep such as VACUUM."""
        writer = self._usable_writer()
        with self._writing, self._our_errors():
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
        patiently(self._empty_log, PATIENCE_WITH_READERS)

    def _rewrite(self, _seconds_left: float) -> None:
        with self.alone() as connection:
            connection.run("VACUUM")

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
                for connection in self._connections():
                    connection.handle.close()
                self._readers.clear()
                guards.allow_opening(self.path)

    def abandon(self) -> list[object]:
        self._unusable = StoreForked
        return [connection.handle for connection in self._connections()]

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

    def _give_back(self, reader: SqliteConnection) -> None:
        with self._pool:
            if self._unusable is None and len(self._readers) < IDLE_READERS and not reader.handle.in_transaction:
                self._readers.append(reader)
                return
        reader.handle.close()

    def _count_write(self, writer: SqliteConnection) -> None:
        self._writes += 1
        if self._writes % CHECKPOINT_EVERY:
            return
        try:
            writer.handle.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.CorruptError as error:
            self._damage = str(_translated(error, self.path))
        except apsw.Error:
            return  # somebody else is at it, or the disk is full: the commit stands, and the next one will tell

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Driver errors become ours here and nowhere else."""
        try:
            yield
        except apsw.Error as error:
            ours = _translated(error, self.path)
            if isinstance(ours, StoreCorrupt):
                self._damage = str(ours)
            raise ours from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise Invalid(f"A value cannot be stored: {error}.") from error

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
        if version < SCHEMA_VERSION:
            raise SchemaTooOld(f"{self.path} is from an older Segue; open it once for writing to bring it up to date.")
        return connection

    def _open_writing(self) -> SqliteConnection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
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

    def _version(self, connection: SqliteConnection) -> int:
        """The schema version of our file, 0 for an empty one; anything else is refused."""
        owner, tables = connection.rows(_WHOSE)[0]
        if owner != APPLICATION_ID:
            if owner or tables:
                raise ForeignDatabase(
                    f"{self.path} is another program's database; it was left alone."
                    " Choose another path, or another SEGUE_HOME."
                )
            return 0
        version = connection.value("SELECT version FROM schema_version")
        assert isinstance(version, int)
        if version > SCHEMA_VERSION:
            raise SchemaTooNew(
                f"{self.path} was written by a newer Segue (schema {version}, this program knows {SCHEMA_VERSION});"
                " update Segue to use it."
            )
        return version

    def _choose_journal(self, connection: SqliteConnection) -> None:
        wanted = "delete" if self._notices else "wal"
        if connection.value("PRAGMA journal_mode") != wanted:
            connection.value(f"PRAGMA journal_mode={wanted}")

    def _migrate(self, connection: SqliteConnection) -> None:
        while (version := self._version(connection)) < SCHEMA_VERSION:
            with connection.transaction("BEGIN IMMEDIATE"):
                if self._version(connection) != version:
                    continue  # another process was faster
                declare(connection)
                step = version + 1 if version else SCHEMA_VERSION  # a new file has nothing to be changed
                if version:
                    MIGRATIONS.get(step, _declared_only)(connection)
                connection.run("DELETE FROM schema_version")
                connection.run("INSERT INTO schema_version (version) VALUES (:version)", {"version": step})
                connection.run(f"PRAGMA application_id={APPLICATION_ID}")


def _declared_only(_: object) -> None:
    """A version whose whole change is in the declarations."""


def _uri_path(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def _translated(error: apsw.Error, path: Path) -> StoreError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"Other processes have been writing to {path} for too long; try again.")
        case apsw.FullError():
            return StoreFull(f"The disk that holds {path} is full: nothing was written. Free some space and try again.")
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.CantOpenError():
            return StoreReadOnly(f"{path} cannot be written: its disk or folder is read-only. Nothing was changed.")
        case apsw.NotADBError():
            return ForeignDatabase(
                f"{path} is no database; it was left alone. Choose another path, or another SEGUE_HOME."
            )
        case apsw.CorruptError():
            return StoreCorrupt(
                f"{path} is damaged, so nothing more is written to it. Keep a copy of the folder, save what can be read"
                " with `segue sessions export`, then restore your last backup or import that export into a new home."
            )
        case apsw.IOError():
            return StoreFault(f"The disk that holds {path} failed ({error}); what had been committed is kept.")
    return StoreError(f"The database {path} refused: {error}.")
